"""What one client may make the Router hold or do over `/stream`, beside others who go on hearing their music."""

import asyncio
import itertools
import json
import re
import socket
from pathlib import Path

import aiohttp
import pytest

import github
from client import bearer, raw_request, request
from github import SECRET, accepted, deliver
from inbox import reading
from processes import Antiphon, Server
from stream import Stream, stream

_numbers = itertools.count(5_000_000)

#: Under any one client; an idle Router has 41 MiB.
MEMORY_MIB = 150


@pytest.fixture(scope="module")
def antiphon(tmp_path_factory, media):
    file = tmp_path_factory.mktemp("secret") / "github.secret"
    file.touch(mode=0o600)
    file.write_text(SECRET)
    options = ("--github-secret-file", str(file))
    with Antiphon(tmp_path_factory.mktemp("budgets"), media.root, router_options=options) as running:
        yield running


@pytest.fixture
def number() -> int:
    """A repository that no other test uses."""
    return next(_numbers)


@pytest.fixture(scope="module")
def locked(tmp_path_factory, media, mint):
    """One that asks for tokens."""
    with Antiphon(tmp_path_factory.mktemp("locked"), media.root, router_options=mint.options) as running:
        yield running


def resident_mib(server: Server, name: str = "VmRSS") -> float:
    status = Path(f"/proc/{server.pid}/status").read_text()
    return int(re.search(rf"{name}:\s+(\d+) kB", status)[1]) / 1_024


async def pieces_of(router: str, number: int, count: int) -> None:
    for each in range(count):
        accepted(await deliver(router, "push", github.push(number, f"piece {each}")))
    await until_composed(router, number, count)


async def until_composed(router: str, repository: object, count: int, token: str | None = None) -> None:
    while True:
        address = f"{router}/api/v1/repositories/{repository}/events?limit=1"
        answer = await request("GET", address, headers=bearer(token))
        if answer.status == 200 and answer.body["total"] == count:
            return
        await asyncio.sleep(0.05)


