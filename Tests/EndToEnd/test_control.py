"""Pause, resume, volume, loop, start: what the commands do to the sound."""

import asyncio
from itertools import pairwise

import pytest

from analysis import heard_at, level_db
from client import listen, request
from inbox import assert_unbroken
from media import FLAC, M4A, MP3_CBR, MP3_VBR, OGG_OPUS, VORBIS, WAV, WEBM_OPUS, glides_clip, tone_clip
from opus import FRAME, decode
from signals import Glides

SONG = Glides(6, seed=3)
SONGS = {
    "passthrough": glides_clip("song-opus", SONG, OGG_OPUS),
    "transcoded": glides_clip("song-mp3", SONG, MP3_CBR, 44_100),
}


@pytest.mark.parametrize("kind", SONGS)
async def test_resume_goes_on_at_the_same_sample(antiphon, media, new_session, kind):
    clip = SONGS[kind]
    media.path(clip)
    url = antiphon.router.url
    async with listen(url, new_session()) as listener, listen(url, new_session()) as reference:
        await asyncio.gather(listener.play(clip.url), reference.play(clip.url))
        await listener.wait_packets(60)
        paused = await listener.command("pause")
        assert paused["type"] == "paused", paused
        since = listener.index(paused)
        before = listener.packets(until=since)
        assert paused["position_ms"] == before[-1].position_ms + 20, (paused, before[-1].position_ms)

        states = []
        # The reference's packets are the clock: a second of them goes by.
        for _ in range(2):
            states.append((await request("GET", f"{url}/api/v1/sessions/{listener.session}")).body)
            await reference.wait_packets(25, since=reference.mark())
        assert not listener.packets(since), f"{len(listener.packets(since))} packets while paused"
        for state in states:
            assert state["state"] == "paused" and state["position_ms"] == paused["position_ms"], (state, paused)

        resumed = await listener.command("resume")
        assert resumed["type"] == "resumed" and resumed["position_ms"] == paused["position_ms"], (resumed, paused)
        assert not listener.packets(since, listener.index(resumed)), "packets before `resumed`"
        after = await listener.wait_packets(60, since=listener.index(resumed))
        assert after[0].position_ms == resumed["position_ms"], (after[0].position_ms, resumed)
        assert after[0].due_ns == resumed["due_ns"], (after[0].due_ns, resumed)
        assert after[0].sequence == before[-1].sequence + 1, (after[0].sequence, before[-1].sequence)

        heard = [packet.audio for packet in before + after]
        unpaused = [packet.audio for packet in await reference.wait_packets(len(heard))]
        differing = [index for index, (one, other) in enumerate(zip(heard, unpaused, strict=True)) if one != other]
        # The last before the pause fades out; the first after it fades in, and three more lead back to the track's own.
        faded = set(range(len(before) - 1, len(before) + 4))
        assert faded.issuperset(differing) and len(before) in differing, (
            f"packets {differing} differ from those of a session that was not paused, expected {sorted(faded)}"
        )
        sound = decode(heard)[:, 0]
        for packet in (5, len(before) - 5, len(before) + 20):
            place = heard_at(sound, packet * FRAME, SONG)
            assert place.likeness > 0.9 and abs(place.milliseconds - packet * 20) <= 2, (
                f"packet {packet} sounds like {place}, expected {packet * 20} ms"
            )
        await asyncio.gather(listener.command("stop"), reference.command("stop"))


ENCODINGS = {
    "mp3-cbr": MP3_CBR,
    "mp3-vbr": MP3_VBR,
    "m4a": M4A,
    "flac": FLAC,
    "wav": WAV,
    "vorbis": VORBIS,
    "ogg-opus": OGG_OPUS,
    "webm-opus": WEBM_OPUS,
}


@pytest.mark.parametrize("kind", SONGS)
async def test_a_paused_session_is_stopped(antiphon, media, new_session, kind):
    clip = SONGS[kind]
    media.path(clip)
    async with listen(antiphon.router.url, new_session()) as listener:
        await listener.play(clip.url)
        await listener.wait_packets(30)
        paused = await listener.command("pause")
        stopped = await listener.command("stop")
        assert stopped["type"] == "ended" and stopped["reason"] == "stopped", stopped
        assert stopped["position_ms"] == paused["position_ms"], (stopped, paused)
        engine = await request("GET", f"{antiphon.engine.url}/session/{listener.session}")
        assert engine.body["state"] == "idle" and engine.body["why"]["ended"]["reason"] == "stopped", engine
        refused = await request("POST", f"{antiphon.engine.url}/session/{listener.session}/resume")
        assert refused.code == "no_such_session", refused
        # Nothing of it is left over for what plays next.
        await listener.play(clip.url)
        playing = await listener.wait_event("playing", listener.index(stopped))
        assert playing["position_ms"] == 0, playing
        assert not listener.packets(listener.index(paused), listener.index(playing)), listener
        await listener.wait_packets(20, since=listener.index(playing))
        await listener.command("stop")


