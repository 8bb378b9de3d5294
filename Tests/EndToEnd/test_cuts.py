"""Pause, resume, stop, seek, volume, ends and beginnings in the middle of the sound: none of them clicks."""

import functools

import numpy as np
import pytest

from analysis import level_db, tone_level_db
from client import connect_to_engine, listen
from inbox import assert_unbroken
from media import FLAC, MP3_VBR, OGG_OPUS, Clip, Encoding, tone_clip
from metrics import figure
from opus import FRAME, decode
from signals import AMPLITUDE, largest_step_of_tone, tone

PITCH = 220
KINDS = {"passthrough": OGG_OPUS, "transcoded": MP3_VBR}
#: What an encoder adds to the steepest slope of a tone.
TOLERANCE = 1.15


#: How often a test tries for a fade on a machine that is busy.
TRIES = 5


def with_fades_in_time(test):
    """Where the machine was too busy for a fade, the engine cuts without it and counts that: tried again."""

    @functools.wraps(test)
    async def tried(antiphon, *given, **fixtures):
        for _ in range(TRIES - 1):
            before = await figure(antiphon.engine, "antiphon_engine_cuts_without_fade_total")
            try:
                return await test(antiphon, *given, **fixtures)
            except AssertionError:
                if await figure(antiphon.engine, "antiphon_engine_cuts_without_fade_total") == before:
                    raise
        return await test(antiphon, *given, **fixtures)

    return tried


def halves(encoding: Encoding) -> Clip:
    """Four seconds of one pitch, then four of another."""
    return Clip(
        f"halves-{encoding.name}", encoding, lambda rate: np.concatenate([tone(PITCH, 4, rate), tone(523, 4, rate)])
    )


def sound_of(packets) -> np.ndarray:
    return decode(packet.audio for packet in packets)[:, 0]


def assert_no_click(sound: np.ndarray, what: str, pitch: float = PITCH, amplitude: float = AMPLITUDE) -> None:
    """No step is larger than the tone's own. The first packets are a decoder's that has just begun."""
    allowed = largest_step_of_tone(pitch, amplitude) * TOLERANCE + 0.004
    steps = np.abs(np.diff(sound[3 * FRAME :]))
    where = int(np.argmax(steps))
    assert steps[where] <= allowed, (
        f"{what}: a step of {steps[where]:.4f} at packet {3 + where / FRAME:.2f}; the tone's own are {allowed:.4f}"
    )


def assert_fades_out(sound: np.ndarray, what: str) -> None:
    assert level_db(sound[-3 * FRAME : -2 * FRAME]) > -12, f"{what}: silent before its end"
    assert np.max(np.abs(sound[-48:])) < 0.02, f"{what}: its last millisecond is not silent"


@pytest.mark.parametrize("kind", KINDS)
@with_fades_in_time
async def test_pause_resume_and_stop_fade(antiphon, media, new_session, kind):
    clip = tone_clip(PITCH, 20, KINDS[kind])
    media.path(clip)
    async with listen(antiphon.router.url, new_session()) as listener:
        await listener.play(clip.url)
        await listener.wait_packets(30)
        paused = await listener.command("pause")
        heard = listener.packets(until=listener.index(paused))
        assert_fades_out(sound_of(heard), "at the pause")
        resumed = await listener.command("resume")
        await listener.wait_packets(30, since=listener.index(resumed))
        ended = await listener.command("stop")
        packets = listener.packets()
        assert_unbroken(packets, "across the pause")
        sound = sound_of(packets)
        assert_no_click(sound, f"{kind}: pause, resume and stop")
        begun = len(heard) * FRAME
        assert np.max(np.abs(sound[begun : begun + 48])) < 0.03, "the first millisecond after the pause is not silent"
        assert_fades_out(sound, "at the stop")
        assert not listener.packets(listener.index(ended)), "packets after `ended`"


@pytest.mark.parametrize("kind", KINDS)
@with_fades_in_time
async def test_another_track_lets_the_old_one_fade(antiphon, media, new_session, kind):
    first, second = tone_clip(PITCH, 20, KINDS[kind]), tone_clip(523, 5, FLAC)
    media.make(first, second)
    async with listen(antiphon.router.url, new_session()) as listener:
        await listener.play(first.url)
        await listener.wait_packets(30)
        await listener.play(second.url)
        ended = await listener.wait_event("ended")
        assert ended["reason"] == "replaced", ended
        sound = sound_of(listener.packets(until=listener.index(ended)))
        assert_fades_out(sound, "the track that was replaced")
        assert_no_click(sound, "the track that was replaced")
        kinds = listener.course(since=listener.index(ended))
        assert kinds[:3] == ["ended", "extracting", "ready"], kinds
        await listener.command("stop")


