"""Requests that are no use to anybody: heads without end, bodies in crumbs, texts that cost much to compare."""

import asyncio
import json

import pytest

from client import connect_to_engine, listen, request

#: Escaped it fills a command.
MARKS = "e" + "\u0301\u0316" * 5_000
#: Of an answer that repeats what it was asked, with all that it says besides.
ANSWER_BYTES = 2_000


@pytest.fixture(params=["router", "engine"])
def server(request, antiphon):
    return getattr(antiphon, request.param)


async def answer(server, data: bytes, *, half_closes: bool = False) -> tuple[int, dict]:
    """Sends it, and reads until the server closes: the status and the body of the one answer."""
    reader, writer = await asyncio.open_connection(*server.address.split(":"))
    try:
        writer.write(data)
        if half_closes:
            writer.write_eof()
        async with asyncio.timeout(10):
            text = await reader.read()
    finally:
        writer.close()
    head, _, body = text.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)


def head(server, *lines: str, method: str = "GET", target: str = "/health") -> bytes:
    return "\r\n".join([f"{method} {target} HTTP/1.1", f"Host: {server.address}", *lines, "", ""]).encode()


@pytest.mark.parametrize(
    "fields",
    [["x: " + "y" * 20_000], [f"x{n}: " + "y" * 8_000 for n in range(250)], [f"x{n}: y" for n in range(150)]],
    ids=["long", "two megabytes", "many"],
)
async def test_a_head_that_does_not_end(server, fields):
    status, error = await answer(server, head(server, *fields)[:-2])
    assert (status, error["code"]) == (431, "invalid_command"), error


async def test_trailers_that_do_not_end(server):
    chunked = head(server, "Transfer-Encoding: chunked", method="POST", target="/nothing") + b"0\r\n"
    # An answer may have begun; then it ends with the connection.
    reader, writer = await asyncio.open_connection(*server.address.split(":"))
    writer.write(chunked + b"".join(b"x%d: %s\r\n" % (n, b"y" * 8_000) for n in range(250)))
    async with asyncio.timeout(10):
        assert await reader.read()
    writer.close()


async def test_an_address_that_is_too_long(server):
    status, error = await answer(server, head(server, target="/" + "%C0%AF" * 2_100))
    assert status == 414, error
    missing = await request("GET", server.url + "/" + "x" * 8_000)
    assert missing.status == 404, missing
    assert len(json.dumps(missing.body)) <= ANSWER_BYTES, missing


@pytest.mark.parametrize("name", ["Connection", "Upgrade", "Sec-WebSocket-Protocol", "Origin", "Authorization"])
async def test_a_head_that_costs_much_to_compare(server, name):
    fields = {"Upgrade": "websocket", "Connection": "Upgrade"} | {name: MARKS[:3_000]}
    status, error = await answer(server, head(server, *(f"{key}: {value}" for key, value in fields.items())))
    assert (status, error["code"]) == (400, "invalid_command"), error
    assert "combining marks" in error["message"], error


async def test_a_body_in_crumbs(server):
    chunked = head(server, "Transfer-Encoding: chunked", method="POST", target="/nothing")
    reader, writer = await asyncio.open_connection(*server.address.split(":"))
    writer.write(chunked + b"1\r\n \r\n" * 20_000)
    async with asyncio.timeout(10):
        text = await reader.read()
    writer.close()
    # Whichever comes first; and the connection is closed, though the body goes on.
    assert text.startswith((b"HTTP/1.1 400", b"HTTP/1.1 404")), text


async def test_a_body_whose_sender_sends_no_more_behind_it(antiphon, new_session):
    """It is taken whole, though its end came before all of it was asked for."""
    body = json.dumps({"url": "media:nothing.mp3", "more": "x" * 60_000}).encode()
    target = f"/api/v1/sessions/{new_session()}/play"
    data = head(antiphon.router, f"Content-Length: {len(body)}", "Connection: close", method="POST", target=target)
    status, error = await answer(antiphon.router, data + body, half_closes=True)
    assert (status, error["code"]) == (404, "source_not_found"), error


@pytest.mark.parametrize("is_escaped", [False, True])
@pytest.mark.parametrize("command", [{"type": MARKS}, {MARKS: 1}, {"type": "pause", "session_id": MARKS}])
async def test_a_command_that_costs_much_to_compare(antiphon, new_session, command, is_escaped):
    text = json.dumps(command, ensure_ascii=is_escaped)
    async with (
        listen(antiphon.router.url, new_session()) as listener,
        connect_to_engine(antiphon.socket) as engine,
    ):
        await listener.socket.send_str(text)
        assert (await listener.wait_event("error"))["code"] == "invalid_json"
        await engine.write(text.encode() + b"\n")
        assert (await engine.wait_event("error"))["code"] == "invalid_json"


@pytest.mark.parametrize(
    "path", ["/api/v1/tickets", "/stream/a/test", "/api/v1/sessions/a/queue/loop", "/api/v1/sessions/a/mute"]
)
async def test_a_body_that_costs_much_to_compare(antiphon, path):
    marks = MARKS[:2_000]
    body = {"session": "a", "scope": marks, "event": marks, "mode": marks, "voices": [marks]}
    refused = await request("POST", antiphon.router.url + path, body)
    assert (refused.status, refused.code) == (400, "invalid_json"), refused


async def test_an_answer_repeats_little_of_what_was_asked(antiphon, new_session):
    long = "x" * 60_000
    async with listen(antiphon.router.url, new_session()) as listener:
        for command in (
            {"type": long},
            {"type": "pause", "session_id": long},
            {"type": "queue_loop", "mode": long},
            {"type": "queue_remove", "id": long},
            {"type": "play", "url": long},
        ):
            error = await listener.ask(command.pop("type"), **command)
            assert error["type"] == "error", error
            assert len(json.dumps(error)) <= ANSWER_BYTES, error


@pytest.mark.parametrize("milliseconds", [2**63 - 1, -(2**63), 2**32, -1])
async def test_what_no_track_lasts(antiphon, new_session, milliseconds):
    async with listen(antiphon.router.url, new_session()) as listener:
        queue = await listener.ask("queue_add", url="https://example.com/", duration_ms=milliseconds)
        tracks = [*queue["queue"]["tracks"], queue["queue"].get("current") or {}]
        assert all("duration_ms" not in track for track in tracks), queue
