"""Debug mode: `Router --listen-to ID` in a real pipe, beside the Router that serves."""

import asyncio
import os
import pty
import signal
import subprocess
from contextlib import asynccontextmanager

import numpy as np

from analysis import assert_unbroken_tone, dominant_frequency, level_db
from client import listen
from media import MP3_CBR, tone_clip
from ogg import packet_samples, read_opus
from opus import FRAME, decode
from processes import BINARIES
from signals import AMPLITUDE, RATE

SONG = tone_clip(500, 60, MP3_CBR, 44_100)
LIMIT_SECONDS = 5


@asynccontextmanager
async def listen_to(socket: str, session: str, output: int, *more: str):
    """Runs the debug listener with that descriptor as its standard output."""
    process = await asyncio.create_subprocess_exec(
        BINARIES / "Router",
        *("--engine-socket", socket, "--listen-to", session, *more),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=output,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def status(process) -> tuple[int, str]:
    """Waits for its end: its status and what it said."""
    errors = await asyncio.wait_for(process.stderr.read(), 15)
    return await asyncio.wait_for(process.wait(), 15), errors.decode()


async def test_ffmpeg_plays_the_pipe_and_its_end_is_quiet(antiphon, media, new_session):
    """Even where the Router's own address is taken: it listens on no port."""
    media.path(SONG)
    session = new_session()
    async with listen(antiphon.router.url, session) as listener:
        await listener.play(SONG.url)
        await listener.wait_packets(5)
        reading, writing = os.pipe()
        async with listen_to(antiphon.socket, session, writing, "--listen", antiphon.router.address) as source:
            os.close(writing)
            player = await asyncio.create_subprocess_exec(
                *("ffmpeg", "-v", "warning", "-nostdin", "-i", "-", "-t", "3"),
                *("-f", "f32le", "-ac", "1", "-ar", "48000", "-"),
                stdin=reading,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
            os.close(reading)
            output, errors = await asyncio.wait_for(player.communicate(), 30)
            assert player.returncode == 0 and not errors.strip(), errors
            # ffmpeg has gone with 3 s of it: nobody reads any more.
            code, said = await status(source)
        assert code == 0 and "the session plays" in said, (code, said)
        assert not any(word in said for word in ("ERROR", "CRITICAL", "WARNING", "Broken pipe")), said
        assert all(f"session={session}" in line for line in said.splitlines() if "the session" in line), said
        sound = np.frombuffer(output, "<f4")
        assert abs(len(sound) / RATE - 3) < 0.05, f"{len(sound) / RATE:.3f} s of 3 s"
        # What comes first may be silence, until the engine is connected.
        measured = dominant_frequency(sound[RATE:])
        assert abs(measured - 500) < 1, f"{measured:.1f} Hz instead of 500 Hz"
        # Nobody was disturbed, and the engine was told nothing.
        assert not listener.events("ended") and not listener.events("error"), listener


async def test_silence_until_it_plays_and_a_whole_file_at_the_end(antiphon, media, new_session, tmp_path):
    media.path(SONG)
    session = new_session()
    path = tmp_path / "heard.opus"
    with path.open("wb") as file:
        async with (
            listen_to(antiphon.socket, session, file.fileno()) as source,
            listen(antiphon.router.url, session) as tab,
        ):
            assert b"silence until it does" in await asyncio.wait_for(wait_line(source, b"the session"), 15)
            await wait_size(path, 30)
            await tab.play(SONG.url)
            await tab.wait_packets(100)
            source.send_signal(signal.SIGTERM)
            begun = asyncio.get_running_loop().time()
            code, said = await status(source)
            assert code == 0 and asyncio.get_running_loop().time() - begun < LIMIT_SECONDS, (code, said)
    stream = read_opus(path.read_bytes())
    assert all(page.checksum_fits for page in stream.pages) and stream.pages[-1].last
    assert {packet_samples(packet) for packet in stream.packets} == {FRAME}
    sound = decode(stream.packets)[:, 0]
    loud = [level_db(sound[at : at + FRAME]) > -40 for at in range(0, len(sound) - FRAME, FRAME)]
    first = loud.index(True)
    assert first > 10, "there was no silence before the song"
    last = len(loud) - 1 - loud[::-1].index(True)
    assert last - first > 80, (first, last)
    assert_unbroken_tone(sound[(first + 5) * FRAME : (last - 5) * FRAME], 500, AMPLITUDE, "the file")


async def wait_line(process, words: bytes) -> bytes:
    while words not in (line := await process.stderr.readline()):
        assert line, "it ended"
    return line


async def wait_size(path, packets: int) -> None:
    while not path.exists() or len(path.read_bytes()) < 200 or len(read_opus(path.read_bytes()).packets) < packets:
        await asyncio.sleep(0.05)


async def test_a_reader_that_stops_reading_keeps_nobody(antiphon, media, new_session):
    media.path(SONG)
    session = new_session()
    async with listen(antiphon.router.url, session) as listener:
        await listener.play(SONG.url)
        await listener.wait_packets(5)
        reading, writing = os.pipe()
        async with listen_to(antiphon.socket, session, writing) as source:
            os.close(writing)
            await wait_line(source, b"the session plays")
            # 64 KiB of a pipe are full after a few seconds.
            await listener.wait_packets(300, since=listener.mark())
            source.send_signal(signal.SIGTERM)
            begun = asyncio.get_running_loop().time()
            code, said = await status(source)
            assert code == 0 and asyncio.get_running_loop().time() - begun < LIMIT_SECONDS, (code, said)
        os.close(reading)


async def test_it_waits_for_an_engine(tmp_path, new_session):
    reading, writing = os.pipe()
    async with listen_to(str(tmp_path / "no.sock"), new_session(), writing) as source:
        os.close(writing)
        line = await asyncio.wait_for(wait_line(source, b"cannot reach the engine"), 15)
        assert b"trying again" in line, line
        beginning = await asyncio.to_thread(os.read, reading, 4)
        assert beginning == b"OggS"
        os.close(reading)
        assert (await status(source))[0] == 0


def test_a_terminal_is_refused(tmp_path):
    controller, terminal = pty.openpty()
    result = subprocess.run(
        [BINARIES / "Router", "--listen-to", "x", "--engine-socket", tmp_path / "no.sock"],
        stdin=subprocess.DEVNULL,
        stdout=terminal,
        stderr=subprocess.PIPE,
        timeout=15,
    )
    os.close(terminal)
    os.close(controller)
    assert result.returncode == 64 and b"ffplay" in result.stderr, result


def test_a_bad_session_is_refused():
    result = subprocess.run([BINARIES / "Router", "--listen-to", "a b"], capture_output=True, timeout=15)
    assert result.returncode == 64 and b"--listen-to" in result.stderr, result
