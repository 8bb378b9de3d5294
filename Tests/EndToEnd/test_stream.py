"""`GET /stream/ID`: pieces as server-sent events, to plain clients."""

import asyncio
import ctypes
import itertools
import json
import socket
import struct

import aiohttp
import numpy as np
import pytest

import github
from access import ticket
from analysis import level_db
from client import bearer, raw_request, request
from documents import program
from github import SECRET, accepted, deliver
from inbox import PATIENCE_SECONDS
from metrics import wait_figure
from processes import ROOT, Antiphon, wait_ready
from stream import Stream, push, samples, stream

_numbers = itertools.count(3_000_000)

#: asm-generic/socket.h.
SO_ATTACH_FILTER = 26

#: Bytes of pieces that wait for clients.
WAITING = "antiphon_router_stream_waiting_bytes"


@pytest.fixture(scope="module")
def options(tmp_path_factory) -> tuple[str, ...]:
    file = tmp_path_factory.mktemp("secret") / "github.secret"
    file.touch(mode=0o600)
    file.write_text(SECRET)
    # Ten heartbeats make a client stale; half a minute is too long to wait for one.
    return ("--github-secret-file", str(file), "--stream-heartbeat-seconds", "1")


@pytest.fixture(scope="module")
def antiphon(tmp_path_factory, media, options):
    with Antiphon(tmp_path_factory.mktemp("stream"), media.root, router_options=options) as running:
        yield running


@pytest.fixture
def number() -> int:
    """A repository that no other test uses."""
    return next(_numbers)


async def test_a_push_is_heard_over_a_stream(antiphon, number):
    router = antiphon.router.url
    async with stream(router, number) as client:
        connected = await client.wait_event("connected")
        assert client.received[0] is connected and client.retry_ms == 3_000
        assert connected["id"] == 0 and connected["data"].keys() == {"clientId", "repoId", "encoding", "lastEventId"}
        assert connected["data"]["repoId"] == str(number) and connected["data"]["encoding"] == "opus"
        assert client.headers["Content-Type"] == "text/event-stream"
        assert client.headers["Cache-Control"] == "no-cache, no-transform"
        assert client.headers["X-Accel-Buffering"] == "no"
        await push(router, number, "Let it ring")
        [piece] = await client.buffers(1)
        events = [event for event in client.events() if event["type"] != "heartbeat"]
        assert [event["type"] for event in events] == ["connected", "musical_parameters", "audio_buffer"]
        # Who goes away between the two has not had the piece.
        assert [event["id"] for event in events] == [0, 0, 1]
        assert piece["data"]["repoId"] == str(number) and piece["data"]["event"]["title"] == "Let it ring"
        assert piece["data"]["params"] == events[1]["data"]["params"] and piece["data"]["params"]["key"]
        sound = samples(piece["data"]["buffer"])
        assert len(sound) == pytest.approx(piece["data"]["buffer"]["length"], abs=960)
        assert np.abs(sound).max() > 0.05 and np.abs(sound).max() <= 1.0


async def test_every_encoding_has_the_same_sound(antiphon, number):
    router = antiphon.router.url
    names = ("opus", "pcm16", "json", "json-deflate")
    async with (
        stream(router, number, "opus") as opus,
        stream(router, number, "pcm16") as pcm,
        stream(router, number, "json") as plain,
        stream(router, number, "json-deflate") as deflated,
    ):
        clients = dict(zip(names, (opus, pcm, plain, deflated), strict=True))
        for name, client in clients.items():
            assert (await client.wait_event("connected"))["data"]["encoding"] == name
        await push(router, number)
        pieces = {name: (await client.buffers(1))[0] for name, client in clients.items()}
        sizes = {each["encoding"]: each["bytesSent"] for each in await wait_clients(router, number, 4)}
    sounds = {name: samples(piece["data"]["buffer"]) for name, piece in pieces.items()}
    assert len({json.dumps(piece["data"]["params"]) for piece in pieces.values()}) == 1
    length = len(sounds["json"])
    assert len(sounds["pcm16"]) == len(sounds["json-deflate"]) == length >= 4 * 48_000
    assert np.array_equal(sounds["json"], sounds["json-deflate"])
    # 16 bits, and seven digits.
    assert np.abs(sounds["json"] - sounds["pcm16"]).max() < 1e-4
    size = min(length, len(sounds["opus"]))
    assert length - size <= 960
    mono = [sounds[name][:size].mean(axis=1) for name in ("json", "opus")]
    assert np.corrcoef(*mono)[0, 1] > 0.9
    # Of what the samples take in words: deflate halves it, as docs/decisions/0030 says.
    assert sizes["json"] > 10 * 2 * length / 2
    assert sizes["json-deflate"] < 0.55 * sizes["json"], sizes
    assert sizes["pcm16"] < sizes["json"] / 3, sizes
    assert sizes["opus"] < sizes["json"] / 40, sizes


