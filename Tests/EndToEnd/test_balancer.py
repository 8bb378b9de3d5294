"""deploy/cluster: a real Caddy with the balancer's configuration, and stand-ins for Routers that say who they are."""

import asyncio
import os
import shutil
import subprocess
import time
from contextlib import AsyncExitStack, asynccontextmanager

import aiohttp
import pytest
from aiohttp import web

from inbox import PATIENCE_SECONDS
from processes import ROOT, free_port

SHIPPED = ROOT / "deploy" / "cluster"

#: So many that both have some, whatever they are called.
SESSIONS = [f"guild:{number}.x" for number in range(16)]


class StandIn:
    """In place of a Router: says its name whatever it is asked."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.port = free_port()
        #: Whether it accepts connections and says nothing, as one that is frozen.
        self.is_frozen = False
        self.status = 200
        #: The requests of a session and others, without the balancer's own.
        self.asked: list[str] = []
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        application = web.Application()
        application.router.add_route("*", "/{path:.*}", self._take)
        self._runner = web.AppRunner(application, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port).start()

    async def stop(self) -> None:
        if self._runner:
            await self._runner.cleanup()
            self._runner = None

    async def _take(self, request: web.Request) -> web.StreamResponse:
        while self.is_frozen:
            await asyncio.sleep(0.05)
        if request.path == "/ready":
            return web.Response(status=self.status)
        self.asked.append(request.path_qs)
        if request.headers.get("Upgrade"):
            socket = web.WebSocketResponse()
            await socket.prepare(request)
            await socket.send_str(f"{self.name} {request.host}")
            async for message in socket:
                await socket.send_str(message.data)
            return socket
        if request.path.startswith(("/listen/", "/stream/")):
            response = web.StreamResponse()
            await response.prepare(request)
            await response.write(self.name.encode())
            await asyncio.sleep(PATIENCE_SECONDS)
            return response
        return web.Response(text=f"{self.name} {await request.text()}", status=self.status)


@pytest.fixture
async def routers():
    async with AsyncExitStack() as stack:
        both = [StandIn("one"), StandIn("two")]
        for router in both:
            stack.push_async_callback(router.stop)
            await router.start()
        yield both


@pytest.fixture
async def balancer(routers, tmp_path):
    """A client that has its address."""
    if shutil.which("caddy") is None:
        pytest.skip("there is no caddy (Debian's)")
    port = free_port()
    environment = {
        "HOME": str(tmp_path),
        "ANTIPHON_ROUTERS": " ".join(f"127.0.0.1:{router.port}" for router in routers),
        "ANTIPHON_SITE": f"http://127.0.0.1:{port}",
    }
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(
            ["caddy", "run", "--adapter", "caddyfile", "--config", str(SHIPPED / "Caddyfile")],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={"PATH": os.environ["PATH"], **environment},
        )
    try:
        async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as http:
            deadline = time.monotonic() + PATIENCE_SECONDS
            while True:
                try:
                    async with http.get("/") as response:
                        assert response.status == 200
                        break
                except aiohttp.ClientError:
                    assert process.poll() is None and time.monotonic() < deadline, (tmp_path / "log").read_text()
                    await asyncio.sleep(0.05)
            yield http
    finally:
        process.kill()
        process.wait()


@asynccontextmanager
async def opened(http: aiohttp.ClientSession, session: str):
    """A session's WebSocket, and who has taken it."""
    async with http.ws_connect("/ws", params={"session": session, "buffer_ms": 0}) as socket:
        name, host = (await socket.receive_str(timeout=PATIENCE_SECONDS)).split()
        assert host.startswith("127.0.0.1:"), "the Router has to know under which name it was reached"
        yield socket, name


async def taker(http: aiohttp.ClientSession, session: str) -> str:
    async with opened(http, session) as (_, name):
        return name


async def test_a_sessions_requests_go_to_one_router(balancer, routers):
    takers = {}
    for session in SESSIONS:
        async with opened(balancer, session) as (socket, name):
            takers[session] = name
            await socket.send_str("there and back")
            assert await socket.receive_str(timeout=PATIENCE_SECONDS) == "there and back"
        for path in (f"/api/v1/sessions/{session}", f"/api/v1/sessions/{session}/queue/3/move", f"/health/repo/{session}"):
            async with balancer.post(path, data="body") as response:
                assert await response.text() == f"{name} body", path
        # What has no end comes as it is sent.
        for path in (f"/listen/{session}.ogg", f"/stream/{session}?ticket=x"):
            async with balancer.get(path) as response:
                assert await asyncio.wait_for(response.content.readany(), PATIENCE_SECONDS) == name.encode(), path
    assert set(takers.values()) == {"one", "two"}, takers


async def test_a_clients_other_requests_go_to_one_router(balancer, routers):
    """So that a page's files are of one version."""
    paths = ["/", "/main.js", "/api/v1/tickets", "/artwork?session=x"]
    answers = set()
    for path in paths:
        async with balancer.get(path) as response:
            answers.add(await response.text())
    assert len(answers) == 1, answers
    async with balancer.get("/metrics") as response:
        assert response.status == 404
    assert not [path for router in routers for path in router.asked if path == "/metrics"]


@pytest.mark.parametrize("how", ["killed", "frozen", "not ready"])
async def test_the_other_router_takes_what_one_does_not(balancer, routers, how):
    one, two = routers
    before = {session: await taker(balancer, session) for session in SESSIONS}
    if how == "killed":
        await one.stop()
    else:
        one.is_frozen, one.status = how == "frozen", 503
        # Until the balancer has looked. A request from before that waits for its client to give up.
        asked = len(one.asked)
        await asyncio.sleep(2.5)
        assert len(one.asked) == asked
    after = {session: await taker(balancer, session) for session in SESSIONS}
    assert set(after.values()) == {"two"}, after
    async with balancer.post(f"/api/v1/sessions/{SESSIONS[0]}/play", data="body") as response:
        assert await response.text() == "two body"
    if how == "killed":
        await one.start()
    one.is_frozen, one.status = False, 200

    async def is_back() -> bool:
        return {session: await taker(balancer, session) for session in SESSIONS} == before

    deadline = asyncio.get_running_loop().time() + PATIENCE_SECONDS
    while not await is_back():
        assert asyncio.get_running_loop().time() < deadline, "it is left out although it is back"
        await asyncio.sleep(0.2)


async def test_where_none_is_ready_one_of_them_says_why(balancer, routers):
    for router in routers:
        router.status = 503
    await asyncio.sleep(2.5)
    async with balancer.post("/api/v1/sessions/x/play", data="body") as response:
        assert response.status == 503 and (await response.text()).split()[0] in ("one", "two")
    assert await taker(balancer, "x") in ("one", "two")


async def test_a_lost_router_ends_its_clients_connections(balancer, routers):
    """So that they come back, to the other one."""
    by_name = {router.name: router for router in routers}
    async with opened(balancer, "x") as (socket, name):
        await by_name[name].stop()
        message = await socket.receive(timeout=PATIENCE_SECONDS)
        assert message.type in (aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED, aiohttp.WSMsgType.ERROR), message
    other = next(router for router in routers if router.name != name)
    assert await taker(balancer, "x") == other.name
