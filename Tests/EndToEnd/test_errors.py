"""Every endpoint says what is wrong with the same object, and with the status that its code has."""

import asyncio
import json

import aiohttp
import pytest

from client import listen
from openapi import Description


@pytest.fixture(scope="module")
def description() -> Description:
    return Description()


async def refused(
    antiphon, description, method: str, path: str, status: int, code: str, **fields
) -> aiohttp.ClientResponse:
    """Sends a request that must be refused, and checks how."""
    async with (
        aiohttp.ClientSession() as http,
        http.request(method, antiphon.router.url + path, **fields) as response,
    ):
        text = await response.text()
        assert response.status == status, (method, path, response.status, text)
        assert response.content_type == "application/json", (method, path, response.content_type)
        assert response.headers["X-Content-Type-Options"] == "nosniff", response.headers
        error = json.loads(text)
        assert error["code"] == code, (method, path, error)
        description.check_schema("Error", error)
        return response


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/api/v1/sessions", "GET, HEAD, OPTIONS"),
        ("/api/v1/sessions/a/play", "OPTIONS, POST"),
        ("/api/v1/sessions/a/queue", "DELETE, GET, HEAD, OPTIONS, POST"),
        ("/api/v1/sessions/a/queue/17", "DELETE, OPTIONS"),
        # Not an entry of that name.
        ("/api/v1/sessions/a/queue/shuffle", "OPTIONS, POST"),
        ("/health", "GET, HEAD, OPTIONS"),
        ("/index.html", "GET, HEAD, OPTIONS"),
    ],
)
async def test_a_method_that_a_path_has_not(antiphon, description, path, allowed):
    for method in ("PUT", "PATCH", "TRACE", "PROPFIND"):
        response = await refused(antiphon, description, method, path, 405, "method_not_allowed")
        assert response.headers["Allow"] == allowed, (method, path, response.headers["Allow"])


@pytest.mark.parametrize(
    "path", ["/nothing", "/api", "/api/v1", "/api/v2/sessions", "/api/v1/sessions/a/b/c/d/e", "/listen/a.mp3", "/js/"]
)
async def test_a_path_that_is_not_there(antiphon, description, path):
    for method in ("GET", "POST", "PUT"):
        if path.startswith("/listen") and method != "GET":
            continue
        await refused(antiphon, description, method, path, 404, "not_found")


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/api/v1/sessions/two%20words", "invalid_session_id"),
        ("/api/v1/sessions/a/queue?limit=0", "invalid_command"),
        ("/api/v1/sessions/a/queue?limit=101", "invalid_command"),
        ("/api/v1/sessions/a/queue?limit=1.5", "invalid_command"),
        ("/api/v1/sessions/a/queue?limit=", "invalid_command"),
        ("/api/v1/sessions/a/queue?offset=-1", "invalid_command"),
        ("/api/v1/sessions/a/queue?offset=99999999999999999999", "invalid_command"),
        ("/api/v1/sessions/a/history?limit=x", "invalid_command"),
        ("/api/v1/resolve", "invalid_command"),
        ("/api/v1/resolve?query=%20", "invalid_command"),
        ("/api/v1/resolve?query=a&limit=51", "invalid_command"),
        ("/artwork", "invalid_source"),
        ("/listen/a.ogg?buffer_ms=x", "invalid_command"),
        ("/ws", "invalid_command"),
        ("/ws?session=a%20b", "invalid_session_id"),
        ("/ws?session=a&buffer_ms=9999", "invalid_command"),
    ],
)
async def test_a_query_that_is_wrong(antiphon, description, path, code):
    await refused(antiphon, description, "GET", path, 400, code)


async def test_a_body_that_is_wrong(antiphon, description):
    path = "/api/v1/sessions/a/seek"
    for body in (b"", b"{", b"[]", b"7", b"null", b'{"position_ms": "x"}', b'{"position_ms": null}'):
        code = "invalid_command" if body in (b"",) or body.startswith(b'{"') else "invalid_json"
        await refused(antiphon, description, "POST", path, 400, code, data=body)
    long_id = json.dumps({"request_id": "r" * 129, "mode": "off", "position_ms": 1}).encode()
    for path in ("/api/v1/sessions/a/seek", "/api/v1/sessions/a/queue/loop"):
        await refused(antiphon, description, "POST", path, 400, "invalid_command", data=long_id)
        await refused(antiphon, description, "POST", path, 413, "line_too_long", data=b" " * 70_000)


async def test_an_error_for_now_says_when_to_come_back(antiphon, description):
    antiphon.engine.kill()
    try:
        response = await refused(antiphon, description, "POST", "/api/v1/sessions/a/pause", 503, "engine_unavailable")
        assert int(response.headers["Retry-After"]) > 0
    finally:
        antiphon.engine.start()


async def test_strangers_are_told_in_the_same_words(antiphon, description):
    await refused(antiphon, description, "GET", "/health", 403, "forbidden", headers={"Host": "evil.example"})
    await refused(
        antiphon,
        description,
        "POST",
        "/api/v1/sessions/a/pause",
        403,
        "forbidden",
        headers={"Origin": "http://e.example"},
    )


UPGRADE = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA=="}


async def test_an_upgrade_that_is_refused(antiphon, description):
    response = await refused(antiphon, description, "GET", "/ws?session=a", 426, "invalid_command")
    assert response.headers["Upgrade"] == "websocket", response.headers
    for headers, path, status, code in (
        (UPGRADE | {"Sec-WebSocket-Version": "8"}, "/ws?session=a", 426, "invalid_command"),
        (UPGRADE | {"Sec-WebSocket-Version": "13"}, "/ws?session=a%20b", 400, "invalid_session_id"),
        (UPGRADE | {"Sec-WebSocket-Version": "13"}, "/elsewhere", 404, "not_found"),
        (UPGRADE | {"Sec-WebSocket-Version": "13", "Origin": "http://e.example"}, "/ws?session=a", 403, "forbidden"),
    ):
        await refused(antiphon, description, "GET", path, status, code, headers=headers)


@pytest.mark.parametrize(
    "text",
    [
        b"HELLO\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\nno colon\r\n\r\n",
        b"POST /api/v1/sessions/a/pause HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 60 + b"\r\n\r\n",
    ],
    ids=["a word", "version", "header", "length", "TLS"],
)
async def test_what_is_no_http(antiphon, description, text):
    host, port = antiphon.router.address.rsplit(":", 1)
    # Alone, and after a good request on the same connection.
    for before in (b"", b'GET /index.html HTTP/1.1\r\nHost: localhost\r\nIf-None-Match: "x"\r\n\r\n'):
        reader, writer = await asyncio.open_connection(host, int(port))
        if before:
            writer.write(before)
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200"), head
            length = next(int(line[15:]) for line in head.splitlines() if line.lower().startswith(b"content-length"))
            await reader.readexactly(length)
        writer.write(text)
        answer = await asyncio.wait_for(reader.read(), 10)
        head, _, body = answer.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 400 "), (before, answer)
        assert b"application/json" in head.lower(), head
        error = json.loads(body)
        assert error["code"] == "invalid_command", error
        description.check_schema("Error", error)
        writer.close()


async def test_on_the_websocket(antiphon, description, new_session):
    async with listen(antiphon.router.url, new_session()) as listener:
        for kind in ("dance", "seek", "pause", "queue_add", "artwork"):
            answer = await listener.ask(kind)
            assert answer["type"] == "error", (kind, answer)
            description.check_event(answer)
        for text in ("{", "[]", "7"):
            since = listener.mark()
            await listener.socket.send_str(text)
            description.check_event(await listener.wait_event("error", since))
