"""`prepare`: what follows begins on the next frame."""

import asyncio

import numpy as np
import pytest

from analysis import level_db, tone_level_db
from client import listen, request
from inbox import assert_unbroken
from media import FLAC, MP3_CBR, OGG_OPUS, glides_clip, tone_clip
from opus import FRAME, decode
from processes import Antiphon
from signals import Glides

FIRST = {"passthrough": tone_clip(440, 2, OGG_OPUS), "transcoded": tone_clip(440, 2, FLAC)}
SECOND = {"passthrough": tone_clip(880, 2, OGG_OPUS), "transcoded": tone_clip(880, 2, MP3_CBR)}


@pytest.mark.parametrize("kind", FIRST)
async def test_what_is_prepared_begins_on_the_next_frame(antiphon, media, new_session, kind):
    first, second = FIRST[kind], SECOND[kind]
    media.make(first, second)
    async with listen(antiphon.router.url, new_session()) as listener:
        await listener.play(first.url)
        prepared = await listener.command("prepare", url=second.url)
        assert prepared["type"] == "prepared" and prepared["url"] == second.url, prepared
        playing = await listener.wait_event("playing", since=listener.index(await listener.wait_event("ended")))
        await listener.wait_packets(50, since=listener.index(playing))
        kinds = listener.course(since=listener.index(prepared) + 1)
        assert kinds == ["ended", "extracting", "ready", "playing"], kinds
        assert listener.events("ended")[0]["reason"] == "finished"
        before = listener.packets(until=listener.index(playing))
        after = listener.packets(listener.index(playing))
        assert after[0].position_ms == 0 and after[0].due_ns == playing["due_ns"]
        assert after[0].sequence == before[-1].sequence + 1, (before[-1].sequence, after[0].sequence)
        step = (after[0].due_ns - before[-1].due_ns) / 1e6
        assert step == 20 or listener.delays(), f"the next track began {step} ms after the last packet"
        sound = decode(packet.audio for packet in before + after)[:, 0]
        joint = len(before) * FRAME
        assert tone_level_db(sound[joint - 10 * FRAME : joint - 3 * FRAME], 440) > -7
        assert tone_level_db(sound[joint + 3 * FRAME : joint + 20 * FRAME], 880) > -7
        # The end of the first is padded to a whole packet; no more than that is silent.
        quiet = [level_db(sound[at : at + 480]) < -30 for at in range(joint - 3 * FRAME, joint + 3 * FRAME, 480)]
        assert sum(quiet) <= 6, f"{sum(quiet) * 10} ms of silence between the tracks"
        ended = await listener.wait_event("ended", since=listener.index(playing))
        assert ended["reason"] == "finished", ended


async def test_what_is_prepared_can_be_replaced_and_dropped(antiphon, media, new_session):
    first, second = FIRST["transcoded"], SECOND["transcoded"]
    third = tone_clip(1_320, 2, FLAC)
    media.make(first, second, third)
    async with listen(antiphon.router.url, new_session()) as listener:
        await listener.play(first.url)
        await listener.command("prepare", url=second.url)
        await listener.command("prepare", url=third.url, volume=0.5)
        await listener.wait_event("extracting", url=third.url)
        assert not [event for event in listener.events("extracting") if event["url"] == second.url]
        # What follows is dropped by a stop.
        await listener.wait_event("playing", since=listener.index(listener.events("extracting")[-1]))
        await listener.command("prepare", url=second.url)
        ended = await listener.command("stop")
        status = await listener.command("status")
        assert status["session"]["state"] == "idle", status
        assert not listener.packets(listener.index(ended)), "packets after `stop`"


async def test_what_cannot_be_prepared_is_told_and_changes_nothing(antiphon, media, new_session):
    first = tone_clip(440, 4, FLAC)
    media.path(first)
    (media.root / "no-sound.flac").write_bytes(b"nothing to be heard here" * 100)
    async with listen(antiphon.router.url, new_session()) as listener:
        await listener.play(first.url)
        for url, code in (
            ("media:missing.flac", "source_not_found"),
            ("media:no-sound.flac", "source_not_audio"),
            ("ftp://a/b", "invalid_source"),
        ):
            answer = await listener.ask("prepare", url=url)
            assert answer["type"] == "error" and answer["code"] == code, answer
        await listener.wait_packets(50)
        packets = listener.packets()
        assert_unbroken(packets, "the track that plays")
        status = await listener.command("status")
        assert status["session"]["state"] == "streaming", status
        ended = await listener.wait_event("ended")
        assert ended["reason"] == "finished", ended


