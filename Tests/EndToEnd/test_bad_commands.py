"""Commands that cannot be carried out: each gets its own clear error, on every endpoint, and disturbs nobody."""

import json

import aiohttp
import pytest

from client import connect_to_engine, listen, request

#: What → the command (without its session), the code, the HTTP status.
COMMANDS = {
    "unknown type": ({"type": "explode"}, "invalid_command"),
    "no url": ({"type": "play"}, "invalid_command"),
    "url of the wrong kind": ({"type": "play", "url": 7}, "invalid_command"),
    "url null": ({"type": "play", "url": None}, "invalid_command"),
    "volume too high": ({"type": "play", "url": "media:a", "volume": 10.5}, "invalid_command"),
    "volume negative": ({"type": "volume", "level": -0.1}, "invalid_command"),
    "no level": ({"type": "volume"}, "invalid_command"),
    "start negative": ({"type": "play", "url": "media:a", "start_ms": -1}, "invalid_command"),
    "start of the wrong kind": ({"type": "play", "url": "media:a", "start_ms": "1"}, "invalid_command"),
    "seek negative": ({"type": "seek", "position_ms": -1}, "invalid_command"),
    "seek beyond 49 days": ({"type": "seek", "position_ms": 1e300}, "invalid_command"),
    "no position": ({"type": "seek"}, "invalid_command"),
    "loop of the wrong kind": ({"type": "play", "url": "media:a", "loop": "yes"}, "invalid_command"),
    "prepare for nothing": ({"type": "prepare", "url": "media:a"}, "no_such_session"),
    "prepare without URL": ({"type": "prepare"}, "invalid_command"),
    "score": ({"type": "play", "url": "media:a", "score": {}}, "invalid_command"),
    "end_ms before start_ms": ({"type": "play", "url": "media:a", "start_ms": 900, "end_ms": 900}, "invalid_command"),
    "pause of nothing": ({"type": "pause"}, "no_such_session"),
    "resume of nothing": ({"type": "resume"}, "no_such_session"),
    "stop of nothing": ({"type": "stop"}, "no_such_session"),
    "seek of nothing": ({"type": "seek", "position_ms": 0}, "no_such_session"),
    "empty url": ({"type": "play", "url": ""}, "invalid_source"),
    "file:": ({"type": "play", "url": "file:///etc/passwd"}, "invalid_source"),
    "ftp:": ({"type": "play", "url": "ftp://127.0.0.1/a.mp3"}, "invalid_source"),
    "data:": ({"type": "play", "url": "data:audio/mpeg;base64,AAAA"}, "invalid_source"),
    "concat:": ({"type": "play", "url": "concat:/etc/passwd|/etc/group"}, "invalid_source"),
    "a bare path": ({"type": "play", "url": "/etc/passwd"}, "invalid_source"),
    "http without a host": ({"type": "play", "url": "http:///a.mp3"}, "invalid_source"),
}
STATUS = {
    "invalid_json": 400,
    "invalid_command": 400,
    "invalid_session_id": 400,
    "invalid_source": 400,
    "no_such_session": 404,
    "invalid_state": 409,
    "line_too_long": 413,
}

#: What is no JSON object.
NOT_JSON = {
    "a word": b"hello",
    "an array": b"[1]",
    "a number": b"7",
    "cut off": b'{"type": "play"',
    "twice": b"{}{}",
    "not UTF-8": b'{"type": "\xff\xfe"}',
    "deep": b'{"type": ' + b"[" * 30_000,
    "deep objects": b'{"a":' * 10_000,
    "empty strings": b'""',
}

#: Session IDs that are none, as they are and as they stand in a path.
SESSIONS = {"too long": "x" * 25, "a space": "two words", "a slash": "a/b", "not ASCII": "zwölf", "a percent": "%41"}
PATHS = {"too long": "x" * 25, "a space": "two%20words", "not ASCII": "zw%C3%B6lf", "a percent": "%2541", "NUL": "a%00"}


def assert_clear(error: dict, code: str, what: str) -> None:
    assert error.get("code") == code, f"{what}: expected {code}, got {error}"
    assert len(error.get("message", "")) > 5, f"{what}: no message in {error}"


