"""Connections and bodies that never come to an end, on both servers: closed in time, bounded, and others are served."""

import asyncio
import contextlib
import os
from pathlib import Path

import pytest

import github
from bystander import ENGINE_MEBIBYTES, beside
from client import bearer, raw_request, request
from containment import run, stranger
from figures import Footprint
from github import SECRET, deliver
from inbox import PATIENCE_SECONDS
from processes import Antiphon

#: Where strangers come from, who show no token.
ELSEWHERE = "127.0.0.2"
#: One that has asked for nothing yet.
ANOTHER = "127.0.0.3"

#: By then nothing is left of a connection that does not get on.
CLOSED_SECONDS = 50.0


@pytest.fixture
def antiphon(tmp_path, media, mint):
    secret = tmp_path / "github.secret"
    secret.touch(mode=0o600)
    secret.write_text(SECRET + "\n")
    options = (*mint.options, "--github-secret-file", str(secret))
    with Antiphon(tmp_path / "processes", media.root, router_options=options) as running:
        yield running


@pytest.mark.measures
async def test_deliveries_that_nobody_signed(antiphon, mint, media):
    """Twenty, each with 8 MiB of its body and then a byte a second: a true delivery is taken at once."""
    router = antiphon.router
    async with beside(antiphon, mint, media) as bystander:
        bodies = {"source": ELSEWHERE, "count": 20, "first_bytes": 8 << 20, "seconds": 20}
        async with stranger("webhooks", router=router.address, **bodies) as acting:
            await acting.ready()
            for number in range(3):

                async def delivery() -> None:
                    answer = await deliver(router.url, "star", github.star(1_296_269 + number))
                    assert answer.status == 202, answer

                await bystander.take("a true delivery", delivery)
            await acting.let_go()


@pytest.mark.measures
async def test_requests_of_strangers(antiphon, mint, media):
    """What is open to everyone, or says that it is not, asked for by somebody whom nobody knows. Then pipelined over
    256 connections as fast as they go, which all end at once."""
    async with beside(antiphon, mint, media) as bystander:
        asked = {"source": ELSEWHERE, "connections": 20, "seconds": 0.5}
        for path in ("/", "/health", "/api/v1/sessions", "/webhooks/github"):
            bystander.beside(path)
            method, body = ("POST", "{}") if "webhooks" in path else ("GET", "")
            what = {"method": method, "path": path, "body": body}
            await run("requests", router=antiphon.router.address, token=None, **what, **asked)
        bystander.beside("connections that end with requests in flight")
        asked = {"method": "GET", "path": "/health", "body": "", "source": ANOTHER, "connections": 256, "seconds": 2}
        await run("requests", router=antiphon.router.address, token=None, **asked)
        await asyncio.sleep(1)


@contextlib.asynccontextmanager
async def connections(antiphon, token: str, counts: dict[str, int]):
    """So many to each server, from strangers that tell how many are left after `CLOSED_SECONDS`."""
    held = {"source": ELSEWHERE, "counts": counts, "seconds": CLOSED_SECONDS}
    router, engine = antiphon.router.address, antiphon.engine.address
    async with (
        stranger("connections", address=router, path="/api/v1/sessions/a-1/play", token=token, **held) as first,
        stranger("connections", address=engine, path="/session/a-1/play", token=None, **held) as second,
    ):
        yield first, second


async def test_connections_that_do_not_get_on_are_closed(antiphon, mint):
    """And those whose client takes nothing of its answer, with what waits for it."""
    token = mint.token("a-*", "control", sub="stranger")
    descriptors = Path(f"/proc/{antiphon.router.pid}/fd")

    def sockets() -> set[str]:
        found = set()
        for each in descriptors.iterdir():
            # One may be closed between the list and the look at it.
            with contextlib.suppress(FileNotFoundError):
                found.add(os.readlink(each))
        return {name for name in found if "socket" in name}

    before = sockets()
    text = "GET /api/v1/openapi.yaml HTTP/1.1\n\r\n"
    held = [raw_request(antiphon.router.address, text, receive_buffer=4_096) for _ in range(8)]
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while len(untaken := sockets() - before) < len(held):
                await asyncio.sleep(0.05)
        async with connections(antiphon, token, {"plain": 30, "bodies": 30, "heads": 30}) as both:
            for each in both:
                assert await each.ready() == 90
            for name, each in zip(("Router", "engine"), both, strict=True):
                assert set((await each.reached())["open"].values()) == {0}, name
        async with asyncio.timeout(CLOSED_SECONDS):
            while untaken & sockets():
                await asyncio.sleep(0.1)
    finally:
        for each in held:
            each.close()


@pytest.mark.measures
async def test_connections_without_end(antiphon, mint, media):
    """Two thousand on each server: without a request, with a body by drips, with a head by drips."""
    token = mint.token("a-*", "control", sub="stranger")
    counts = {"plain": 1_400, "bodies": 300, "heads": 300}
    async with beside(antiphon, mint, media) as bystander:
        health = antiphon.engine.url + "/health"

        async def of_router() -> None:
            """Over a new connection each time."""
            own = bearer(bystander.token)
            answer = await request("GET", f"{antiphon.router.url}/api/v1/sessions/b-tone/queue", headers=own)
            assert answer.status == 200, answer

        async def of_engine() -> None:
            assert (await request("GET", health)).status == 200

        async with connections(antiphon, token, counts) as (first, second):
            print(await first.ready(), await second.ready(), "connections")
            for _ in range(5):
                await bystander.take("a new connection to the Router", of_router)
                await bystander.take("a new connection to the engine", of_engine)
                await asyncio.sleep(0.5)
        assert Footprint(antiphon.engine.pid).mebibytes() <= ENGINE_MEBIBYTES