async def test_volume_one_half_is_6_db_less(antiphon, media, new_session):
    """Set while it plays, in every container: also where packets were passed through before."""
    clips = {name: tone_clip(600, 6, encoding) for name, encoding in ENCODINGS.items()}
    media.make(*clips.values())

    async def measure(name: str) -> tuple[str, float, float, float]:
        async with listen(antiphon.router.url, new_session()) as listener:
            await listener.play(clips[name].url)
            await listener.wait_packets(60)
            answer = await listener.command("volume", level=0.5)
            assert answer["type"] == "status" and answer["session"]["volume"] == 0.5, answer
            changed = len(listener.packets(until=listener.index(answer)))
            await listener.wait_packets(60, since=listener.index(answer))
            packets = listener.packets()
            assert_unbroken(packets, name)
            await listener.command("volume", level=1)
            await listener.wait_packets(60, since=listener.mark())
            await listener.command("stop")
            sound = decode(packet.audio for packet in listener.packets())[:, 0]
            # `status` comes once the new level is heard; a few packets for the decoder to settle.
            return (
                name,
                level_db(sound[10 * FRAME : (changed - 25) * FRAME]),
                level_db(sound[(changed + 5) * FRAME : (changed + 55) * FRAME]),
                level_db(sound[-40 * FRAME :]),
            )

    wrong = []
    for name, full, half, again in await asyncio.gather(*(measure(name) for name in clips)):
        if abs(half - full + 6.02) > 0.2 or abs(again - full) > 0.2:
            wrong.append(f"{name}: {full:.2f} dB, at 0.5 {half:.2f} dB ({half - full:+.2f}), at 1 again {again:.2f} dB")
    assert not wrong, wrong


@pytest.mark.parametrize("order", [("volume", "seek"), ("seek", "volume")])
async def test_a_level_and_a_place_that_come_together(antiphon, media, new_session, order):
    """Each opens the track anew: neither is lost to the other."""
    clip = tone_clip(600, 120, OGG_OPUS)
    media.path(clip)
    arguments = {"volume": {"level": 0.5}, "seek": {"position_ms": 60_000}}
    async with listen(antiphon.router.url, new_session()) as listener:
        await listener.play(clip.url)
        await listener.wait_packets(60)
        answers = await asyncio.gather(*(listener.command(command, **arguments[command]) for command in order))
        assert {answer["type"] for answer in answers} == {"seeked", "status"}, answers
        since = max(listener.index(answer) for answer in answers)
        packets = await listener.wait_packets(60, since=since)
        assert packets[0].position_ms >= 60_000, packets[0]
        sound = decode(packet.audio for packet in listener.packets())[:, 0]
        before = len(listener.packets(until=since))
        after = level_db(sound[(before + 5) * FRAME : (before + 55) * FRAME])
        change = after - level_db(sound[10 * FRAME : 50 * FRAME])
        assert abs(change + 6.02) < 0.2, f"{change:+.2f} dB"


async def test_played_at_a_volume_from_a_place_paused(antiphon, media, new_session):
    clip = glides_clip("song-opus", SONG, OGG_OPUS)
    media.path(clip)
    async with listen(antiphon.router.url, new_session()) as listener:
        ready = await listener.play(clip.url, volume=0.25, start_ms=2_000, paused=True)
        assert ready["passthrough"] is False, f"packets at a volume of 0.25 cannot be the file's own: {ready}"
        paused = await listener.wait_event("paused")
        assert abs(paused["position_ms"] - 2_000) <= 20, paused
        assert not listener.packets(), "packets before `resume`"
        await listener.command("resume")
        packets = await listener.wait_packets(60)
        sound = decode(packet.audio for packet in packets)[:, 0]
        place = heard_at(sound, 10 * FRAME, SONG)
        assert abs(place.milliseconds - 2_200) <= 20, f"200 ms after a start at 2 s sounds like {place}"
        level = level_db(sound[10 * FRAME :])
        assert abs(level - (-9.03 - 12.04)) < 0.4, f"a volume of 0.25 measures {level:.2f} dB, expected -21.07 dB"
        await listener.command("stop")


async def test_loop_goes_round_without_a_gap(antiphon, media, new_session):
    """A second of 400 Hz is 400 whole waves, so the round is heard only where it is not clean."""
    clip = tone_clip(400, 1, FLAC)
    media.path(clip)
    async with listen(antiphon.router.url, new_session()) as listener:
        await listener.play(clip.url, loop=True)
        packets = await listener.wait_packets(160)
        assert not listener.events("ended") and not listener.events("buffering"), listener
        sequence = [packet.sequence for packet in packets]
        assert sequence == list(range(sequence[0], sequence[0] + 160)), "the sequence has gaps"
        starts = [index for index, packet in enumerate(packets) if packet.position_ms == 0]
        assert len(starts) >= 3, f"position 0 came {len(starts)} times in 3.2 s of a track of 1 s"
        rounds = {after - before for before, after in pairwise(starts)}
        assert rounds <= {50, 51}, f"a round has {rounds} packets, expected 50 or 51"
        await listener.command("stop")
        assert (await listener.wait_event("ended"))["reason"] == "stopped"