async def test_on_the_engines_socket(antiphon, new_session, bystander):
    session = new_session()
    async with connect_to_engine(antiphon.socket) as engine:
        for what, (command, code) in COMMANDS.items():
            answer = await engine.ask(session_id=session, **command)
            assert answer["type"] == "error", (what, answer)
            assert_clear(answer, code, what)
        for what, line in NOT_JSON.items():
            since = engine.mark()
            await engine.write(line + b"\n")
            assert_clear(await engine.wait_event("error", since), "invalid_json", what)
        for what, name in SESSIONS.items():
            for command in ({"type": "pause"}, {"type": "play", "url": "media:a"}):
                assert_clear(await engine.ask(session_id=name, **command), "invalid_session_id", what)
        assert_clear(await engine.ask(session_id="", type="status"), "invalid_session_id", "empty")
        assert_clear(await engine.ask(type="pause"), "invalid_command", "no session")
        # Only the Router keeps a level for what comes next.
        nothing = await engine.ask(type="volume", session_id="nothing", level=1)
        assert_clear(nothing, "no_such_session", "volume of nothing")
        assert_clear(await engine.ask(type="pause", channel_id=session), "no_such_session", "channel_id")
        since = engine.mark()
        await engine.send(type="status", session_id=session, request_id="r" * 129)
        assert_clear(await engine.wait_event("error", since), "invalid_command", "a long request_id")
        answer = await engine.ask(type="status", session_id=session, request_id="r" * 128)
        assert answer["session"]["state"] == "idle", answer


async def test_a_line_too_long_closes_nothing(antiphon, new_session, bystander):
    async with connect_to_engine(antiphon.socket) as engine:
        await engine.wait_event("hello")
        # In pieces, so that the engine meets the limit before the line's end.
        long = json.dumps({"type": "status", "session_id": "x", "padding": "p" * 70 * 1024}).encode()
        since = engine.mark()
        for begin in range(0, len(long), 8_192):
            await engine.write(long[begin : begin + 8_192])
        await engine.write(b"\n")
        assert_clear(await engine.wait_event("error", since), "line_too_long", "70 KiB")
        answer = await engine.ask(type="status", session_id=new_session())
        assert answer["type"] == "status", answer
        assert len(engine.events("error", since)) == 1, engine.events("error", since)
        # 64 KiB itself is allowed.
        fitting = json.dumps({"type": "status", "session_id": "x", "request_id": "fits", "padding": ""}).encode()
        await engine.write(fitting.replace(b'""', b'"' + b"p" * (65_536 - len(fitting)) + b'"') + b"\n")
        assert (await engine.wait_answer("fits", since))["type"] == "status"


async def test_over_websocket(antiphon, new_session, bystander):
    async with listen(antiphon.router.url, new_session()) as listener:
        for what, (command, code) in COMMANDS.items():
            answer = await listener.ask(command["type"], **{k: v for k, v in command.items() if k != "type"})
            assert answer["type"] == "error", (what, answer)
            assert_clear(answer, code, what)
        for what, text in NOT_JSON.items():
            if what == "not UTF-8":
                continue  # a WebSocket's text is UTF-8 by RFC 6455: see below
            since = listener.mark()
            await listener.socket.send_str(text.decode())
            assert_clear(await listener.wait_event("error", since), "invalid_json", what)
        for fields in ({}, {"url": 7}):
            assert_clear(await listener.ask("queue_add", **fields), "invalid_command", f"queue_add {fields}")
        for fields in ({}, {"id": 10**6}):
            answer = await listener.ask("queue_remove", **fields)
            assert answer["type"] == "error", answer
        pong = await listener.ask("ping", t=12.5)
        assert pong["type"] == "pong" and pong["t"] == 12.5 and pong["now_ns"] > 0, pong


async def test_text_over_64_kib_closes_the_websocket(antiphon, new_session, bystander):
    async with listen(antiphon.router.url, new_session()) as listener:
        await listener.wait_event("session")
        await listener.socket.send_str('{"type":"' + "x" * 70 * 1024 + '"}')
        await listener.wait(lambda: listener.closed, "close")
        assert listener.closed == "code 1009", f"closed with {listener.closed}"


