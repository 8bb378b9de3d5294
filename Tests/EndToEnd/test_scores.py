"""Scores: rendered by the engine, played as tracks, and joined by others while they sound."""

import asyncio
import base64

import numpy as np
import pytest

from analysis import dominant_frequency, level_db, tone_level_db
from client import Listener, connect_to_engine, listen, request
from inbox import Event, Packet, assert_unbroken
from media import FLAC, tone_clip
from opus import FRAME, LOOKAHEAD, decode
from scores import drone, frequency, score, tones, voice
from signals import RATE

#: None is a harmonic of another that a triangle has: those are odd.
LOW, MIDDLE, HIGH = 57, 74, 86

#: How sharply an onset can be found in what Opus made of it.
ONSET_SAMPLES = 240


def heard(packets: list[Packet]) -> np.ndarray:
    return decode(packet.audio for packet in packets)[:, 0]


def onset(sound: np.ndarray, pitch: int) -> int:
    """The sample at which a pitch comes in: where its level, over 10 ms, passes half of its highest."""
    carrier = np.exp(-2j * np.pi * frequency(pitch) * np.arange(len(sound)) / RATE)
    level = np.abs(np.convolve(sound * carrier, np.hanning(480) / 240, mode="valid"))
    return int(np.argmax(level > level.max() / 2)) + 240


async def play_score(listener: Listener, what: dict, **fields) -> Event:
    since = listener.mark()
    ready = await listener.command("play", score=what, **fields)
    await listener.wait_event("playing", since=since)
    return ready


async def wait_position(listener: Listener, milliseconds: int) -> list[Packet]:
    """All packets up to a position of the session."""
    return await listener.wait(
        lambda: next(
            (
                listener.packets()[: index + 1]
                for index, packet in enumerate(listener.packets())
                if packet.position_ms >= milliseconds
            ),
            None,
        ),
        f"packet of {milliseconds} ms",
        30,
    )


