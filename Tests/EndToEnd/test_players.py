"""`/listen/ID.ogg`: what a media player makes of it."""

import asyncio
import json
import os
from contextlib import suppress

import aiohttp
import numpy as np

from analysis import assert_unbroken_tone, dominant_frequency, level_db
from client import listen
from media import MP3_CBR, tone_clip
from ogg import OggOpus, packet_samples, read_opus
from opus import FRAME, LOOKAHEAD, decode
from signals import AMPLITUDE, RATE

SONG = tone_clip(500, 30, MP3_CBR, 44_100)


async def fetch(url: str, enough) -> OggOpus:
    """Reads the endless stream until there is enough of it."""
    data = b""
    async with aiohttp.ClientSession() as http, http.get(url) as response:
        assert response.status == 200, (response.status, await response.text())
        assert response.content_type in ("audio/ogg", "application/ogg"), response.content_type
        async for chunk in response.content.iter_any():
            data += chunk
            if b"OpusTags" in data and enough(read_opus(data)):
                return read_opus(data)
    raise AssertionError(f"the stream ended after {len(data)} bytes")


async def run(*command: str, seconds: float | None = None) -> tuple[int, bytes, str]:
    """Runs a program to its end, or for some seconds and then interrupts it."""
    environment = os.environ | {"SDL_AUDIODRIVER": "dummy"}
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=environment,
    )
    try:
        if seconds:
            with suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), seconds)
                raise AssertionError(f"{command[0]} ended: {(await process.communicate())[1]}")
            process.terminate()
        output, errors = await asyncio.wait_for(process.communicate(), 30)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return process.returncode, output, errors.decode(errors="replace")


async def playing(antiphon, media, session: str):
    media.path(SONG)
    async with listen(antiphon.router.url, session) as listener:
        await listener.play(SONG.url)
        await listener.wait_packets(50)


async def test_the_stream_is_a_proper_ogg(antiphon, media, new_session):
    session = new_session()
    await playing(antiphon, media, session)
    stream = await fetch(f"{antiphon.router.url}/listen/{session}.ogg", lambda ogg: len(ogg.packets) >= 150)

    assert (stream.channels, stream.pre_skip, stream.family, stream.gain) == (2, LOOKAHEAD, 0, 0), stream
    assert len({page.serial for page in stream.pages}) == 1
    assert [page.sequence for page in stream.pages] == list(range(len(stream.pages))), "page numbers have gaps"
    assert all(page.checksum_fits for page in stream.pages), "a page's checksum is wrong"
    assert [page.first for page in stream.pages] == [True] + [False] * (len(stream.pages) - 1)
    assert not any(page.last for page in stream.pages), "an endless stream has no last page"
    assert len(stream.pages[0].packets) == 1 and stream.pages[0].granule == 0, "OpusHead has a page of its own"
    assert stream.pages[1].granule == 0 and len(stream.pages[1].packets) == 1, "OpusTags ends a page of its own"
    assert {packet_samples(packet) for packet in stream.packets} == {FRAME}
    granule = 0
    for page in stream.pages[2:]:
        granule += sum(packet_samples(packet) for packet in page.packets)
        assert page.granule == granule, f"page {page.sequence}: granule {page.granule}, {granule} samples so far"
        assert sum(packet_samples(packet) for packet in page.packets) <= RATE, f"page {page.sequence} holds over 1 s"
    sound = decode(stream.packets)[5 * FRAME :, 0]
    assert_unbroken_tone(sound, 500, AMPLITUDE, "the Ogg stream")


async def test_ffmpeg_and_ffprobe_and_ffplay_accept_it(antiphon, media, new_session):
    session = new_session()
    await playing(antiphon, media, session)
    url = f"{antiphon.router.url}/listen/{session}.ogg"
    probe, decoded, played = await asyncio.gather(
        run("ffprobe", "-v", "warning", "-of", "json", "-show_streams", "-show_format", url),
        run(
            "ffmpeg", "-v", "warning", "-nostdin", "-i", url, "-t", "3", "-f", "f32le", "-ac", "1", "-ar", "48000", "-"
        ),
        run("ffplay", "-v", "error", "-nodisp", url, seconds=3),
    )

    assert probe[0] == 0 and not probe[2].strip(), f"ffprobe: {probe[2]}"
    stream = json.loads(probe[1])["streams"][0]
    assert (stream["codec_name"], stream["sample_rate"], stream["channels"]) == ("opus", "48000", 2), stream
    assert decoded[0] == 0 and not decoded[2].strip(), f"ffmpeg: {decoded[2]}"
    sound = np.frombuffer(decoded[1], "<f4")
    assert abs(len(sound) / RATE - 3) < 0.05, f"{len(sound) / RATE:.3f} s of 3 s"
    measured = dominant_frequency(sound[RATE // 2 :])
    assert abs(measured - 500) < 1, f"{measured:.1f} Hz instead of 500 Hz"
    assert not played[2].strip(), f"ffplay: {played}"


async def test_opusinfo_finds_nothing_wrong(antiphon, media, new_session, tmp_path):
    """But that it was cut off: the file is the first seconds of an endless stream."""
    session = new_session()
    await playing(antiphon, media, session)
    path = tmp_path / "stream.opus"
    data = b""
    async with aiohttp.ClientSession() as http, http.get(f"{antiphon.router.url}/listen/{session}.ogg") as response:
        async for chunk in response.content.iter_any():
            data += chunk
            if b"OpusTags" in data and len(read_opus(data).packets) >= 100:
                break
    path.write_bytes(data[: data.rindex(b"OggS")])
    _, output, errors = await run("opusinfo", str(path))
    text = output.decode() + errors
    assert "Pre-skip: 312" in text and "Playback length" in text, text
    warnings = [line for line in text.splitlines() if "WARNING" in line and "EOS" not in line]
    assert not warnings, warnings


async def test_silence_keeps_the_player_connected(antiphon, media, new_session):
    """Silence before anything plays, then the song, then silence again, in one unbroken stream."""
    session = new_session()
    clip = tone_clip(700, 1, MP3_CBR)
    media.path(clip)
    url = f"{antiphon.router.url}/listen/{session}.ogg"
    async with listen(antiphon.router.url, session) as listener:
        stages: list[int] = []

        def enough(ogg: OggOpus) -> bool:
            if len(ogg.packets) >= 40 and not stages:
                stages.append(len(ogg.packets))
                asyncio.get_running_loop().create_task(listener.send("play", url=clip.url))
            if len(stages) == 1 and listener.events("ended"):
                stages.append(len(ogg.packets))
            return len(stages) == 2 and len(ogg.packets) >= stages[1] + 50

        stream = await asyncio.wait_for(fetch(url, enough), 30)
    granule = sum(packet_samples(packet) for packet in stream.packets)
    assert stream.pages[-1].granule == granule, (stream.pages[-1].granule, granule)
    sound = np.concatenate([piece for piece in [decode(stream.packets)]])[:, 0]
    begin, end = stages[0] * FRAME, stages[1] * FRAME
    assert level_db(sound[: begin - FRAME]) < -70, f"before the song: {level_db(sound[: begin - FRAME]):.1f} dB"
    loud = dominant_frequency(sound[begin:end])
    assert abs(loud - 700) < 3, f"the song sounds like {loud:.1f} Hz instead of 700 Hz"
    assert level_db(sound[-30 * FRAME :]) < -70, f"after the song: {level_db(sound[-30 * FRAME :]):.1f} dB"