async def test_the_minimal_client_plays_what_it_asks_for(antiphon, number, browser):
    """The example of docs/http-and-websocket.md as it is printed, in a browser whose sound has 44.1 kHz."""
    router = antiphon.router.url
    example = program((ROOT / "docs/http-and-websocket.md").read_text(), "minimal-client.js")
    page = await browser.new_page()
    await page.goto(f"{router}/health")
    await page.evaluate(
        """() => {
          const Context = AudioContext;
          window.AudioContext = class extends Context { constructor() { super({ sampleRate: 44100 }); } };
          const start = AudioBufferSourceNode.prototype.start;
          AudioBufferSourceNode.prototype.start = function () { window.started = this; start.call(this); };
        }"""
    )
    async with stream(router, number, "json") as reference:
        await page.evaluate(f"() => {{ {example.replace('1296269', str(number))} window.stream = stream; }}")
        await page.wait_for_function("stream.readyState === EventSource.OPEN")
        await wait_clients(router, number, 2)
        await push(router, number)
        [piece] = await reference.buffers(1)
        await page.wait_for_function("window.started")
    rate, played, heard = await page.evaluate(
        """async () => {
          const { context, buffer } = window.started;
          const offline = new OfflineAudioContext(2, Math.ceil(buffer.duration * 44100), 44100);
          const player = new AudioBufferSourceNode(offline, { buffer });
          player.connect(offline.destination);
          player.start();
          const heard = await offline.startRendering();
          return [context.sampleRate, [...buffer.getChannelData(0)], [...heard.getChannelData(0)]];
        }"""
    )
    sound = samples(piece["data"]["buffer"])[:, 0]
    assert rate == 44_100 and np.abs(np.array(played) - sound).max() < 1e-6
    # As long as it was, and as loud.
    assert len(heard) / 44_100 == pytest.approx(len(sound) / 48_000, abs=1e-3)
    assert level_db(np.array(heard)) == pytest.approx(level_db(sound), abs=0.5)


async def test_clients_of_one_encoding_get_the_same_bytes(antiphon, number):
    router = antiphon.router.url
    async with stream(router, number) as one, stream(router, number) as other:
        for client in (one, other):
            await client.wait_event("connected")
        for count in range(3):
            await push(router, number, f"{count}")
        ours, theirs = await one.buffers(3), await other.buffers(3)
        assert ours == theirs and [piece["id"] for piece in ours] == [1, 2, 3]
        assert one.events("connected")[0]["data"]["clientId"] != other.events("connected")[0]["data"]["clientId"]


async def test_repositories_do_not_mix(antiphon, number):
    router, other = antiphon.router.url, next(_numbers)
    async with stream(router, number) as ours, stream(router, other) as theirs:
        await ours.wait_event("connected")
        await theirs.wait_event("connected")
        await push(router, number, "Ours")
        await push(router, other, "Theirs")
        await push(router, number, "Ours")
        await ours.buffers(2)
        await theirs.buffers(1)
        for client, name, count in ((ours, "Ours", 2), (theirs, "Theirs", 1)):
            titles = [event["data"]["event"]["title"] for event in client.events() if "event" in event["data"]]
            assert titles == [name] * count * 2