async def test_over_http(antiphon, new_session, bystander):
    endpoints = {
        "Router": f"{antiphon.router.url}/api/v1/sessions",
        "AudioEngine": f"{antiphon.engine.url}/session",
    }
    for endpoint, base in endpoints.items():
        session = new_session()
        for what, (command, code) in COMMANDS.items():
            if what == "unknown type":
                continue
            body = {name: value for name, value in command.items() if name != "type"}
            answer = await request("POST", f"{base}/{session}/{command['type']}", body)
            assert answer.status == STATUS[code], f"{endpoint}, {what}: expected {STATUS[code]}, got {answer}"
            assert_clear(answer.body, code, f"{endpoint}, {what}")
        for what, text in NOT_JSON.items():
            answer = await request("POST", f"{base}/{session}/play", raw=text)
            assert answer.status == 400, f"{endpoint}, {what}: {answer}"
            if what == "not UTF-8":  # in a field that the path has given already, which need not be read
                assert answer.code in ("invalid_json", "invalid_command"), f"{endpoint}, {what}: {answer}"
            else:
                assert_clear(answer.body, "invalid_json", f"{endpoint}, {what}")
        for what, path in PATHS.items():
            answer = await request("POST", f"{base}/{path}/play", {"url": "media:a"})
            assert answer.status == 400, f"{endpoint}, {what}: {answer}"
            assert_clear(answer.body, "invalid_session_id", f"{endpoint}, {what}")
        answer = await request("POST", f"{base}/{session}/play", {"url": "media:" + "a" * 70 * 1024})
        assert answer.status == 413, f"{endpoint}, 70 KiB: {answer}"
        assert_clear(answer.body, "line_too_long", f"{endpoint}, 70 KiB")
        answer = await request("POST", f"{base}/{session}/explode", {})
        assert answer.status == 404, f"{endpoint}, unknown command: {answer}"
        answer = await request("GET", f"{base}/{session}")
        assert answer.status == 200 and answer.body["state"] == "idle", f"{endpoint}: {answer}"
    answer = await request("POST", f"{antiphon.engine.url}/render", {})
    assert answer.status == 400 and answer.code == "invalid_command", answer


async def test_a_websocket_of_no_session_is_refused(antiphon, bystander):
    for what, path in PATHS.items():
        async with aiohttp.ClientSession() as http:
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                await http.ws_connect(antiphon.router.url + f"/ws?session={path}")
            assert refused.value.status == 400, (what, refused.value)
    for path in ("/ws", "/ws?session=", "/ws?session=a&buffer_ms=x", "/ws?session=a&buffer_ms=5001"):
        answer = await request("GET", antiphon.router.url + path)
        assert 400 <= answer.status < 500, (path, answer)
    for what, path in PATHS.items():
        answer = await request("GET", f"{antiphon.router.url}/listen/{path}.ogg")
        assert answer.status == 400 and answer.code == "invalid_session_id", (what, answer)


async def test_a_page_of_another_site_is_refused(antiphon, new_session):
    """A page anywhere on the web can open a WebSocket to this machine; only ours may."""
    with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
        async with listen(antiphon.router.url, new_session(), origin="http://evil.example"):
            pass
    assert refused.value.status == 403, refused.value
    async with listen(antiphon.router.url, new_session(), origin=antiphon.router.url) as listener:
        await listener.wait_event("session")


async def test_commands_that_do_not_fit_the_state(antiphon, media, new_session, bystander):
    from conftest import REFERENCE

    async with listen(antiphon.router.url, new_session()) as listener:
        await listener.play(REFERENCE.url)
        await listener.wait_packets(5)
        assert_clear(await listener.ask("resume"), "invalid_state", "resume while not paused")
        await listener.command("pause")
        answer = await listener.ask("pause")
        assert answer["type"] == "paused" or answer.get("code") == "invalid_state", answer
        await listener.command("stop")
        assert_clear(await listener.ask("stop"), "no_such_session", "stop twice")