@pytest.mark.parametrize("kind", KINDS)
@with_fades_in_time
async def test_a_seek_fades_and_leaves_nothing_of_the_old_place(antiphon, media, new_session, kind):
    clip = halves(KINDS[kind])
    media.path(clip)
    async with listen(antiphon.router.url, new_session()) as listener:
        await listener.play(clip.url)
        await listener.wait_packets(30)
        seeked = await listener.command("seek", position_ms=5_000)
        since = listener.index(seeked)
        after = await listener.wait_packets(40, since=since)
        assert after[0].position_ms == 5_000 and after[0].due_ns == seeked["due_ns"], (after[0].position_ms, seeked)
        assert_fades_out(sound_of(listener.packets(until=since)), "the place that was left")
        sound = sound_of(listener.packets())
        assert_no_click(sound, f"{kind}: seek", pitch=523)
        new = sound[-40 * FRAME :]
        # The codec's own noise is some 40 dB down; the old pitch would be there with -6 dB.
        assert tone_level_db(new[: 4 * FRAME], PITCH) < -40, "the old place sounds after `seeked`"
        assert tone_level_db(new[4 * FRAME :], 523) > -6.5
        await listener.command("stop")


@pytest.mark.parametrize("kind", KINDS)
@with_fades_in_time
async def test_another_volume_has_no_step(antiphon, media, new_session, kind):
    clip = tone_clip(PITCH, 30, KINDS[kind])
    media.path(clip)
    async with (
        listen(antiphon.router.url, new_session()) as listener,
        listen(antiphon.router.url, new_session()) as reference,
    ):
        await listener.play(clip.url)
        for level in (0.1, 1.0, 0.5, 1.0):
            await listener.wait_packets(25, since=listener.mark())
            status = await listener.command("volume", level=level)
            assert status["session"]["volume"] == level, status
        since = listener.index(status)
        settled = (await listener.wait_packets(40, since=since))[10:]
        packets = listener.packets()
        assert_unbroken(packets, "across the changes")
        sound = sound_of(packets)
        assert_no_click(sound, f"{kind}: volume")
        levels = {
            round(level_db(sound[index : index + FRAME])) for index in range(5 * FRAME, len(sound) - FRAME, FRAME)
        }
        assert min(levels) <= -28 and max(levels) == -9, f"the levels heard were {sorted(levels)}"
        if kind == "passthrough":
            assert status["session"]["passthrough"] is True, status
            await reference.play(clip.url, start_ms=settled[0].position_ms - 200)
            own = {packet.position_ms: packet.audio for packet in await reference.wait_packets(30)}
            common = [packet for packet in settled if packet.position_ms in own][5:]
            assert common and all(own[packet.position_ms] == packet.audio for packet in common), (
                "back at volume 1 the packets are not the file's own"
            )
        await listener.command("stop")


@pytest.mark.parametrize("kind", KINDS)
@with_fades_in_time
async def test_a_part_is_played_to_its_packet_and_fades(antiphon, media, new_session, kind):
    clip = tone_clip(PITCH, 20, KINDS[kind])
    media.path(clip)
    async with listen(antiphon.router.url, new_session()) as listener:
        await listener.play(clip.url, start_ms=2_000, end_ms=3_000)
        ended = await listener.wait_event("ended")
        packets = listener.packets()
        assert ended["reason"] == "finished" and ended["position_ms"] == 3_000, ended
        assert [packet.position_ms for packet in packets] == list(range(2_000, 3_000, 20))
        sound = sound_of(packets)
        assert np.max(np.abs(sound[:48])) < 0.03, "it does not begin in silence"
        assert_fades_out(sound, "the end of the part")
        assert_no_click(sound, f"{kind}: a part")