@pytest.mark.parametrize("way", ["header", "query"])
async def test_who_comes_back_gets_what_was_missed(antiphon, number, way):
    router = antiphon.router.url
    async with stream(router, number, "pcm16") as client:
        await client.wait_event("connected")
        await push(router, number, "1")
        [first] = await client.buffers(1)
    for name in ("2", "3"):
        await push(router, number, name)
    back = {"last": first["id"]} if way == "header" else {"query": {"lastEventId": str(first["id"])}}
    async with stream(router, number, "pcm16", **back) as client:
        assert (await client.wait_event("connected"))["data"]["lastEventId"] == 1
        await push(router, number, "4")
        pieces = await client.buffers(3)
        assert [piece["id"] for piece in pieces] == [2, 3, 4]
        assert [piece["data"]["event"]["title"] for piece in pieces] == ["2", "3", "4"]
        assert not client.events("error")
    # From the first on: the same bytes as then.
    async with stream(router, number, "pcm16", last=0) as client:
        pieces = await client.buffers(4)
        assert pieces[0]["data"] == first["data"] and [piece["id"] for piece in pieces] == [1, 2, 3, 4]
    # One that begins hears what is to come.
    async with stream(router, number, "pcm16") as client:
        assert (await client.wait_event("connected"))["id"] == 4
        await push(router, number, "5")
        assert (await client.buffers(1))[0]["id"] == 5


async def test_a_gap_is_said(antiphon, number):
    router = antiphon.router.url
    star = github.star(number)
    for each in range(105):
        answer = await deliver(router, "star", star, delivery=f"gap-{number}-{each}")
        accepted(answer)
    deadline = asyncio.get_running_loop().time() + PATIENCE_SECONDS
    while (await request("GET", f"{router}/api/v1/repositories/{number}/events?limit=1")).body.get("total") != 105:
        assert asyncio.get_running_loop().time() < deadline
        await asyncio.sleep(0.05)
    async with stream(router, number, last=1) as client:
        error = await client.wait_event("error")
        assert error["data"]["code"] == "replay_gap" and "2 to 5" in error["data"]["message"], error
        assert (await client.buffers(1))[0]["id"] == 6
    async with stream(router, number, last=1_000) as client:
        error = await client.wait_event("error")
        assert error["data"]["code"] == "replay_gap" and error["id"] == 105, error


async def test_heartbeats(antiphon, number):
    async with stream(antiphon.router.url, number) as client:
        await client.wait(lambda: len(client.events("heartbeat")) >= 3, "heartbeats")
        times = [event["data"]["timestamp"] for event in client.events("heartbeat")]
        assert times == sorted(times) and {event["id"] for event in client.events("heartbeat")} == {0}


async def test_one_that_does_not_read_is_dropped_and_others_are_not(antiphon, number):
    """It takes nothing; a large encoding fills what the kernel holds for it."""
    router = antiphon.router.url
    silent = raw_request(
        antiphon.router.address, f"GET /stream/{number}?encoding=json HTTP/1.1\n\r\n", receive_buffer=4_096
    )
    try:
        async with stream(router, number) as reader:
            await reader.wait_event("connected")
            await wait_clients(router, number, 2)
            for each in range(5):
                await push(router, number, f"{each}")
            pieces = await reader.buffers(5)
            assert [piece["id"] for piece in pieces] == [1, 2, 3, 4, 5]
            await wait_clients(router, number, 1, seconds=40)
            await push(router, number, "after")
            assert (await reader.buffers(6))[5]["id"] == 6
            assert not reader.events("error")
    finally:
        silent.close()


async def test_what_waits_for_a_client_is_freed_when_it_goes(antiphon, number):
    router = antiphon.router.url
    silent = raw_request(
        antiphon.router.address, f"GET /stream/{number}?encoding=json HTTP/1.1\n\r\n", receive_buffer=4_096
    )
    try:
        await wait_clients(router, number, 1)
        await push(router, number)
        await wait_figure(antiphon.router, WAITING, lambda n: n > 1_000_000, "a piece")
    finally:
        silent.close()
    await wait_figure(antiphon.router, WAITING, lambda n: n == 0, "0")
    await wait_clients(router, number, 0)


