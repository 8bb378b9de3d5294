"""Listeners that read nothing: what waits for them has a bound, and costs neither a core nor anybody's time."""

import asyncio
import time

import pytest

from bystander import TONE, Bystander, beside
from client import bearer, request
from containment import post, run, stranger
from figures import Footprint
from media import OGG_OPUS_LOUD, tone_clip
from processes import Antiphon
from stream import Stream, stream

pytestmark = pytest.mark.measures

#: 57 KB a second.
LOUD = tone_clip(523, 60, OGG_OPUS_LOUD)

REPOSITORY = "a-4711"
PIECES = 60

#: How much of a core the engine may take once all is rendered that somebody could want, and by when.
ENGINE_CORES = 0.5
REST_SECONDS = 10.0

#: Of the Router's memory, for what is kept for all joiners of one client's sessions or given to its listeners: the
#: Router's 16 MiB, and what the connections and sessions themselves take.
JOINING_MEBIBYTES = 50
PLAYER = "/listen/a-1.ogg?buffer_ms=5000"

#: From an event to its piece, at a client of another stream.
PIECE_SECONDS = 5.0

#: Of the Router's memory, for each listener that reads nothing.
LISTENER_KIBIBYTES = 40


@pytest.fixture
def antiphon(tmp_path, media, mint):
    media.path(TONE)
    with Antiphon(tmp_path, media.root, router_options=mint.options) as running:
        yield running


@pytest.fixture
def token(mint):
    return mint.token("a-*", "control", sub="stranger")


async def until_composed(router: str, token: str, count: int) -> None:
    """Until so many of the stranger's events have become music."""
    async with asyncio.timeout(20):
        while True:
            answer = await request("GET", f"{router}/api/v1/repositories/{REPOSITORY}/events", headers=bearer(token))
            if answer.status == 200 and len(answer.body["events"]) >= count:
                return
            await asyncio.sleep(0.05)


async def until_at_rest(engine: Footprint) -> float:
    """The cores that the engine takes, when they have come down, or at last."""
    deadline = time.monotonic() + REST_SECONDS
    while True:
        begun, used = time.monotonic(), engine.cpu_seconds()
        await asyncio.sleep(1)
        cores = (engine.cpu_seconds() - used) / (time.monotonic() - begun)
        if cores <= ENGINE_CORES or time.monotonic() > deadline:
            return cores


async def take_piece(bystander: Bystander, client: Stream) -> None:
    """Has something happen in the bystander's repository, which its stream tells in time."""
    since = client.mark()

    async def piece() -> None:
        await bystander.post("/stream/b-4711/test", {"event": "push"})
        await client.buffers(1, since)

    await bystander.take("another's piece", piece, at_most=PIECE_SECONDS)


async def test_event_streams_that_read_nothing(antiphon, mint, media, token):
    """Each asks for all that it missed, from another place on, in the longest encoding."""
    router = antiphon.router.url
    happened = [await post(router, f"/stream/{REPOSITORY}/test", token, {"event": "push"}) for _ in range(PIECES)]
    # A client has a right to some of them, whatever it is held to.
    taken = sum(answer.status == 202 for answer in happened)
    assert taken >= 10, happened[-1]
    await until_composed(router, token, taken)
    async with beside(antiphon, mint, media) as bystander:
        streams = {"repository": REPOSITORY, "pieces": taken, "count": 240, "encoding": "json", "seconds": 60}
        async with (
            stream(router, "b-4711", token=bystander.token) as client,
            stranger("event_streams", router=antiphon.router.address, token=token, **streams) as acting,
        ):
            bystander.figures.hold("event streams of the stranger's", await acting.ready())
            # While all that the stranger has missed is rendered and waits to be read.
            for _ in range(4):
                await take_piece(bystander, client)
                await asyncio.sleep(0.7)
            cores = await until_at_rest(bystander.engine)
            bystander.figures.hold("engine at the end, cores", cores, at_most=ENGINE_CORES)
            await acting.let_go()


