"""Processes in which media is parsed: one that dies is replaced, and nobody hears it."""

import asyncio
import contextlib
import os
import random
import signal
import statistics
import time
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from analysis import assert_unbroken_tone
from client import listen, request
from decoders import decoder_figures, decoders, shared_decoders
from figures import Footprint
from hearing import until
from inbox import assert_unbroken
from media import FLAC, tone_clip
from opus import FRAME, decode
from processes import Antiphon
from signals import AMPLITUDE

TONES = {frequency: tone_clip(frequency, 100, FLAC, 44_100) for frequency in range(400, 1_300, 150)}
#: Where in each tone a session begins: so far apart that each is produced for itself.
STARTS_MS = range(0, 28_000, 4_000)
#: Packets until an encoder has settled.
ONSET = 50
SHORT = tone_clip(700, 3, FLAC)
KILLS = 20
#: Kills between two tracks that somebody wants to hear at once.
KILLS_PER_START = 4
FRESH = [tone_clip(700, seconds / 10, FLAC, 44_100) for seconds in range(20, 20 + KILLS // KILLS_PER_START)]
SEED = 14


@pytest.fixture
def antiphon(tmp_path, media):
    media.make(*TONES.values(), *FRESH, SHORT)
    # Little is read ahead, so that all are produced all the time.
    options = ("--cache-bytes", "0", "--read-ahead-ms", "3000")
    with Antiphon(tmp_path, media.root, engine_options=options, allow=("127.0.0.1/32",)) as running:
        yield running


async def test_there_are_a_few_in_a_whole_sandbox(antiphon, new_session):
    """One at first; tracks that are produced side by side bring the others."""
    decoding = await decoder_figures(antiphon)
    walls = decoding.pop("unguarded")
    assert all(wall.startswith("landlock") for wall in walls), f"only Landlock may be missing in a kernel: {walls}"
    assert decoding == {"processes": 1, "deaths": 0}
    most = os.cpu_count() + 1
    async with contextlib.AsyncExitStack() as stack:
        for clip in TONES.values():
            listener = await stack.enter_async_context(listen(antiphon.router.url, new_session()))
            await listener.play(clip.url)
        await until(lambda: len(decoders(antiphon.engine.pid)) == most, f"{most} processes for {len(TONES)} tracks")
    assert await decoder_figures(antiphon) == {"processes": most, "deaths": 0, "unguarded": walls}


@pytest.mark.measures
async def test_killed_at_random_moments_and_nobody_hears_it(antiphon, new_session):
    dice = random.Random(SEED)
    begun_after = []
    async with contextlib.AsyncExitStack() as stack:
        listeners = []
        for frequency, clip in TONES.items():
            for start in STARTS_MS:
                listener = await stack.enter_async_context(listen(antiphon.router.url, new_session()))
                await listener.play(clip.url, start_ms=start)
                listeners.append((f"the {frequency} Hz listener from {start} ms", frequency, listener))
        marks = [listener.mark() for _, _, listener in listeners]
        fresh = iter(FRESH)
        while (deaths := (await decoder_figures(antiphon))["deaths"]) < KILLS:
            await asyncio.sleep(dice.uniform(0.02, 0.25))
            # A suspect whose own process is killed as well is taken for the killer.
            with contextlib.suppress(OSError, IndexError):
                victim = dice.choice(shared_decoders(antiphon.engine.pid))
                os.kill(victim, dice.choice((signal.SIGKILL, signal.SIGSEGV)))
            if deaths >= KILLS_PER_START * (len(begun_after) + 1):
                begun = time.monotonic()
                url = f"{antiphon.engine.url}/session/{new_session()}/play"
                answer = await request("POST", url, {"url": next(fresh).url})
                assert answer.status == 200, answer
                begun_after.append(time.monotonic() - begun)
        # More than was read ahead.
        await asyncio.gather(*(listener.wait_packets(200, since=listener.mark()) for _, _, listener in listeners))
        for mark, (who, frequency, listener) in zip(marks, listeners, strict=True):
            packets = listener.packets()
            assert not listener.events("buffering", since=mark), who
            assert len(packets) > 250, (who, listener.events()[-3:])
            assert_unbroken(packets, who)
            sound = decode(packet.audio for packet in packets)[ONSET * FRAME :, 0]
            assert_unbroken_tone(sound, frequency, AMPLITUDE, who)
    assert antiphon.engine.is_running
    assert Footprint(antiphon.engine.pid).peak_mebibytes() <= 400
    print("tracks began after", sorted(round(seconds * 1_000) for seconds in begun_after), "ms")
    assert statistics.median(begun_after) <= 0.3, begun_after


async def test_a_source_that_kills_twice_is_refused_and_others_play(antiphon, media, new_session):
    """Whichever process has its bytes is killed, as a hole in libav would."""
    sound = media.bytes(SHORT)
    asked, given = asyncio.Queue(), asyncio.Queue()

    async def serve(question: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse(headers={"Content-Length": str(len(sound)), "Content-Type": "audio/flac"})
        await answer.prepare(question)
        asked.put_nowait(True)
        await given.get()
        await answer.write(sound)
        return answer

    server = TestServer(web.Application())
    server.app.router.add_get("/killer.flac", serve)
    async with server:
        url = str(server.make_url("/killer.flac"))

        def play():
            return request("POST", f"{antiphon.engine.url}/session/{new_session()}/play", {"url": url})

        playing = asyncio.create_task(play())
        for _ in range(2):
            await asyncio.wait_for(asked.get(), 10)
            # By now a process waits for the bytes. It gets them when it can do nothing with them any more.
            await asyncio.sleep(0.5)
            pids = decoders(antiphon.engine.pid)
            for pid in pids:
                os.kill(pid, signal.SIGSTOP)
            given.put_nowait(True)
            # Until the engine has passed them on, on a machine however busy: who dies without them is no suspect.
            await asyncio.sleep(1.5)
            for pid in pids:
                os.kill(pid, signal.SIGKILL)
        answer = await asyncio.wait_for(playing, 10)
        assert (answer.status, answer.code) == (422, "source_crashes_decoder"), answer
        again = await play()
        assert again.code == "source_crashes_decoder" and "more" in again.body["message"], again
    other = await request("POST", f"{antiphon.engine.url}/session/{new_session()}/play", {"url": SHORT.url})
    assert other.status == 200, other


async def test_they_end_with_the_engine(antiphon):
    pids = decoders(antiphon.engine.pid)
    antiphon.engine.kill()
    await until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids), "the decoders end")