async def wait_clients(
    router: str, number: object, count: int, seconds: float = PATIENCE_SECONDS, token: str | None = None
) -> list[dict]:
    deadline = asyncio.get_running_loop().time() + seconds
    while True:
        body = (await request("GET", f"{router}/health/repo/{number}", headers=bearer(token))).body
        if body["activeClients"] == count:
            return body["clients"]
        assert asyncio.get_running_loop().time() < deadline, body
        await asyncio.sleep(0.05)


async def test_health_counts_clients(antiphon, number):
    router = antiphon.router.url
    async with stream(router, number, "pcm16") as client:
        greeting = (await client.wait_event("connected"))["data"]
        await push(router, number)
        await client.buffers(1)
        [detail] = await wait_clients(router, number, 1)
        assert (
            detail["id"] == greeting["clientId"] and detail["encoding"] == "pcm16" and detail["repoId"] == str(number)
        )
        assert detail["bytesSent"] > 500_000 and detail["duration"] >= 0
        assert detail["connectedAt"] <= detail["lastActivity"] and detail["address"] == "127.0.0.1"
        health = (await request("GET", f"{router}/health")).body
        assert health["activeClients"] >= 1 and health["totalBuffersCreated"] >= 1
        assert health["memoryUsage"] > 1_000_000 and health["uptime"] == health["uptime_s"]
        assert greeting["clientId"] in [each["id"] for each in health["clients"]]
        assert health["activeSessions"] == health["activeClients"]
    await wait_clients(router, number, 0)


async def test_a_client_that_has_been_told_to_go_is_no_session(guarded, mint, number):
    """It is a client for as long as it may take to read why: here it reads nothing."""
    router, session = guarded.router.url, str(number)

    async def counts() -> tuple[int, int]:
        health = (await request("GET", f"{router}/health")).body
        return health["activeClients"], health["activeSessions"]

    async with asyncio.timeout(PATIENCE_SECONDS):
        while await counts() != (0, 0):  # of the tests before
            await asyncio.sleep(0.05)
    token = mint.token(session, "listen", seconds=8)
    head = f"GET /stream/{session}?encoding=json HTTP/1.1\nAuthorization: Bearer {token}\r\n\r\n"
    silent = raw_request(guarded.router.address, head, receive_buffer=4_096)
    try:
        await wait_clients(router, number, 1, token=mint.token(session, "listen"))
        assert await counts() == (1, 1)
        answer = await request(
            "POST",
            f"{router}/stream/{session}/test",
            {"event": "push"},
            headers=bearer(mint.token(session, "control")),
        )
        assert answer.status == 202, answer
        await wait_figure(guarded.router, WAITING, lambda n: n > 1_000_000, "a piece", mint.token(scope="admin"))
        seen = [await counts()]
        async with asyncio.timeout(PATIENCE_SECONDS):
            while seen[-1] != (0, 0):
                await asyncio.sleep(0.05)
                seen.append(await counts())
        assert list(dict.fromkeys(seen)) == [(1, 1), (1, 0), (0, 0)], seen
    finally:
        silent.close()


async def test_the_last_activity_is_when_the_client_last_took_something(antiphon, number):
    """With each heartbeat it is later, and it is the Router's own time."""
    router = antiphon.router.url
    async with stream(router, number) as client:
        since = 0
        for _ in range(3):
            beats = len(client.events("heartbeat"))
            await client.wait(lambda beats=beats: len(client.events("heartbeat")) > beats, "a heartbeat")
            [detail] = await wait_clients(router, number, 1)
            sent = client.events("heartbeat")[-1]["data"]["timestamp"]
            assert since < detail["lastActivity"] <= detail["connectedAt"] + detail["duration"], detail
            # Clocks are cut to a millisecond, and the kernel's to its own tick.
            assert sent - 20 <= detail["lastActivity"], (sent, detail)
            since = detail["lastActivity"]


