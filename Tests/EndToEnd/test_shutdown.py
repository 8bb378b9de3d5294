"""SIGTERM: both say that they stop, answer who waits, and are gone within 5 s whatever their clients do."""

import asyncio
import os
import signal
import time
from collections import Counter
from contextlib import AsyncExitStack, closing

import aiohttp
import pytest

from client import connect_to_engine, listen, raw_request, request
from media import OGG_OPUS, tone_clip
from processes import Antiphon, wait_ready
from web_server import WebServer

SONG = tone_clip(440, 120, OGG_OPUS)
#: The contract.
LIMIT_SECONDS = 5


@pytest.fixture
def antiphon(tmp_path, media):
    media.path(SONG)
    with Antiphon(tmp_path, media.root, allow=("127.0.0.0/8",)) as running:
        yield running


async def stop(server) -> float:
    """Asks it to stop; how long it took."""
    begun = time.monotonic()
    status = await asyncio.to_thread(server.terminate)
    seconds = time.monotonic() - begun
    assert status == 0, f"{server.name} ended with {status}:\n{server.tail()}"
    assert seconds <= LIMIT_SECONDS, f"{server.name} took {seconds:.1f} s to stop:\n{server.tail()}"
    return seconds


UPGRADE = (
    "Connection: Upgrade\r\nUpgrade: websocket\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)
#: More is promised than comes.
UPLOAD = "Content-Length: 1000\r\n\r\n{"


async def test_listeners_are_told_and_closed_with_1001(antiphon, new_session):
    async with listen(antiphon.router.url, new_session()) as listener:
        await listener.play(SONG.url)
        await listener.wait_packets(5)
        stopping = asyncio.create_task(stop(antiphon.router))
        event = await listener.wait_event("closing")
        assert event == {"type": "closing", "reason": "the Router is stopping", "reconnect": True}, event
        # It still accepts connections, to be asked.
        ready = await request("GET", f"{antiphon.router.url}/ready")
        assert ready.status == 503 and ready.body["reasons"] == ["the Router is stopping"], ready
        assert (await request("GET", f"{antiphon.router.url}/health")).status == 200
        await stopping
        await asyncio.wait_for(wait_closed(listener), 5)
        assert listener.closed == "code 1001", listener.closed


async def wait_closed(listener) -> None:
    while listener.closed is None:
        await asyncio.sleep(0.01)


async def test_what_was_answered_before_it_stopped_is_on_disk(antiphon, new_session):
    """Commands come until its last moment; it ends cleanly, and begins again with what it has promised."""
    for _ in range(3):
        sessions, added = [new_session() for _ in range(8)], Counter()
        async with AsyncExitStack() as stack:
            clients = [await stack.enter_async_context(listen(antiphon.router.url, name)) for name in sessions]
            adding = [
                asyncio.create_task(keep_adding(client, session, added))
                for session, client in zip(sessions, clients, strict=True)
                for _ in range(4)
            ]
            await clients[0].wait_event("queue")
            # Both at once, as a service manager stops them: what the engine ends is written, too.
            await asyncio.gather(stop(antiphon.router), stop(antiphon.engine))
            for task in adding:
                task.cancel()
            await asyncio.wait(adding)
        assert added and "cannot be written" not in antiphon.router.log.read_text()
        await asyncio.to_thread(antiphon.engine.start)
        await asyncio.to_thread(antiphon.router.start)
        await asyncio.to_thread(wait_ready, antiphon.router)
        for session, count in added.items():
            queue = (await request("GET", f"{antiphon.router.url}/api/v1/sessions/{session}/queue")).body
            # The first one is played.
            there = queue["total"] + ("current" in queue)
            assert there >= count, f"{there} of {count} tracks are left in {session}"


async def keep_adding(client, session: str, added: Counter) -> None:
    while (await client.ask("queue_add", url=SONG.url))["type"] == "queue":
        added[session] += 1


async def test_no_client_keeps_the_router(antiphon, new_session):
    """Endless players, players and sockets that do not read, an upload that does not come, and nothing at all."""
    session = new_session()
    address = antiphon.router.address
    async with listen(antiphon.router.url, session) as listener, aiohttp.ClientSession() as http:
        await listener.play(SONG.url)
        await listener.wait_packets(5)
        async with http.get(f"{antiphon.router.url}/listen/{session}.ogg") as player:
            await player.content.readexactly(2_000)
            clients = [
                raw_request(address, f"GET /listen/{session}.ogg HTTP/1.1\n\r\n", receive_buffer=2_048),
                raw_request(address, f"GET /ws?session={session} HTTP/1.1\n{UPGRADE}", receive_buffer=2_048),
                raw_request(address, f"GET /ws?session={new_session()} HTTP/1.1\n{UPGRADE}"),
                raw_request(address, ""),
                raw_request(address, "GET /hea"),
                raw_request(address, f"POST /api/v1/sessions/{session}/play HTTP/1.1\n{UPLOAD}"),
            ]
            await listener.wait_packets(100)
            await stop(antiphon.router)
            # The one that reads is given the end of its stream, as the container has it.
            rest = await player.content.read()
            assert rest[rest.rindex(b"OggS") + 5] & 4, "the last page does not say that the stream ends"
            for client in clients:
                client.close()


async def test_a_second_signal_changes_nothing(antiphon, new_session):
    async with listen(antiphon.router.url, new_session()) as listener:
        for server in (antiphon.router, antiphon.engine):
            os.kill(server.pid, signal.SIGINT)
            os.kill(server.pid, signal.SIGTERM)
            await stop(server)
        await listener.wait_event("closing")


async def test_who_waits_at_the_router_is_answered(antiphon, media, new_session):
    with WebServer(media.root) as web:
        waiting = asyncio.create_task(
            request(
                "POST",
                f"{antiphon.router.url}/api/v1/sessions/{new_session()}/play",
                {"url": f"{web.url}/hang"},
            )
        )
        while not web.requests:
            await asyncio.sleep(0.02)
        await stop(antiphon.router)
        answer = await waiting
    assert answer.status == 503 and "the Router is stopping" in answer.body["message"], answer


async def test_who_waits_at_the_engine_is_answered(antiphon, media, new_session):
    with WebServer(media.root) as web:
        waiting = asyncio.create_task(
            request("POST", f"{antiphon.engine.url}/session/{new_session()}/play", {"url": f"{web.url}/hang"})
        )
        while not web.requests:
            await asyncio.sleep(0.02)
        await stop(antiphon.engine)
        answer = await waiting
    assert answer.status == 503 and answer.body["message"] == "the engine is stopping", answer


async def test_the_engine_tells_its_routers(antiphon, new_session):
    with closing(raw_request(antiphon.engine.address, f"POST /session/x/play HTTP/1.1\n{UPLOAD}")):
        async with connect_to_engine(antiphon.socket) as router, listen(antiphon.router.url, new_session()) as listener:
            await listener.play(SONG.url)
            await listener.wait_packets(5)
            stopping = asyncio.create_task(stop(antiphon.engine))
            event = await router.wait_event("error")
            assert event["code"] == "engine_unavailable" and event["message"] == "the engine is stopping", event
            assert "session_id" not in event, event
            ready = await request("GET", f"{antiphon.engine.url}/ready")
            assert ready.status == 503 and ready.body["reasons"] == ["the engine is stopping"], ready
            since = listener.mark()
            # It is heard until it goes.
            await listener.wait_packets(3, since=since)
            event = await listener.wait_event("engine")
            assert event["engine"] == {"connected": False, "message": "the engine is stopping"}, event
            await stopping
        ready = await request("GET", f"{antiphon.router.url}/ready")
        assert ready.status == 503 and len(ready.body["reasons"]) == 1, ready


async def test_a_router_that_reads_nothing_does_not_keep_the_engine(antiphon, new_session):
    async with (
        connect_to_engine(antiphon.socket, receive_buffer=1_024) as router,
        listen(antiphon.router.url, new_session()) as listener,
    ):
        router.reads.clear()
        await listener.play(SONG.url)
        await listener.wait_packets(100)
        await stop(antiphon.engine)