def silent_stream(server: Server, host: str, path: str) -> socket.socket:
    """A client at an address that asks for a stream, and reads nothing of it."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    client.bind((host, 0))
    name, port = server.address.split(":")
    client.connect((name, int(port)))
    client.sendall(f"GET {path} HTTP/1.1\r\nHost: {server.address}\r\n\r\n".encode())
    return client


@pytest.mark.parametrize("greedy", [1, 3])
async def test_240_streams_that_read_nothing(antiphon, number, greedy):
    """Each comes with a `Last-Event-ID` of its own, from so many clients. Another one gets its pieces in time."""
    router, other = antiphon.router.url, next(_numbers)
    await pieces_of(router, number, 60)
    Path(f"/proc/{antiphon.router.pid}/clear_refs").write_text("5")
    silent = [
        silent_stream(
            antiphon.router,
            f"127.0.0.{10 + each % greedy}",
            f"/stream/{number}?encoding={('json', 'pcm16')[each // greedy % 2]}&lastEventId={each % 60}",
        )
        for each in range(240)
    ]
    try:
        connector = aiohttp.TCPConnector(local_addr=("127.0.0.2", 0))
        async with (
            aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=None)) as http,
            http.get(f"{router}/stream/{other}") as response,
        ):
            bystander = Stream("bystander")
            async with reading(bystander.read(response)):
                await bystander.wait_event("connected")
                # Longer than streams that take nothing keep others from their room.
                for count in range(1, 9):
                    accepted(await deliver(router, "push", github.push(other, "On time")))
                    async with asyncio.timeout(5):
                        assert len(await bystander.buffers(count)) == count
                    await asyncio.sleep(1.5)
                assert not bystander.events("error") and not bystander.events("disconnected")
        peak = resident_mib(antiphon.router, "VmHWM")
        print(f"peak {peak:.0f} MiB, now {resident_mib(antiphon.router):.0f} MiB")
        assert peak <= MEMORY_MIB
    finally:
        for client in silent:
            client.close()


async def test_one_that_reads_nothing_and_one_that_reads_of_the_same_client(antiphon, number):
    """A stream without room for the next piece gets it later, and loses nothing."""
    router = antiphon.router.url
    silent = [
        raw_request(antiphon.router.address, f"GET /stream/{number}?encoding=json HTTP/1.1\n\r\n", receive_buffer=4_096)
        for _ in range(20)
    ]
    try:
        async with stream(router, number) as reader, stream(router, number, "json") as patient:
            await reader.wait_event("connected")
            await patient.wait_event("connected")
            for each in range(6):
                accepted(await deliver(router, "push", github.push(number, f"{each}")))
            assert [piece["id"] for piece in await reader.buffers(6)] == [1, 2, 3, 4, 5, 6]
            # Those who take nothing are in its way for 10 s.
            async with asyncio.timeout(60):
                assert [piece["id"] for piece in await patient.buffers(6)] == [1, 2, 3, 4, 5, 6]
            assert not patient.events("error")
    finally:
        for client in silent:
            client.close()


async def test_streams_that_wait_for_nothing_are_small(antiphon, number):
    before = resident_mib(antiphon.router)
    clients = []
    try:
        for _ in range(500):
            clients.append(raw_request(antiphon.router.address, f"GET /stream/{number} HTTP/1.1\n\r\n"))
        while (await request("GET", f"{antiphon.router.url}/health/repo/{number}")).body["activeClients"] < 500:
            await asyncio.sleep(0.05)
        each_kib = (resident_mib(antiphon.router) - before) * 1_024 / 500
        print(f"{each_kib:.0f} KiB a stream")
        assert each_kib <= 150
    finally:
        for client in clients:
            client.close()


async def sample(router: str, session: str, token: str | None):
    return await request("POST", f"{router}/stream/{session}/test", {"event": "star"}, headers=bearer(token))


async def test_test_events_erase_nobody_elses_repositories(locked, mint):
    router = locked.router.url
    calm = mint.token("calm", "control", sub="calm")
    greedy = mint.token("a-*", "control", sub="greedy")
    assert (await sample(router, "calm", calm)).status == 202
    slowed = None
    for each in range(200):
        answer = await sample(router, f"a-{each}", greedy)
        assert answer.status in (202, 429, 503), answer
        slowed = slowed or (answer if answer.status == 429 else None)
    assert slowed is not None and slowed.code == "rate_limited", "nothing slowed it down"
    assert int(slowed.headers["Retry-After"]) >= 1 and "60" in slowed.body["message"], slowed
    assert (await sample(router, "calm", calm)).status == 202, "another was slowed"
    everyone = mint.token("*", "listen", sub="operator")
    answer = await request("GET", f"{router}/api/v1/repositories", headers=bearer(everyone))
    found = [each["id"] for each in answer.body["repositories"]]
    assert "calm" in found and len(found) <= 51, found


async def get(url: str, token: str) -> tuple[int, bytes]:
    async with aiohttp.ClientSession(headers=bearer(token)) as http, http.get(url) as response:
        return response.status, await response.read()


async def test_replays_are_made_once_and_a_few_at_a_time(locked, mint):
    router = locked.router.url
    token = mint.token("week", "control", sub="historian")
    assert (await sample(router, "week", token)).status == 202
    # What is composed meanwhile makes another replay of it.
    await until_composed(router, "week", 1, token)
    url = f"{router}/api/v1/repositories/week/replay.ogg"
    until = 1_800_000_000_000
    same = await asyncio.gather(*(get(f"{url}?until={until}", token) for _ in range(20)))
    assert {status for status, _ in same} == {200} and len({body for _, body in same}) == 1
    others = await asyncio.gather(*(get(f"{url}?until={until + each}", token) for each in range(1, 40)))
    assert {status for status, _ in others} == {200, 429}, [status for status, _ in others]
    # The next is made as if nothing had been.
    listener = mint.token("week", "listen", sub="another")
    assert (await request("GET", f"{router}/api/v1/repositories/week/replay", headers=bearer(listener))).status == 200


async def test_beds_of_one_client(tmp_path, media, mint):
    """Who listens to 56 repositories hears 50 of their beds, and is told why the others are silent."""
    secret = tmp_path / "secret"
    secret.touch(mode=0o600)
    secret.write_text(SECRET)
    with Antiphon(
        tmp_path,
        media.root,
        # The engine is to have room for all of them.
        engine_options=("--transcode-cpu-share", "100"),
        router_options=("--github-secret-file", str(secret), *mint.options),
    ) as antiphon:
        router = antiphon.router.url
        for each in range(1, 57):
            accepted(await deliver(router, "star", github.star(each)))
        silent: dict[str, dict] = {}

        async def listen(http: aiohttp.ClientSession, each: int) -> None:
            async with http.ws_connect(f"{router}/ws?session={each}", protocols=("antiphon.opus.v1",)) as socket:
                async for message in socket:
                    event = json.loads(message.data) if message.type == aiohttp.WSMsgType.TEXT else {}
                    if event.get("type") == "error":
                        silent[event["session_id"]] = event

        # One whose limits are the usual ones.
        headers = bearer(mint.token("*", "listen", sub="listener"))
        async with aiohttp.ClientSession(headers=headers) as http, asyncio.TaskGroup() as tasks, asyncio.timeout(60):
            listening = [tasks.create_task(listen(http, each)) for each in range(1, 57)]
            while len(silent) < 6 or (await request("GET", f"{router}/health")).body["sessions"] < 50:
                await asyncio.sleep(0.1)
            for task in listening:
                task.cancel()
        assert len(silent) == 6
        assert {event["code"] for event in silent.values()} == {"too_many_sessions"}, silent