async def test_one_that_vanishes_without_a_word_is_stale_after_ten_heartbeats(antiphon, number):
    """As behind a cable that was pulled: nothing that comes for it is answered any more, not even with a reset."""
    router = antiphon.router.url
    vanishing = raw_request(antiphon.router.address, f"GET /stream/{number} HTTP/1.1\n\r\n")
    try:
        async with stream(router, number) as present:
            await wait_clients(router, number, 2)
            await present.wait(lambda: len(present.events("heartbeat")) >= 2, "heartbeats")
            vanish(vanishing)
            [gone] = [each for each in await wait_clients(router, number, 2) if each["id"] != own(present)]
            beats = len(present.events("heartbeat"))
            await present.wait(lambda: len(present.events("heartbeat")) >= beats + 8, "eight heartbeats")
            details = {each["id"]: each for each in await wait_clients(router, number, 2)}
            assert details[gone["id"]]["lastActivity"] - gone["lastActivity"] < 1_000, (gone, details)
            assert details[own(present)]["lastActivity"] > gone["lastActivity"] + 6_000, (gone, details)
            [left] = await wait_clients(router, number, 1)
            assert left["id"] == own(present)
            why = f"no heartbeat was taken for 10 s client={gone['id']} session={number}"
            assert why in antiphon.router.log.read_text()
            await push(router, number)
            await present.buffers(1)
    finally:
        vanishing.close()


def own(client: Stream) -> str:
    return client.events("connected")[0]["data"]["clientId"]


def vanish(client: socket.socket) -> None:
    """Has the kernel throw away whatever comes for a connection, before it can be acknowledged: a filter of one
    instruction, `return 0` (socket(7))."""
    instruction = ctypes.create_string_buffer(struct.pack("HBBI", 0x06, 0, 0, 0))
    program = struct.pack("HL", 1, ctypes.addressof(instruction))
    client.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, program)


async def test_an_engine_that_is_away_is_said_and_its_pieces_come_later(tmp_path, media, options, number):
    with Antiphon(tmp_path, media.root, router_options=options) as antiphon:
        router = antiphon.router.url
        async with stream(router, number) as client:
            await client.wait_event("connected")
            antiphon.engine.kill()
            await push(router, number, "1")
            error = await client.wait_event("error")
            assert error["data"]["code"] == "engine_unavailable" and error["data"]["number"] == 1, error
            assert error["id"] == 0
            antiphon.engine.start()
            wait_ready(antiphon.router)
            await push(router, number, "2")
            assert (await client.buffers(1))[0]["id"] == 2
        async with stream(router, number, last=error["id"]) as client:
            assert [piece["id"] for piece in await client.buffers(2)] == [1, 2]


async def test_a_router_that_stops_says_so_and_goes_on_where_it_was(tmp_path, media, options, number):
    with Antiphon(tmp_path, media.root, router_options=options) as antiphon:
        router = antiphon.router.url
        async with stream(router, number) as client:
            await client.wait_event("connected")
            await push(router, number, "1")
            await client.buffers(1)
            stopping = asyncio.to_thread(antiphon.router.terminate)
            closing, status = await asyncio.gather(client.wait_event("disconnected"), stopping)
            assert closing["data"] == {"reason": "the Router is stopping", "reconnect": True} and closing["id"] == 1
            assert status == 0
            await client.wait(lambda: client.closed, "the end")
            assert client.closed == "the end", "the response is not whole"
        antiphon.router.start()
        wait_ready(antiphon.router)
        await push(router, number, "2")
        async with stream(router, number, last=0) as again:
            pieces = await again.buffers(2)
            assert [piece["id"] for piece in pieces] == [1, 2]
            assert pieces[0] == client.events("audio_buffer")[0]


async def test_tokens_and_tickets(guarded, mint, number):
    router, session = guarded.router.url, str(number)
    async with stream(router, session, token=mint.token(session, "listen")) as client:
        await client.wait_event("connected")
    given = await ticket(router, mint, mint.token(session), session)
    async with stream(router, session, query={"ticket": given}) as client:
        await client.wait_event("connected")
    async with aiohttp.ClientSession() as http:
        for query, headers, status in (
            (f"?ticket={given}", {}, 401),
            ("", {}, 401),
            ("", bearer(mint.token("other", "listen")), 403),
        ):
            async with http.get(f"{router}/stream/{session}{query}", headers=headers) as answer:
                assert answer.status == status, (query, answer)
    short = mint.token(session, "listen", seconds=2)
    async with stream(router, session, token=short) as client:
        closing = await client.wait_event("disconnected")
        assert "expired" in closing["data"]["reason"], closing
        await client.wait(lambda: client.closed, "the end")
    answer = await request("GET", f"{router}/health", headers=bearer(mint.token(session, "listen")))
    assert "clients" not in answer.body and "activeClients" in answer.body
    token = mint.token(session, "listen")
    async with stream(router, session, token=token) as client:
        await client.wait_event("connected")
        [detail] = await wait_clients(router, session, 1, token=token)
        assert "address" not in detail


