"""Seeking: what is heard afterwards is what was asked for, in every container."""

import asyncio

import numpy as np
import pytest

from analysis import heard_at
from client import Listener, listen
from inbox import assert_unbroken
from media import (
    AAC_ADTS,
    FLAC,
    M4A,
    MATROSKA_FLAC,
    MP3_CBR,
    MP3_VBR,
    MP3_VBR_BARE,
    OGG_OPUS,
    OGG_OPUS_60,
    OGG_OPUS_SURROUND,
    VORBIS,
    WAV,
    WEBM_OPUS,
    Clip,
    glides_clip,
    tone_clip,
)
from opus import FRAME, decode
from signals import RATE, Glides

SHORT = Glides(8, seed=5)
LONG = Glides(120, seed=6)

#: Name → encoding, rate, channels.
CONTAINERS = {
    "mp3-cbr": (MP3_CBR, 44_100, 2),
    "mp3-vbr": (MP3_VBR, 44_100, 2),
    "mp3-22k-mono": (MP3_VBR, 22_050, 1),
    "mp3-vbr-bare": (MP3_VBR_BARE, 44_100, 2),
    "m4a": (M4A, 44_100, 2),
    "aac-adts": (AAC_ADTS, 44_100, 2),
    "matroska-flac": (MATROSKA_FLAC, 44_100, 2),
    "flac": (FLAC, 44_100, 2),
    "flac-96k": (FLAC, 96_000, 2),
    "wav": (WAV, 48_000, 2),
    "wav-8k-mono": (WAV, 8_000, 1),
    "vorbis": (VORBIS, 44_100, 2),
    "ogg-opus": (OGG_OPUS, 48_000, 2),
    "ogg-opus-60ms": (OGG_OPUS_60, 48_000, 2),
    "ogg-opus-5.1": (OGG_OPUS_SURROUND, 48_000, 6),
    "webm-opus": (WEBM_OPUS, 48_000, 2),
}

#: What an encoder puts before the sound, in samples, where the file does not say so: it is played, as by everybody.
PRIMING = {"mp3-vbr-bare": 1_105, "aac-adts": 1_024}

#: After a jump a decoder needs a few packets before it sounds right.
SETTLE = 5


async def heard_after(listener: Listener, since: int, asked: int, source: Glides, what: str) -> list[str]:
    """What is wrong with the place that is heard after index `since`."""
    packets = await listener.wait_packets(SETTLE + 14, since=since)
    assert_unbroken(packets, what)
    # As the listener hears it: its decoder has the packets before in its memory.
    before = listener.packets(until=since)[-10:]
    sound = decode(packet.audio for packet in before + packets)[:, 0]
    place = heard_at(sound, (len(before) + SETTLE) * FRAME, source)
    priming = next((samples / 44.1 for name, samples in PRIMING.items() if what.startswith(name)), 0)
    heard = place.milliseconds - SETTLE * 20 + priming
    wrong = []
    # Between two of `locate`'s samples, high glides are out of phase.
    if place.likeness < (0.5 if priming else 0.8):
        wrong.append(f"{what}: after {asked} ms the sound is like no place of the source ({place})")
    elif abs(heard - asked) > 20:
        wrong.append(f"{what}: asked for {asked} ms, heard {heard:.1f} ms ({heard - asked:+.1f})")
    if abs(packets[0].position_ms - asked) > 20:
        wrong.append(f"{what}: asked for {asked} ms, the first packet says {packets[0].position_ms} ms")
    return wrong


async def seek(listener: Listener, asked: int, source: Glides, what: str) -> list[str]:
    seeked = await listener.command("seek", position_ms=asked)
    assert seeked["type"] == "seeked", seeked
    wrong = await heard_after(listener, listener.index(seeked), asked, source, f"{what}, seek")
    since = listener.index(seeked)
    first = listener.packets(since=since)[0]
    # A busy machine may have come too late for the first packet's time: then it is told again.
    between = listener.events(since=since, until=listener.received.index(first, since))
    told = [event for event in between if event["type"] in ("seeked", "playing", "rebased")][-1]
    if (first.position_ms, first.due_ns) != (told["position_ms"], told.get("due_ns")):
        wrong.append(f"{what}: told {told}, the next packet is at {first.position_ms} ms, {first.due_ns} ns")
    return wrong


def clips(length: str, source: Glides) -> dict[str, Clip]:
    return {
        name: glides_clip(f"glides-{length}-{name}", source, encoding, rate, channels)
        for name, (encoding, rate, channels) in CONTAINERS.items()
    }