@pytest.mark.parametrize("kind", KINDS)
@with_fades_in_time
async def test_a_part_goes_round_without_a_gap(antiphon, media, new_session, kind):
    clip = tone_clip(PITCH, 20, KINDS[kind])
    media.path(clip)
    async with listen(antiphon.router.url, new_session()) as listener:
        await listener.play(clip.url, start_ms=2_000, end_ms=2_600, loop=True)
        packets = await listener.wait_packets(100)
        assert [packet.position_ms for packet in packets] == [2_000 + 20 * (index % 30) for index in range(100)]
        due = np.diff([packet.due_ns for packet in packets])
        assert np.all(due >= 19_999_000), "two packets are due less than 20 ms apart"
        assert not listener.events("buffering") and not listener.events("ended"), listener
        assert_no_click(sound_of(packets), f"{kind}: a part that goes round")
        await listener.command("stop")


@pytest.mark.measures
@with_fades_in_time
async def test_sixty_seeks_in_one_moment_all_fade(antiphon, media, new_session):
    """A cut waits for its fade, for half a second at most."""
    clip = tone_clip(PITCH, 20, OGG_OPUS)
    media.path(clip)
    sessions = [new_session() for _ in range(60)]
    async with connect_to_engine(antiphon.socket) as connection:
        await connection.wait_event("hello")
        for session in sessions:
            await connection.command(type="play", session_id=session, url=clip.url)
        await connection.wait(lambda: len(connection.packets(session=sessions[-1])) >= 30, "sound in every session")
        before = await figure(antiphon.engine, "antiphon_engine_cuts_without_fade_total")
        requests = [
            await connection.send(type="seek", session_id=session, position_ms=10_000 + 20 * number)
            for number, session in enumerate(sessions)
        ]
        places = [connection.index(await connection.wait_answer(request)) for request in requests]
        await connection.wait(
            lambda: all(
                len(connection.packets(since=place, session=session)) >= 10
                for place, session in zip(places, sessions, strict=True)
            ),
            "sound at every new place",
        )
        assert await figure(antiphon.engine, "antiphon_engine_cuts_without_fade_total") == before
        for place, session in zip(places, sessions, strict=True):
            old = sound_of(connection.packets(until=place, session=session)[-20:])
            new = sound_of(connection.packets(since=place, session=session)[:10])
            assert_fades_out(old, f"{session}: the place that was left")
            assert np.max(np.abs(new[:48])) < 0.03, f"{session}: the new place does not begin in silence"
            assert_no_click(np.concatenate([old, new]), f"{session}: seek")
            await connection.command(type="stop", session_id=session)


async def test_a_seek_behind_end_ms_is_refused(antiphon, media, new_session):
    clip = tone_clip(PITCH, 20, FLAC)
    media.path(clip)
    async with listen(antiphon.router.url, new_session()) as listener:
        await listener.play(clip.url, end_ms=15_000)
        answer = await listener.ask("seek", position_ms=15_000)
        assert answer["type"] == "error" and "end_ms" in answer["message"], answer
        await listener.command("stop")


async def test_commands_in_a_burst_are_all_answered_in_order(antiphon, media, new_session, bystander):
    """Each comes while the cut of the one before it waits for its packet."""
    clip = tone_clip(PITCH, 20, FLAC)
    media.path(clip)
    async with listen(antiphon.router.url, new_session()) as listener:
        await listener.play(clip.url)
        await listener.wait_packets(10)
        since = listener.mark()
        commands = [("pause", {}), ("resume", {}), ("seek", {"position_ms": 9_000}), ("seek", {"position_ms": 4_000})]
        commands += [("pause", {}), ("seek", {"position_ms": 7_000}), ("resume", {}), ("stop", {})]
        requests = [await listener.send(kind, **fields) for kind, fields in commands]
        await listener.wait(
            lambda: {event.get("request_id") for event in listener.events(since=since)} >= set(requests), "every answer"
        )
        answers = {event["request_id"]: event for event in listener.events(since=since) if "request_id" in event}
        kinds = [answers[request]["type"] for request in requests]
        wanted = ["paused", "resumed", "seeked", "seeked", "paused", "seeked", "resumed", "ended"]
        for request, kind, want in zip(requests, kinds, wanted, strict=True):
            # A place that is not produced yet may be waited for until something else is asked.
            is_overtaken = want == "seeked" and answers[request].get("code") == "superseded"
            assert kind == want or is_overtaken, (kinds, answers[request])