async def test_what_is_refused(antiphon, number):
    router = antiphon.router.url
    for query, headers, word in (
        ("?encoding=wav", {}, "encoding"),
        ("?encoding=", {}, "encoding"),
        ("?lastEventId=-1", {}, "lastEventId"),
        ("?lastEventId=x", {}, "lastEventId"),
        ("", {"Last-Event-ID": "x"}, "Last-Event-ID"),
        ("", {"Last-Event-ID": "9" * 30}, "Last-Event-ID"),
    ):
        answer = await request("GET", f"{router}/stream/{number}{query}", headers=headers)
        assert answer.status == 400 and word in answer.body["message"], (query, answer)
    answer = await request("GET", f"{router}/stream/{'x' * 25}")
    assert answer.code == "invalid_session_id", answer


@pytest.mark.parametrize("kind", github.EVENTS)
async def test_sample_events_are_heard(antiphon, kind):
    """Without GitHub, and in a session of any name."""
    router, session = antiphon.router.url, f"sample.{kind[:17]}"
    async with stream(router, session) as client:
        await client.wait_event("connected")
        answer = await request("POST", f"{router}/stream/{session}/test", {"event": kind, "title": "Try it"})
        assert answer.status == 202 and answer.body["delivery"].startswith("test-"), answer
        [piece] = await client.buffers(1)
        assert piece["data"]["event"]["kind"] == kind and piece["data"]["repoId"] == session


async def test_sample_events_say_what_is_asked_for(antiphon, number):
    router = antiphon.router.url
    wishes = [
        ({"event": "check_run", "outcome": "failure"}, {"outcome": "failure"}),
        ({"event": "workflow_run", "outcome": "pending"}, {"outcome": "pending"}),
        ({"event": "pull_request", "outcome": "success"}, {"outcome": "success", "action": "closed"}),
        ({"event": "pull_request_review", "outcome": "failure"}, {"outcome": "failure"}),
        (
            {"event": "push", "commits": 7, "title": "Seven", "branch": "b"},
            {"commits": 7, "title": "Seven", "branch": "b"},
        ),
        ({"event": "push", "repository": "a/b", "sender": "ada"}, {"repository": "a/b", "sender": "ada"}),
    ]
    async with stream(router, number) as client:
        await client.wait_event("connected")
        for wish, _ in wishes:
            answer = await request("POST", f"{router}/stream/{number}/test", wish)
            assert answer.status == 202, answer
        pieces = await client.buffers(len(wishes))
    for (wish, expected), piece in zip(wishes, pieces, strict=True):
        shown = piece["data"]["event"]
        assert {name: shown.get(name) for name in expected} == expected, (wish, shown)
    for wrong in ({}, {"event": "dance"}, {"event": "push", "commits": 101}, {"event": "push", "outcome": "good"}, []):
        answer = await request("POST", f"{router}/stream/{number}/test", wrong)
        assert answer.status == 400, (wrong, answer)


async def test_a_thousand_clients_and_no_more(antiphon, number):
    """Each gets the piece; one more is refused."""
    router, address = antiphon.router.url, antiphon.router.address
    clients: list[socket.socket] = []
    try:
        for _ in range(1_000):
            clients.append(raw_request(address, f"GET /stream/{number} HTTP/1.1\n\r\n"))
        await wait_clients(router, number, 1_000, seconds=60)
        answer = await request("GET", f"{router}/stream/{number}")
        assert (answer.status, answer.code) == (503, "too_many_sessions"), answer
        clients.pop().close()
        await wait_clients(router, number, 999, seconds=60)
        async with stream(router, number) as last:
            await last.wait_event("connected")
            await push(router, number)
            [piece] = await last.buffers(1)
            assert piece["id"] == 1
    finally:
        for client in clients:
            client.close()
    await wait_clients(router, number, 0, seconds=60)