async def test_a_seek_lands_within_one_packet(antiphon, media, new_session):
    """Forwards, backwards, to odd places and to the beginning."""
    songs = clips("short", SHORT)
    media.make(*songs.values())

    async def check(name: str) -> list[str]:
        wrong = []
        async with listen(antiphon.router.url, new_session()) as listener:
            await listener.play(songs[name].url)
            await listener.wait_packets(10)
            for asked in (5_210, 1_333, 0, 7_001):
                wrong += await seek(listener, asked, SHORT, name)
        return wrong

    wrong = sum(await asyncio.gather(*(check(name) for name in songs)), [])
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("encoding", [MP3_VBR, MP3_VBR_BARE], ids=["mp3-vbr", "mp3-vbr-bare"])
async def test_a_seek_in_an_uneven_file(antiphon, media, new_session, encoding):
    """A quiet minute of few bits, then a noisy one of many: by the bytes, half of the file is far from half of it."""
    source = Glides(60, seed=8)

    def samples(rate: int) -> np.ndarray:
        sound = source(rate)
        half = len(sound) // 2
        noise = np.random.default_rng(9).normal(0, 0.12, len(sound) - half)
        return np.concatenate([0.05 * sound[:half], sound[half:] + noise])

    clip = Clip(f"uneven-{encoding.name}", encoding, samples, 44_100)
    media.path(clip)
    async with listen(antiphon.router.url, new_session()) as listener:
        wrong = []
        # A start has a timeline of its own; so has the first seek behind what is produced.
        await listener.play(clip.url, start_ms=35_003)
        wrong += await heard_after(listener, 0, 35_003, source, f"{encoding.name}, start_ms")
        for asked in (50_123, 10_001, 58_000):
            wrong += await seek(listener, asked, source, encoding.name)
        await listener.command("stop")
    assert not wrong, "\n".join(wrong)


async def test_a_start_lands_within_one_packet(antiphon, media, new_session):
    songs = clips("short", SHORT)
    media.make(*songs.values())

    async def check(name: str) -> list[str]:
        async with listen(antiphon.router.url, new_session()) as listener:
            await listener.play(songs[name].url, start_ms=3_217)
            wrong = await heard_after(listener, 0, 3_217, SHORT, f"{name}, start_ms")
            await listener.command("stop")
        return wrong

    wrong = sum(await asyncio.gather(*(check(name) for name in songs)), [])
    assert not wrong, "\n".join(wrong)


async def test_a_start_is_the_whole_song_to_a_fraction_of_a_sample(antiphon, media, new_session):
    """At 44.1 kHz most packets begin between two samples: half a sample of 48 kHz turns this tone by 32 degrees."""
    frequency, settled, count = 8_500, 60, 50
    clip = tone_clip(frequency, 6, FLAC, 44_100)

    async def turn(start: int) -> complex:
        async with listen(antiphon.router.url, new_session()) as listener:
            # Each a track of its own, of which nothing is made already.
            await listener.play(media.fresh(clip), start_ms=start)
            packets = await listener.wait_packets(settled + count)
            await listener.command("stop")
        sound = decode(packet.audio for packet in packets[: settled + count])[settled * FRAME :, 0]
        first = packets[settled].position_ms * RATE // 1_000
        turns = np.exp(-2j * np.pi * frequency * (first + np.arange(len(sound))) / RATE)
        return np.sum(sound * turns)

    starts = (0, *range(1_000, 3_000, 220))
    turns = dict(zip(starts, await asyncio.gather(*map(turn, starts)), strict=True))
    degrees = {start: float(np.degrees(np.angle(turns[start] / turns[0]))) for start in turns}
    assert max(map(abs, degrees.values())) < 2, degrees


async def test_a_seek_beyond_what_is_produced(antiphon, media, new_session):
    """At once after the start of a long file: nothing of that place has been decoded yet."""
    songs = clips("long", LONG)
    songs = {
        name: songs[name] for name in ("mp3-cbr", "mp3-vbr", "m4a", "flac", "wav", "vorbis", "ogg-opus", "webm-opus")
    }
    media.make(*songs.values())

    async def check(name: str) -> list[str]:
        wrong = []
        async with listen(antiphon.router.url, new_session()) as listener:
            await listener.play(songs[name].url)
            for asked in (90_011, 50_010, 119_000):
                wrong += await seek(listener, asked, LONG, name)
            ended = await listener.wait_event("ended")
            if ended["reason"] != "finished" or abs(ended["position_ms"] - 120_000) > 40:
                wrong.append(f"{name}: a file of 120 s ended with {ended}")
        return wrong

    wrong = sum(await asyncio.gather(*(check(name) for name in songs)), [])
    assert not wrong, "\n".join(wrong)


async def test_a_seek_while_paused_is_heard_on_resume(antiphon, media, new_session):
    song = clips("short", SHORT)["m4a"]
    media.path(song)
    async with listen(antiphon.router.url, new_session()) as listener:
        await listener.play(song.url)
        await listener.wait_packets(10)
        await listener.command("pause")
        seeked = await listener.command("seek", position_ms=4_440)
        assert seeked["type"] == "seeked" and "due_ns" not in seeked, seeked
        resumed = await listener.command("resume")
        assert not listener.packets(listener.index(seeked), listener.index(resumed)), "packets while paused"
        wrong = await heard_after(listener, listener.index(resumed), 4_440, SHORT, "seek while paused")
        assert not wrong, wrong
        await listener.command("stop")


@pytest.mark.parametrize("asked", [8_500, 3_600_000])
async def test_a_seek_past_the_end_is_answered(antiphon, media, new_session, bystander, asked):
    """By the end or by an error, but not by endless silence."""
    song = clips("short", SHORT)["flac"]
    media.path(song)
    async with listen(antiphon.router.url, new_session()) as listener:
        await listener.play(song.url)
        await listener.wait_packets(10)
        answer = await listener.ask("seek", position_ms=asked)
        if answer["type"] == "seeked":
            ended = await listener.wait_event("ended", seconds=5)
            assert ended["reason"] == "finished", ended
        else:
            assert answer["type"] == "error" and answer["code"] == "invalid_command", answer