async def test_a_queue_goes_on_by_itself(antiphon, media, new_session):
    clips = [tone_clip(frequency, 1, encoding) for frequency, encoding in ((440, FLAC), (880, OGG_OPUS), (1_320, WAV))]
    media.make(*clips)
    async with listen(antiphon.router.url, new_session()) as listener:
        for clip in clips:
            answer = await listener.command("queue_add", url=clip.url)
            assert answer["type"] == "queue", answer
        for clip in clips:
            since = listener.index(await listener.wait_event("ready", url=clip.url))
            if clip is clips[1]:
                skipped = await listener.command("skip")
                assert skipped["type"] == "queue", skipped
            await listener.wait_event("ended", since)
        reasons = [event["reason"] for event in listener.events("ended")]
        assert len(reasons) == 3 and reasons[0] == reasons[2] == "finished", reasons
        assert reasons[1] in ("stopped", "replaced"), reasons
        assert [event["url"] for event in listener.events("ready")] == [clip.url for clip in clips]
        queue = (await listener.command("queue"))["queue"]
        assert not queue.get("tracks") and not queue.get("current"), queue


async def test_http_commands_do_the_same(antiphon, media, new_session):
    """The Router's REST and the engine's own HTTP: one session, driven from both."""
    clip = glides_clip("song-mp3", SONG, MP3_CBR, 44_100)
    media.path(clip)
    session = new_session()
    rest = f"{antiphon.router.url}/api/v1/sessions/{session}"
    engine = f"{antiphon.engine.url}/session/{session}"
    async with listen(antiphon.router.url, session) as listener:
        for base in (rest, engine):
            steps = [
                ("play", {"url": clip.url}, "ready"),
                ("pause", None, "paused"),
                ("seek", {"position_ms": 3_000}, "seeked"),
                ("resume", None, "resumed"),
                ("volume", {"level": 0.5}, "status"),
                ("stop", None, "ended"),
            ]
            for name, body, event in steps:
                since = listener.mark()
                answer = await request("POST", f"{base}/{name}", body)
                assert answer.status == 200 and answer.body["type"] == event, (base, name, answer)
                # The listener is told too, without anybody's request ID.
                told = await listener.wait_event(event, since)
                assert "request_id" not in told, told
                state = await request("GET", base)
                expected = {"paused": "paused", "seeked": "paused", "ended": "idle"}.get(event, "streaming")
                assert state.status == 200 and state.body["state"] == expected, (base, name, state)
        listing = await request("GET", f"{antiphon.router.url}/api/v1/sessions")
        assert listing.status == 200 and isinstance(listing.body["sessions"], list), listing


async def test_a_percent_that_encodes_nothing_stands_for_itself(antiphon, media, new_session):
    clip = tone_clip(440, 1, FLAC)
    for name in ("50%+5.flac", "100%.flac", "%zz %.flac"):
        (media.root / name).write_bytes(media.bytes(clip))
        async with listen(antiphon.router.url, new_session()) as listener:
            await listener.play(f"media:{name}")
            await listener.command("stop")


async def test_the_media_folder_is_listed(antiphon, media):
    names = ["zwölf Töne.flac", "100%.flac", "%41.flac", "a+b #1?.flac"]
    clip = tone_clip(440, 1, FLAC)
    folder = media.root / "odd names"
    folder.mkdir(exist_ok=True)
    for name in names:
        (folder / name).write_bytes(media.bytes(clip))
    root = await request("GET", f"{antiphon.router.url}/api/v1/media")
    assert root.status == 200 and root.body["truncated"] is False, root
    folders = [entry["name"] for entry in root.body["entries"] if entry["kind"] == "folder"]
    assert "odd names" in folders, root.body["entries"][:5]
    kinds = [entry["kind"] for entry in root.body["entries"]]
    assert kinds == sorted(kinds, reverse=True), f"folders come first: {kinds}"
    for base in (f"{antiphon.router.url}/api/v1/media", f"{antiphon.engine.url}/media"):
        listing = await request("GET", f"{base}?path=odd%20names")
        assert listing.status == 200 and listing.body["path"] == "odd names", listing
        assert {entry["name"] for entry in listing.body["entries"]} == set(names), listing
    for entry in listing.body["entries"]:
        session = f"odd{names.index(entry['name'])}"
        played = await request("POST", f"{antiphon.router.url}/api/v1/sessions/{session}/play", {"url": entry["url"]})
        assert played.status == 200, f"the URL of the listing, {entry['url']!r}, is refused: {played}"
        await request("POST", f"{antiphon.router.url}/api/v1/sessions/{session}/stop")
