"""Live sources for as long as `ANTIPHON_SOAK_SECONDS` says, with twenty times the churn that they have in use."""

import asyncio
import itertools
import os
import time

import pytest

import hls
from analysis import dominant_frequency
from client import listen
from figures import Figures, Footprint
from icecast import Icecast
from media import FLAC, tone_clip
from opus import RATE, sound_of
from processes import Antiphon

SECONDS = int(os.environ.get("ANTIPHON_SOAK_SECONDS", "0"))
pytestmark = [pytest.mark.measures, pytest.mark.skipif(not SECONDS, reason="ANTIPHON_SOAK_SECONDS says how long")]

STATION, STREAM = tone_clip(440, 20, FLAC), tone_clip(620, 20, FLAC)
#: A title is three minutes of a station, its source an hour; a listener stays for a minute.
TITLE_SECONDS, SOURCE_SECONDS, GUEST_SECONDS = 9, 175, 3
#: Of what is heard of the stream, which never stands still: clocks may differ by so much, in packets.
DRIFT = 100
GROWTH_MEBIBYTES = 8


async def test_live_sources_neither_drift_nor_grow(tmp_path, media, new_session):
    media.make(STATION, STREAM)
    figures = Figures()
    with Antiphon(tmp_path / "soak", media.root, allow=("127.0.0.1/32",)) as antiphon, Icecast(tmp_path) as icecast:
        icecast.feed("live", media.path(STATION))
        folder = tmp_path / "stream"
        with hls.broadcast(folder, media.path(STREAM)):
            async with hls.site(folder) as (site, _):
                await listen_long(antiphon, icecast, site, media, new_session, figures)
    figures.judge()


async def listen_long(antiphon, icecast, site, media, new_session, figures) -> None:
    async with (
        listen(antiphon.router.url, new_session()) as radio,
        listen(antiphon.router.url, new_session()) as stream,
    ):
        for listener, url in ((radio, f"{icecast.url}/live"), (stream, f"{site}/index.m3u8")):
            await first_answer(listener, url)
        churn = [
            asyncio.create_task(announce(icecast)),
            asyncio.create_task(restart(icecast, media)),
            asyncio.create_task(come_and_go(antiphon, icecast, new_session)),
        ]
        memory = [Footprint(server.pid) for server in (antiphon.engine, antiphon.router)]
        # What grows at the beginning are caches.
        await asyncio.sleep(SECONDS / 4)
        before, since, begun = [each.mebibytes() for each in memory], stream.mark(), time.monotonic()
        radio.received.clear()
        await asyncio.sleep(SECONDS * 3 / 4)
        heard, passed = len(stream.packets(since)), time.monotonic() - begun
        for name, each, start in zip(("engine", "Router"), memory, before, strict=True):
            figures.hold(f"{name}, MiB more than {start:.1f}", each.mebibytes() - start, at_most=GROWTH_MEBIBYTES)
        figures.hold("the stream's packets but 50 a second", abs(heard - passed * 50), at_most=DRIFT)
        figures.hold("the stream's gaps", len(stream.events("buffering", since)), at_most=0)
        figures.hold(
            "titles of the station", len(radio.events("metadata")), at_least=SECONDS * 3 / 4 / TITLE_SECONDS / 2
        )
        for name, listener, frequency in (("radio", radio, 440), ("stream", stream, 620)):
            sound = sound_of(listener.packets()[-100:])[RATE // 10 :]
            figures.hold(f"{name}, Hz from {frequency}", abs(dominant_frequency(sound) - frequency), at_most=3)
        for task in churn:
            task.cancel()
        for failure in await asyncio.gather(*churn, return_exceptions=True):
            assert isinstance(failure, asyncio.CancelledError), failure


async def first_answer(listener, url: str) -> None:
    """Until somebody feeds it."""
    while (await listener.ask("play", url=url))["type"] != "ready":
        await asyncio.sleep(0.2)


async def announce(icecast) -> None:
    for number in itertools.count():
        await asyncio.sleep(TITLE_SECONDS)
        await icecast.announce("live", f"Ann - {number}")


async def restart(icecast, media) -> None:
    while True:
        await asyncio.sleep(SOURCE_SECONDS)
        icecast.silence("live")
        icecast.feed("live", media.path(STATION))


async def come_and_go(antiphon, icecast, new_session) -> None:
    while True:
        async with listen(antiphon.router.url, new_session()) as guest:
            await guest.ask("play", url=f"{icecast.url}/live")
            await asyncio.sleep(GUEST_SECONDS)
            await guest.ask("stop")