async def test_the_volume_is_the_next_tracks_too(antiphon, media, new_session):
    first, second = tone_clip(440, 3, FLAC), SECOND["transcoded"]
    media.make(first, second)
    async with listen(antiphon.router.url, new_session()) as listener:
        await listener.play(first.url)
        await listener.command("prepare", url=second.url)
        await listener.wait_packets(20)
        await listener.command("volume", level=0.25)
        playing = await listener.wait_event("playing", since=listener.index(await listener.wait_event("ended")))
        packets = await listener.wait_packets(40, since=listener.index(playing))
        sound = decode(packet.audio for packet in packets)[:, 0]
        level = level_db(sound[10 * FRAME :])
        assert abs(level - (-9.03 - 12.04)) < 0.5, f"the next track measures {level:.1f} dB, expected -21.1 dB"
        status = await listener.command("status")
        assert status["session"]["volume"] == 0.25, status
        await listener.command("stop")


async def test_many_tracks_follow_one_another(antiphon, media, new_session):
    """Each is prepared as soon as the one before it begins: one unbroken stream of packets."""
    clips = [tone_clip(frequency, 1, FLAC) for frequency in (440, 554, 659, 880)]
    media.make(*clips)
    async with listen(antiphon.router.url, new_session()) as listener:
        await listener.play(clips[0].url)
        for clip in clips[1:]:
            await listener.command("prepare", url=clip.url)
            await listener.wait_event(
                "playing", since=listener.index(await listener.wait_event("extracting", url=clip.url))
            )
        await listener.wait_event("ended", since=listener.index(listener.events("playing")[-1]))
        due = np.diff([packet.due_ns for packet in listener.packets()]) / 1e6
        assert np.all(due == 20) or listener.delays(), f"packets are due {sorted(set(due))} ms apart"


async def test_prepare_over_rest(antiphon, media, new_session):
    media.make(FIRST["transcoded"], SECOND["transcoded"])
    session = new_session()
    for base in (f"{antiphon.router.url}/api/v1/sessions/{session}", f"{antiphon.engine.url}/session/{session}"):
        idle = await request("POST", f"{base}/prepare", {"url": SECOND["transcoded"].url})
        assert idle.status == 404 and idle.code == "no_such_session", idle
        played, prepared = (
            await request("POST", f"{base}/play", {"url": FIRST["transcoded"].url}),
            await request("POST", f"{base}/prepare", {"url": SECOND["transcoded"].url}),
        )
        assert played.status == 200 and prepared.status == 200 and prepared.body["type"] == "prepared", prepared
        await asyncio.gather(request("POST", f"{base}/stop"))


async def test_what_is_prepared_is_kept_for_who_waits(media, tmp_path, new_session):
    """Of a timeline that is not cached, what its listener has played is freed, but not what another waits for."""
    first, second = tone_clip(440, 10, FLAC), glides_clip("prepared-glides", Glides(40), FLAC)
    media.make(first, second)
    options = ("--cache-bytes", "0", "--read-ahead-ms", "1000")
    with Antiphon(tmp_path, media.root, engine_options=options) as antiphon:
        async with (
            listen(antiphon.router.url, new_session()) as ahead,
            listen(antiphon.router.url, new_session()) as waiting,
        ):
            await waiting.play(first.url)
            await ahead.play(second.url)
            await waiting.command("prepare", url=second.url)
            ended = await waiting.wait_event("ended")
            playing = await waiting.wait_event("playing", since=waiting.index(ended))
            packets = (await waiting.wait_packets(50, since=waiting.index(playing)))[:50]
            assert playing["position_ms"] == 0 and packets[0].position_ms == 0, (playing, packets[0])
            # What freed the packets that both played from was the other, which is far ahead.
            assert len(ahead.packets()) > 400
            assert [packet.audio for packet in packets] == [packet.audio for packet in ahead.packets()[:50]]
