"""Tracks and pages that are slow to open, of one client: others' begin in time, and a bystander hears on."""

import asyncio
import itertools
import time
from collections.abc import Callable, Coroutine

import pytest

from bystander import beside
from client import bearer, listen, request
from containers import named_texts
from containment import post, stranger
from extraction import COLD_SECONDS
from media import FLAC, MP3_CBR, tone_clip
from page_server import PageServer
from processes import Antiphon

pytestmark = pytest.mark.measures

SHORT = tone_clip(880, 3, FLAC)
SONG = tone_clip(660, 3, MP3_CBR, 44_100)

#: A local file's first packet while others open theirs. The machine is shared: the best of a few is held to it, each
#: to the longer time.
START_SECONDS = 0.3
SLOWEST_START_SECONDS = 1.0
TRIES = 3
TRIES_BESIDE_STREAMS = 6
#: What does not start by then does not start at all.
LOST_SECONDS = 10.0

#: A page of another client's, of which yt-dlp has to be asked while it waits for the stranger's.
RESOLVE_SECONDS = 5.0

_copies = itertools.count(1)


@pytest.fixture
def antiphon(tmp_path, media, mint):
    media.make(SHORT, SONG)
    with Antiphon(tmp_path, media.root, allow=("127.0.0.1/32",), router_options=mint.options) as running:
        yield running


@pytest.fixture
def token(mint):
    return mint.token("a-*", "control", sub="stranger")


async def start(bystander, url: str) -> float:
    """From a play to its first packet, in seconds."""
    session = f"b-new{next(_copies)}"
    async with listen(bystander.antiphon.router.url, session, token=bystander.token) as listener:
        begun = time.monotonic()
        await listener.send("play", url=url)
        try:
            await listener.wait_packets(1, seconds=LOST_SECONDS)
        except AssertionError:
            return LOST_SECONDS
        taken = time.monotonic() - begun
        await listener.command("stop")
        return taken


async def hold_starts(bystander, media, tries: int, between: Callable[[], Coroutine]) -> None:
    """Fresh tracks of the bystander's, each begun in time. `between` is done before each."""
    starts = []
    for _ in range(tries):
        await between()
        starts.append(await start(bystander, media.fresh(SHORT)))
        if starts[-1] > SLOWEST_START_SECONDS:
            break
    bystander.figures.hold("fastest start of another's file, s", min(starts), at_most=START_SECONDS)
    bystander.figures.hold("slowest start of another's file, s", max(starts), at_most=SLOWEST_START_SECONDS)


async def test_huge_tags_that_are_stopped(antiphon, mint, media, token):
    """Two files whose tags take a while to read, played and stopped after half a second: nobody waits for them."""
    song = media.bytes(SONG)
    files = [media.write(f"tags-{number}.mp3", named_texts(40_000, f"{number}-") + song) for number in range(2 * TRIES)]
    router = antiphon.router.url
    async with beside(antiphon, mint, media) as bystander:

        async def play_and_stop() -> None:
            two = [files.pop(), files.pop()]
            plays = [
                asyncio.create_task(post(router, f"/api/v1/sessions/a-{number}/play", token, {"url": url}))
                for number, url in enumerate(two)
            ]
            await asyncio.sleep(0.5)
            for number in range(len(two)):
                await post(router, f"/api/v1/sessions/a-{number}/stop", token)
            await asyncio.gather(*plays)

        await hold_starts(bystander, media, TRIES, play_and_stop)


async def test_slow_streams(antiphon, mint, media, token):
    """More streams that send a few bytes a second than there are workers: a few more, and many."""
    async with beside(antiphon, mint, media) as bystander:
        router = antiphon.router.address
        for count in (62, 100):
            bystander.beside(f"{count} slow streams")
            async with stranger("slow_streams", router=router, token=token, count=count, seconds=30) as acting:
                await acting.ready()
                await hold_starts(bystander, media, TRIES_BESIDE_STREAMS, lambda: asyncio.sleep(0.2))
                await acting.let_go()


async def test_hanging_pages(antiphon, mint, media, token):
    """Pages that yt-dlp waits for without end: another's page is resolved meanwhile."""
    with PageServer() as site:
        site.add("/song.mp3", lambda asked: asked.media(media.bytes(SONG)))
        site.add("/warm", lambda asked: asked.page('<audio src="song.mp3"></audio>'))
        good = site.add("/good", lambda asked: asked.page('<audio src="song.mp3"></audio>'))
        headers = bearer(mint.token("b-*", "control", sub="bystander"))
        # Loads yt-dlp, which takes seconds for anyone who is the first.
        resolve = "/api/v1/resolve?query="
        async with asyncio.timeout(COLD_SECONDS):
            warm = await request("GET", f"{antiphon.router.url}{resolve}{site.url}/warm", headers=headers)
        assert warm.status == 200, warm
        async with beside(antiphon, mint, media) as bystander:
            router = antiphon.router.address
            async with stranger("hanging_pages", router=router, token=token, count=40, seconds=30) as acting:
                await acting.ready()
                way = "another's page"
                await bystander.take(way, lambda: bystander.get(resolve + good), at_most=RESOLVE_SECONDS)
                await hold_starts(bystander, media, TRIES_BESIDE_STREAMS, lambda: asyncio.sleep(0.2))
                await acting.let_go()