async def test_a_score_with_a_length_is_a_track(antiphon, new_session):
    async with listen(antiphon.router.url, new_session()) as listener:
        ready = await play_score(listener, tones(LOW, MIDDLE, HIGH, title="Three tones"))
        assert ready["codec"] == "score" and ready["title"] == "Three tones" and ready["url"] == "score:", ready
        assert ready["duration_ms"] == 3_500 and "live" not in ready, ready
        ended = await listener.wait_event("ended")
        assert ended["reason"] == "finished", ended
        packets = listener.packets()
        assert_unbroken(packets, "the score")
        # Every sample, and the encoder's delay.
        assert len(packets) == -(-(3.5 * RATE + LOOKAHEAD) // FRAME)
        sound = heard(packets)[LOOKAHEAD:]
        for index, pitch in enumerate((LOW, MIDDLE, HIGH)):
            middle = sound[index * RATE + RATE // 4 : index * RATE + 3 * RATE // 4]
            assert abs(dominant_frequency(middle) - frequency(pitch)) < 1, f"tone {index}"
            assert abs(onset(sound[max(0, index * RATE - RATE // 2) :], pitch) - (RATE // 2 if index else 0)) < 1_200


async def test_a_score_is_sought_in_as_a_file_is(antiphon, new_session):
    async with listen(antiphon.router.url, new_session()) as listener:
        await play_score(listener, tones(LOW, MIDDLE, HIGH, seconds=4), paused=False)
        seeked = await listener.command("seek", position_ms=9_000)
        assert seeked["position_ms"] == 9_000
        packets = await listener.wait_packets(40, since=listener.index(seeked))
        assert abs(dominant_frequency(heard(packets)[5 * FRAME :]) - frequency(HIGH)) < 1
        await listener.command("stop")


async def test_another_joins_an_endless_score_on_its_beat_to_the_sample(antiphon, new_session):
    beat = 24_013
    async with listen(antiphon.router.url, new_session()) as listener:
        ready = await play_score(listener, drone(LOW, beat=beat))
        assert ready["live"] is True and "duration_ms" not in ready, ready
        await listener.wait_packets(20)
        performing = await listener.command("perform", score=tones(HIGH))
        assert performing["type"] == "performing" and performing["length"] == 3 * RATE // 2, performing
        start = performing["sample"]
        assert start % beat == 0 and start // 48 == performing["position_ms"], performing
        packets = await wait_position(listener, performing["position_ms"] + 1_800)
        assert_unbroken(packets, "the bed")
        sound = heard(packets)[LOOKAHEAD:]
        begin = packets[0].position_ms * 48
        at = start - begin
        before, during, after = (
            sound[at - 9_600 : at - 480],
            sound[at + 9_600 : at + 38_400],
            sound[at + 3 * RATE // 2 :],
        )
        assert tone_level_db(during, frequency(HIGH)) > tone_level_db(before, frequency(HIGH)) + 30
        assert tone_level_db(during, frequency(HIGH)) > tone_level_db(after, frequency(HIGH)) + 30
        # The bed goes on below it as it was.
        assert abs(tone_level_db(during, frequency(LOW)) - tone_level_db(before, frequency(LOW))) < 1.5
        # The same tone, played by itself, says how long its onset is.
        alone = heard(await tone_by_itself(antiphon.router.url, new_session()))[LOOKAHEAD:]
        window = sound[at - RATE // 10 : at + RATE // 2]
        expected = onset(alone[: RATE // 2], HIGH)
        assert abs(onset(window, HIGH) - RATE // 10 - expected) <= ONSET_SAMPLES
        await listener.command("stop")


async def tone_by_itself(url: str, session: str) -> list[Packet]:
    async with listen(url, session) as listener:
        await play_score(listener, tones(HIGH))
        await listener.wait_event("ended")
        return listener.packets()


async def test_what_joins_one_session_is_not_heard_in_another(antiphon, new_session):
    """Not even where both play the same endless score."""
    url = antiphon.router.url
    async with listen(url, new_session()) as one, listen(url, new_session()) as other:
        await asyncio.gather(play_score(one, drone(LOW)), play_score(other, drone(LOW)))
        performing = await one.command("perform", score=tones(HIGH, MIDDLE))
        packets = await wait_position(one, performing["position_ms"] + 1_900)
        level = tone_level_db(heard(packets)[-RATE // 2 :], frequency(MIDDLE))
        await other.wait_packets(50, since=other.mark())
        for pitch in (HIGH, MIDDLE):
            assert tone_level_db(heard(other.packets())[-2 * RATE :], frequency(pitch)) < level - 40
        assert not other.events("performing")
        await asyncio.gather(one.command("stop"), other.command("stop"))


async def test_voices_are_muted_for_everybody_and_heard_again(antiphon, new_session):
    session = new_session()
    both = drone(LOW)
    both["voices"].append(voice("melody", loop=RATE))
    both["notes"].append([1, 0, RATE, HIGH, 80])
    async with listen(antiphon.router.url, session) as listener, listen(antiphon.router.url, session) as other:
        await play_score(listener, both)

        async def level_once_settled() -> float:
            """The loudest 100 ms of one round of the notes: each note begins with a phase of its own."""
            sound = heard(await listener.wait_packets(120, since=listener.mark()))[-RATE:]
            return max(tone_level_db(part, frequency(HIGH)) for part in sound.reshape(10, -1))

        loud = await level_once_settled()
        muted = await listener.command("mute", voices=["melody", "melody"])
        assert muted["type"] == "muted" and muted["voices"] == ["melody"], muted
        assert (await other.wait_event("muted"))["voices"] == ["melody"]
        assert await level_once_settled() < loud - 40
        # One who comes later is told.
        async with listen(antiphon.router.url, session) as late:
            assert (await late.wait_event("session"))["session"]["muted"] == ["melody"]
        await listener.command("mute", voices=[])
        assert abs(await level_once_settled() - loud) < 1.5
        assert_unbroken(listener.packets(), "the session")
        await listener.command("stop")


async def test_the_volume_of_an_endless_score_is_changed_without_a_gap(antiphon, new_session):
    async with listen(antiphon.router.url, new_session()) as listener:
        await play_score(listener, drone(LOW))
        loud = level_db(heard(await listener.wait_packets(120))[-RATE:])
        status = await listener.command("volume", level=0.5)
        assert status["session"]["volume"] == 0.5, status
        packets = await listener.wait_packets(120, since=listener.mark())
        assert abs(level_db(heard(packets)[-RATE:]) - loud + 6.02) < 0.5
        assert_unbroken(listener.packets(), "the session")
        await listener.command("stop")


async def test_an_endless_score_pauses_and_has_no_places(antiphon, new_session):
    async with listen(antiphon.router.url, new_session()) as listener:
        await play_score(listener, drone(LOW))
        await listener.wait_packets(20)
        paused = await listener.command("pause")
        refused = await listener.ask("seek", position_ms=0)
        assert refused["code"] == "invalid_state", refused
        resumed = await listener.command("resume")
        assert resumed["position_ms"] == paused["position_ms"]
        await listener.wait_packets(20, since=listener.mark())
        await listener.command("stop")


async def test_a_paused_endless_score_is_joined_and_heard_later(antiphon, new_session):
    async with listen(antiphon.router.url, new_session()) as listener:
        await play_score(listener, drone(LOW))
        await listener.wait_packets(20)
        await listener.command("pause")
        performing = await listener.command("perform", score=tones(HIGH))
        assert (await listener.command("mute", voices=["bass"]))["voices"] == ["bass"]
        await listener.command("resume")
        packets = await wait_position(listener, performing["position_ms"] + 1_400)
        sound = heard(packets)[LOOKAHEAD:]
        at = performing["sample"] - packets[0].position_ms * 48
        rise = tone_level_db(sound[at + 9_600 :], frequency(HIGH)) - tone_level_db(sound[: at - 480], frequency(HIGH))
        assert rise > 30, f"{rise:.1f} dB"
        await listener.command("stop")


async def test_a_score_does_not_begin_behind_its_end(antiphon, new_session):
    async with listen(antiphon.router.url, new_session()) as listener:
        for start in (3_500, 10**9):
            refused = await listener.ask("play", score=tones(LOW, MIDDLE, HIGH), start_ms=start)
            assert refused["code"] == "invalid_command" and "past the end at 3500 ms" in refused["message"], refused
        # Its last frame is no such place.
        assert (await listener.command("play", score=tones(LOW, MIDDLE, HIGH), start_ms=3_480))["duration_ms"] == 3_500
        await listener.wait_event("ended", reason="finished")


async def test_what_cannot_be_joined_is_told(antiphon, media, new_session):
    clip = tone_clip(440, 4, FLAC)
    media.make(clip)
    async with listen(antiphon.router.url, new_session()) as listener:
        for command in ({"kind": "perform", "score": tones(LOW)}, {"kind": "mute", "voices": ["bass"]}):
            kind = command.pop("kind")
            assert (await listener.ask(kind, **command))["code"] == "no_such_session"
            await listener.play(clip.url)
            refused = await listener.ask(kind, **command)
            assert refused["code"] == "invalid_state" and kind in refused["message"], refused
            await listener.command("stop")
        for broken, field in (
            ({"score": drone(LOW)}, "score.length"),
            ({"score": tones(200)}, "score.notes[0]'s pitch"),
            ({"score": tones(LOW) | {"voices": [voice("melody", "kazoo")]}}, "score.voices.Index 0.instrument"),
            ({}, "score"),
        ):
            refused = await listener.ask("perform", **broken)
            assert refused["code"] == "invalid_command" and field in refused["message"], refused


async def test_a_track_takes_an_endless_score_s_place_at_once(antiphon, media, new_session):
    clip = tone_clip(880, 2, FLAC)
    media.make(clip)
    async with listen(antiphon.router.url, new_session()) as listener:
        await play_score(listener, drone(LOW))
        await listener.wait_packets(10)
        queued = await listener.command("queue_add", url=clip.url)
        await listener.wait_event("ended", reason="replaced")
        playing = await listener.wait_event("playing", since=listener.index(queued))
        sound = heard(await listener.wait_packets(60, since=listener.index(playing)))
        assert abs(dominant_frequency(sound[RATE // 4 :]) - 880) < 1
        await listener.wait_event("ended", reason="finished")
        # The score is nothing that a queue or its history holds.
        history = await listener.command("history")
        assert [track["url"] for track in history["tracks"]] == [clip.url], history


async def test_an_endless_score_plays_on_without_its_router_and_not_without_its_engine(mortal, new_session):
    session = new_session()
    async with listen(mortal.router.url, session) as listener:
        await play_score(listener, drone(LOW))
        await listener.wait_packets(20)
    mortal.router.kill()
    mortal.router.start()
    async with listen(mortal.router.url, session) as listener:
        await listener.wait_packets(30)
        performing = await listener.command("perform", score=tones(HIGH))
        packets = await wait_position(listener, performing["position_ms"] + 800)
        assert tone_level_db(heard(packets)[-RATE // 4 :], frequency(HIGH)) > -40
        mortal.engine.kill()
        mortal.engine.start()
        ended = await listener.wait_event("ended")
        assert ended["reason"] == "cleanup", ended
        await play_score(listener, drone(LOW))
        await listener.wait_packets(20, since=listener.mark())


async def test_a_rendering_comes_in_pieces_over_the_socket(antiphon):
    what = tones(LOW, HIGH)
    samples = what["length"]
    async with connect_to_engine(antiphon.socket) as engine:

        async def render(encoding: str) -> bytes:
            piece = await engine.command(type="render", score=what, encoding=encoding)
            name, size, data = piece["rendering"], piece["bytes"], base64.b64decode(piece["data"])
            assert piece["samples"] == samples and piece["offset"] == 0
            while len(data) < size:
                piece = await engine.command(type="render", rendering=name, offset=len(data))
                assert piece["rendering"] == name and piece["offset"] == len(data)
                data += base64.b64decode(piece["data"])
            assert len(data) == size
            return data

        pcm = np.frombuffer(await render("pcm16"), "<i2").reshape(-1, 2) / 32768
        assert len(pcm) == samples
        assert abs(dominant_frequency(pcm[RATE // 4 : RATE, 0]) - frequency(LOW)) < 1
        assert abs(dominant_frequency(pcm[5 * RATE // 4 : 2 * RATE, 0]) - frequency(HIGH)) < 1
        assert (await render("opus"))[:4] == b"OggS"
        unknown = await engine.ask(type="render", rendering="0" * 64, offset=0)
        assert unknown["code"] == "not_found", unknown


@pytest.mark.parametrize("command", ["perform", "mute"])
async def test_the_same_over_rest(antiphon, new_session, command):
    session = new_session()
    body = {"perform": {"score": tones(HIGH)}, "mute": {"voices": ["bed"]}}[command]
    url = f"{antiphon.router.url}/api/v1/sessions/{session}"
    assert (await request("POST", f"{url}/{command}", body)).code == "no_such_session"
    await request("POST", f"{url}/play", {"score": drone(LOW)})
    answer = await request("POST", f"{url}/{command}", body)
    assert answer.status == 200 and answer.body["type"] == {"perform": "performing", "mute": "muted"}[command], answer
    await request("POST", f"{url}/stop")


@pytest.mark.measures
async def test_many_endless_scores_at_once_do_not_starve(antiphon, new_session):
    """Each takes a worker, and all of them together little of the machine."""
    count = 12
    url = f"{antiphon.router.url}/api/v1/sessions"
    names = [new_session() for _ in range(count)]
    for name in names[1:]:
        assert (await request("POST", f"{url}/{name}/play", {"score": drone(LOW)})).status == 200
    async with listen(antiphon.router.url, names[0]) as listener:
        await play_score(listener, score([voice("bed", "pad", loop=RATE)], [[0, 0, RATE, LOW, 80]], length=None))
        await listener.wait_packets(150)
        assert not listener.events("buffering"), listener
        assert_unbroken(listener.packets(), "one of many")
    for name in names:
        await request("POST", f"{url}/{name}/stop")