async def test_listeners_that_read_nothing(antiphon, mint, media, token):
    """Two hundred on a session that has a long queue to greet them with."""
    router = antiphon.router.url
    assert (await post(router, "/api/v1/sessions/a-1/play", token, {"url": TONE.url, "paused": True})).status == 200
    url = "https://example.com/" + "x" * 4_000
    for _ in range(8):
        answer = await post(router, "/api/v1/sessions/a-1/queue", token, {"tracks": [{"url": url}] * 13})
        assert answer.status == 200, answer
    listening = mint.token("a-*", "listen", sub="silent")
    async with beside(antiphon, mint, media) as bystander:
        before = bystander.router.mebibytes()
        silent = {"session": "a-1", "count": 200, "seconds": 30}
        async with stranger("silent_websockets", router=antiphon.router.address, token=listening, **silent) as acting:
            count = await acting.ready()
            bystander.figures.hold("silent listeners", count, at_least=20)
            await asyncio.sleep(1)
            each = (bystander.router.mebibytes() - before) * 1_024 / max(count, 1)
            bystander.figures.hold("memory of each, KiB", each, at_most=LISTENER_KIBIBYTES)
            await acting.let_go()


async def test_listeners_that_are_given_much_on_joining(antiphon, mint, media, token):
    """Six hundred WebSockets, and then players, that want the last 5 s of a loud session and read none of it."""
    media.path(LOUD)
    assert (await post(antiphon.router.url, "/api/v1/sessions/a-1/play", token, {"url": LOUD.url})).status == 200
    begun = time.monotonic()
    listening = mint.token("a-*", "listen", sub="silent")
    async with beside(antiphon, mint, media) as bystander:
        await asyncio.sleep(begun + 5 - time.monotonic())
        before = bystander.router.mebibytes()
        for kind, wanted, most in (
            ("silent_websockets", {"session": "a-1&buffer_ms=5000"}, JOINING_MEBIBYTES),
            # Each has an Ogg stream and an HTTP request of its own besides: 16 KiB.
            ("silent_players", {"path": PLAYER}, JOINING_MEBIBYTES + 10),
        ):
            bystander.beside(kind)
            acting = stranger(kind, router=antiphon.router.address, token=listening, count=600, seconds=30, **wanted)
            async with acting as silent:
                bystander.figures.hold(f"{kind}, which read nothing", await silent.ready(), at_least=500)
                await asyncio.sleep(1)
                more = bystander.router.peak_mebibytes() - before
                bystander.figures.hold(f"{kind}: memory of all, MiB", more, at_most=most)
                await silent.let_go()


async def test_sessions_that_nobody_hears(antiphon, mint, media, token):
    """Four hundred loud ones, of which nobody joins any: what is kept for joiners has a bound."""
    media.path(LOUD)
    wanted = [("POST", "/api/v1/sessions/a-N/play", f'{{"url":"{LOUD.url}"}}', 400)]
    async with beside(antiphon, mint, media) as bystander:
        before = bystander.router.mebibytes()
        asked = {"wanted": wanted, "connections": 400, "seconds": 10}
        reached = await run("each_once", router=antiphon.router.address, token=token, **asked)
        bystander.figures.hold("sessions", reached["answers"].get("200", 0), at_least=300)
        await asyncio.sleep(6)
        more = bystander.router.mebibytes() - before
        bystander.figures.hold("memory of all, MiB", more, at_most=JOINING_MEBIBYTES)


async def test_replays_without_end(antiphon, mint, media, token):
    """Sixty at a time, each of another week: renderings of a minute, and others' pieces are still rendered."""
    happened = await post(antiphon.router.url, f"/stream/{REPOSITORY}/test", token, {"event": "push"})
    assert happened.status == 202, happened
    path, now = f"/api/v1/repositories/{REPOSITORY}/replay.ogg?until=", time.time_ns() // 1_000_000
    wanted = [("GET", f"{path}{now + minutes * 60_000}", "", 1) for minutes in range(2, 1_000)]
    listening = mint.token("a-*", "listen", sub="stranger")
    async with (
        beside(antiphon, mint, media) as bystander,
        stream(antiphon.router.url, "b-4711", token=bystander.token) as client,
    ):
        asked = {"wanted": wanted, "connections": 60, "seconds": 4, "again": True}
        router = antiphon.router.address
        replaying = asyncio.create_task(run("each_once", router=router, token=listening, **asked))
        await asyncio.sleep(0.5)
        while not replaying.done():
            await take_piece(bystander, client)
            await asyncio.sleep(0.7)
        await replaying
