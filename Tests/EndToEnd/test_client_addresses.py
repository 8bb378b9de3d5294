"""antiphon_client where there are several Routers: which is tried next, and when it waits."""

import asyncio
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest
from aiohttp import WSCloseCode, web
from antiphon_client import AntiphonError, Session, link
from antiphon_client.addresses import Addresses

from hearing import until
from processes import free_port

SESSION = {
    "type": "session",
    "session": {"state": "idle"},
    "queue": {"total": 0, "tracks": []},
    "engine": {"connected": True},
}


class StandIn:
    """In place of a Router: lets everyone in, and closes when it is told to."""

    def __init__(self) -> None:
        self.url = f"http://127.0.0.1:{free_port()}"
        self.count = 0
        #: What it refuses with, instead of letting in.
        self.status: int | None = None
        self._sockets: list[web.WebSocketResponse] = []

    async def take(self, request: web.Request) -> web.StreamResponse:
        if self.status:
            # aiohttp's client is told the status alone, and asks once more for the reason.
            self.count += "Sec-WebSocket-Protocol" in request.headers
            return web.Response(status=self.status)
        self.count += 1
        socket = web.WebSocketResponse(protocols=("antiphon.opus.v1",))
        await socket.prepare(request)
        self._sockets.append(socket)
        await socket.send_json(SESSION)
        async for _ in socket:
            pass
        return socket

    async def close(self, code: int) -> None:
        for socket in self._sockets:
            await socket.close(code=code)
        self._sockets.clear()


@asynccontextmanager
async def stand_in():
    router = StandIn()
    application = web.Application()
    application.router.add_get("/ws", router.take)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", int(router.url.rpartition(":")[2])).start()
    try:
        yield router
    finally:
        await runner.cleanup()


@pytest.fixture
def endless_waits(monkeypatch):
    """What waits between two attempts is not heard of again."""
    monkeypatch.setattr(link, "random", SimpleNamespace(uniform=lambda *_: 10_000))


@pytest.mark.parametrize("url", ["http://a, http://b/ ,http://c", ["http://a", "http://b/", "http://c"]])
def test_all_are_tried_before_a_wait(url):
    addresses = Addresses(url)
    assert addresses.current == "http://a"
    for _ in range(2):
        assert [addresses.advance() for _ in range(3)] == [True, True, False] and addresses.current == "http://a"
        addresses.begin_round()


@pytest.mark.parametrize("url", ["", " , ", []])
def test_there_has_to_be_one(url):
    with pytest.raises(ValueError, match="no address"):
        Session(url, "guild")


async def test_an_address_where_nobody_is_does_not_matter(endless_waits):
    async with stand_in() as router, Session([f"http://127.0.0.1:{free_port()}", router.url], "guild") as session:
        assert session.state.connected and session.url == router.url


@pytest.mark.parametrize("code", [WSCloseCode.ABNORMAL_CLOSURE, WSCloseCode.GOING_AWAY, WSCloseCode.SERVICE_RESTART])
async def test_the_next_is_tried_at_once_and_after_all_of_them_it_waits(endless_waits, code):
    async with stand_in() as one, stand_in() as two, Session(f"{one.url},{two.url}", "guild") as session:
        lost = []
        session.on("connection", lambda event: lost.append(event) if not event["connected"] else None)
        assert session.url == one.url
        await one.close(code)
        await until(lambda: two.count == 1 and session.state.connected, "the other Router")
        assert session.url == two.url and one.url in lost[0]["error"]["message"], lost
        await two.close(WSCloseCode.GOING_AWAY)
        await until(lambda: not session.state.connected, "loss")
        await asyncio.sleep(0.1)
        assert (one.count, two.count) == (1, 1)


async def test_a_refusal_is_no_reason_to_ask_nobody_else(endless_waits):
    async with stand_in() as one, stand_in() as two:
        one.status = two.status = 503
        session = Session([one.url, two.url], "guild", patience=0.5)
        with pytest.raises(AntiphonError, match="503"):
            await session.start()
        assert (one.count, two.count) == (1, 1)
        await session.close()


async def test_a_session_that_has_moved_is_followed_at_once(endless_waits):
    """With one address, a balancer's for example. One that is sent on again at once waits like others."""
    async with stand_in() as balancer, Session(balancer.url, "guild") as session:
        await asyncio.sleep(1.5 * link.FIRST_RETRY_SECONDS)
        await balancer.close(WSCloseCode.SERVICE_RESTART)
        await until(lambda: balancer.count == 2 and session.state.connected, "the session's new Router")
        await balancer.close(WSCloseCode.SERVICE_RESTART)
        await until(lambda: not session.state.connected, "loss")
        await asyncio.sleep(0.1)
        assert balancer.count == 2


async def test_a_real_router_is_found_after_another_is_killed(mortal, antiphon):
    async with Session([mortal.router.url, antiphon.router.url], "followed") as session:
        assert session.url == mortal.router.url
        mortal.router.kill()
        await until(lambda: session.state.connected and session.url == antiphon.router.url, "the other Router")
        assert (await session.status())["type"] == "status"
