"""The engine's HTTP API, and clients that keep connections without using them."""

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from urllib.parse import urlsplit

import pytest

from client import request
from processes import Antiphon

#: Of one address, as docs/limits-and-quality.md says.
LIMIT = 128


@pytest.fixture
def engine(tmp_path, media):
    with Antiphon(tmp_path, media.root, router=False) as running:
        yield running.engine


@asynccontextmanager
async def connection(url: str):
    address = urlsplit(url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    try:
        yield reader, writer
    finally:
        writer.close()


async def test_a_body_that_comes_byte_by_byte_is_given_up(engine):
    async with connection(engine.url) as (reader, writer), asyncio.timeout(40):
        writer.write(b"POST /session/a/play HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n")
        # Not to the end: a byte that comes after it resets the connection.
        answer = asyncio.create_task(reader.readline())
        while not answer.done():
            writer.write(b" ")
            await asyncio.wait([answer], timeout=0.5)
        assert (await answer).startswith(b"HTTP/1.1 408 "), "it is told so, and the connection ends"
    assert (await request("GET", f"{engine.url}/health")).status == 200


async def test_one_connection_too_many_is_refused_and_the_others_stay(engine):
    async with AsyncExitStack() as stack:
        kept = [await stack.enter_async_context(connection(engine.url)) for _ in range(LIMIT)]
        async with connection(engine.url) as (reader, _), asyncio.timeout(10):
            assert b"503" in await reader.readline()
        reader, writer = kept[0]
        writer.write(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        metrics = await reader.read()
        assert metrics.startswith(b"HTTP/1.1 200 ")
        assert b"antiphon_engine_http_connections_refused_total 1\n" in metrics
        assert f"antiphon_engine_http_connections {LIMIT}\n".encode() in metrics
