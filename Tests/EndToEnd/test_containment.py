"""Floods of a greedy client's, beside a bystander who must not notice: no gap, no packet lost, answers in time."""

import asyncio
import json
import time

import pytest

from bystander import TONE, beside
from containment import post, run, stranger
from processes import Antiphon

pytestmark = pytest.mark.measures

#: A folder whose listing is as long as one may be.
LONG_FOLDER = "containment-many"
SHORT_FOLDER = "containment-few"


@pytest.fixture
def antiphon(tmp_path, media, mint):
    """Of the test's own: what a flood leaves in memory is not another's."""
    for name, count in ((LONG_FOLDER, 2_000), (SHORT_FOLDER, 3)):
        folder = media.root / name
        if not folder.exists():
            folder.mkdir()
            for number in range(count):
                (folder / f"{number}-{'x' * 200}.mp3").touch()
    # Slow streams are fetched from here.
    with Antiphon(tmp_path, media.root, allow=("127.0.0.1/32",), router_options=mint.options) as running:
        yield running


@pytest.fixture
def token(mint):
    """Of the stranger, who may command their own sessions and nothing else."""
    return mint.token("a-*", "control", sub="stranger")


@pytest.fixture
def listening(mint):
    """Of a stranger who may only listen."""
    return mint.token("a-*", "listen", sub="stranger")


async def play(antiphon, token: str, sessions: list[str]) -> None:
    for session in sessions:
        answer = await post(antiphon.router.url, f"/api/v1/sessions/{session}/play", token, {"url": TONE.url})
        assert answer.status == 200, answer


async def fill_queue(antiphon, token: str, session: str, count: int) -> int:
    """A long queue of short entries behind a track that plays; how many it took."""
    path, total = f"/api/v1/sessions/{session}/queue", 0
    for _ in range(count // 500):
        answer = await post(antiphon.router.url, path, token, {"tracks": [{"url": TONE.url}] * 500})
        if answer.status != 200:
            break
        total = answer.body["total"]
    return total


def path_of(kind: str) -> tuple[str, str, str]:
    """The same command over REST: method, path and body."""
    session = "/api/v1/sessions/a-1"
    return {
        "why": ("GET", f"{session}/why", ""),
        "status": ("GET", session, ""),
        "ping": ("GET", f"{session}/history", ""),
        "volume": ("POST", f"{session}/volume", '{"level":0.7}'),
        "queue_add": ("POST", f"{session}/queue", json.dumps({"url": TONE.url})),
        "queue_shuffle": ("POST", f"{session}/queue/shuffle", "{}"),
        "media": ("GET", f"/api/v1/media?path={LONG_FOLDER}", ""),
    }[kind]


def texts_of(kind: str) -> list[str]:
    fields = {"ping": {"t": 1}, "queue_add": {"url": TONE.url}, "media": {"path": LONG_FOLDER}}.get(kind, {})
    if kind == "volume":
        return [json.dumps({"type": kind, "level": level / 100}) for level in range(50, 90)]
    return [json.dumps({"type": kind, **fields})]


#: What needs a token that may only listen, and the rest: the last leaves productions behind, which are no other's.
SHOWN = ("why", "status", "ping")
KINDS = (*SHOWN, "media", "queue_shuffle", "queue_add", "volume")


async def test_floods_of_commands(antiphon, mint, media, token):
    """Each kind over one WebSocket, over twenty, and over kept HTTP connections; each by another client, which has
    spent none of its budget."""
    sessions = [f"a-{number}" for number in range(1, 5)]
    media.path(TONE)
    await play(antiphon, token, sessions)
    assert await fill_queue(antiphon, token, sessions[0], 10_000) >= 500
    async with beside(antiphon, mint, media) as bystander:
        router = antiphon.router.address
        listing = asyncio.create_task(_list_now_and_then(bystander))
        for kind in KINDS:
            shown = mint.token("a-*", "listen" if kind in SHOWN else "control", sub=f"stranger-{kind}")
            bystander.beside(kind)
            for connections in (1, 20):
                flood = {"texts": texts_of(kind), "sessions": sessions, "connections": connections, "seconds": 0.5}
                reached = await run("flood", router=router, token=shown, **flood)
                bystander.figures.hold(f"{kind}: WebSockets, of {connections}", reached["connections"], at_least=1)
            method, path, body = path_of(kind)
            asked = {"method": method, "path": path, "body": body, "connections": 10, "seconds": 0.5}
            await run("requests", router=router, token=shown, **asked)
        listing.cancel()
    # The link to the engine, which all share, has not been broken.
    log = antiphon.router.log.read_text(errors="replace")
    assert log.count("connected to AudioEngine") == 1, log[-2_000:]


async def _list_now_and_then(bystander) -> None:
    while True:
        await bystander.take("a listing of a folder", lambda: bystander.get(f"/api/v1/media?path={SHORT_FOLDER}"))
        await asyncio.sleep(0.2)


async def test_floods_of_frames(antiphon, mint, media, listening):
    """What is no command costs the Router no more over five hundred WebSockets than over one. And a message in more
    pieces than it may have, with further ones while the Router waits for the close's answer."""
    async with beside(antiphon, mint, media) as bystander:
        router = antiphon.router.address
        for kind in ("pings", "fragments"):
            bystander.beside(kind)
            begun, used = time.monotonic(), bystander.router.cpu_seconds()
            sent = {"sessions": ["a-1", "a-2"], "kind": kind, "connections": 500, "seconds": 2}
            reached = await run("frames", router=router, token=listening, **sent)
            cores = (bystander.router.cpu_seconds() - used) / (time.monotonic() - begun)
            bystander.figures.hold(f"{kind}: WebSockets", reached["connections"], at_least=400)
            bystander.figures.hold(f"{kind}: Router, cores", cores, at_most=0.4)
        bystander.beside("fragments of a connection that is closing")
        await run("fragments", router=router, token=listening, session="a-1", connections=4, seconds=2)


async def test_three_greedy_clients_at_once(antiphon, mint, media):
    """Of three tokens: one asks, one shuffles, and one has streams opened that never come."""
    media.path(TONE)
    tokens = {name: mint.token(f"{name}-*", "control", sub=name) for name in ("c", "d", "e")}
    slow = mint.token("a-*", "control", sub="slow")
    for name in ("c", "d"):
        await play(antiphon, tokens[name], [f"{name}-1"])
    await fill_queue(antiphon, tokens["d"], "d-1", 5_000)
    async with beside(antiphon, mint, media):
        router = antiphon.router.address
        floods = [
            run("flood", router=router, token=tokens[name], texts=texts_of(kind), sessions=[f"{name}-1"], **rest)
            for name, kind, rest in (
                ("c", "status", {"connections": 20, "seconds": 2}),
                ("d", "queue_shuffle", {"connections": 5, "seconds": 2}),
            )
        ]
        async with stranger("slow_streams", router=router, token=slow, count=62, seconds=10) as opening:
            await opening.ready()
            await asyncio.gather(*floods)
            await opening.let_go()
