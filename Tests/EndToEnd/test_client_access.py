"""antiphon_client: tokens, errors at the handshake, and what is no Router at all."""

import logging
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from antiphon_client import AntiphonError, Session, link

from hearing import until
from media import OGG_OPUS, tone_clip
from voice import voice

SONG = tone_clip(440, 120, OGG_OPUS)


async def be_idle(socket: web.WebSocketResponse) -> None:
    """What a Router without an engine says of a session without sound."""
    idle = {"session_id": "s", "state": "idle"}
    queue = {"tracks": [], "offset": 0, "total": 0, "loop": "off", "history_total": 0}
    await socket.send_json({"type": "session", "session": idle, "queue": queue, "engine": {"connected": False}})
    async for _ in socket:
        pass


@asynccontextmanager
async def served(answer):
    """A server that gives one answer to everything; its URL."""
    app = web.Application()
    app.router.add_get("/{any:.*}", answer)
    runner = web.AppRunner(app, shutdown_timeout=1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield "http://{}:{}".format(*runner.addresses[0])
    finally:
        await runner.cleanup()


async def request_error(url: str, session: str = "guild-1", token=None) -> AntiphonError:
    """Why a session does not start; it is closed."""
    session = Session(url, session, token=token, patience=10)
    with pytest.raises(AntiphonError) as refused:
        await session.start()
    assert not session.state.connected and session.state.error is refused.value
    await session.close()
    return refused.value


async def test_without_a_token(guarded):
    error = await request_error(guarded.router.url)
    assert error.code == "unauthorized" and "token" in error.message, repr(error)


async def test_with_a_bad_token(guarded, mint):
    error = await request_error(guarded.router.url, token=mint.token(seconds=-5))
    assert error.code == "unauthorized" and "expired" in error.message, repr(error)


async def test_for_another_session(guarded, mint):
    error = await request_error(guarded.router.url, "guild-1", mint.token(session="guild-2"))
    assert error.code == "forbidden" and error.message, repr(error)


async def test_an_id_that_cannot_be(antiphon):
    error = await request_error(antiphon.router.url, "no good/id")
    assert error.code == "invalid_session_id", repr(error)


async def test_a_listener_may_not_command(guarded, mint, media):
    media.path(SONG)
    token = mint.token(session="guild-*", scope="listen")
    async with Session(guarded.router.url, "guild-3", token=token) as session:
        with pytest.raises(AntiphonError) as refused:
            await session.play(SONG.url)
        assert refused.value.code == "forbidden"
        assert (await session.queue())["queue"]["total"] == 0


async def test_an_expired_token_is_replaced_and_the_sound_goes_on(guarded, mint, media):
    media.path(SONG)
    asked: list[str] = []

    async def token() -> str:
        # The first ones are over soon; the last is not, so that the test ends.
        asked.append(mint.token(seconds=2 if len(asked) < 2 else 600))
        return asked[-1]

    ends = []
    async with Session(guarded.router.url, "guild-4", token=token, patience=60) as session, voice(session) as ear:
        session.on("connection", ends.append)
        await session.play(SONG.url)
        await until(lambda: len(asked) >= 3 and session.state.connected, "third token", 30)
        mark = ear.mark()
        await ear.wait_run(50, mark)
        assert session.state.playback == "streaming"
    codes = [event["error"]["code"] for event in ends if not event["connected"]]
    assert codes and set(codes) == {"unauthorized"}, ends


async def test_a_token_that_cannot_be_had_is_asked_for_again(guarded, mint, caplog):
    answers: list[object] = [RuntimeError("the vault is closed"), RuntimeError("still"), mint.token()]

    async def token() -> str:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    errors = []
    session = Session(guarded.router.url, "guild-5", token=token, patience=30)
    session.on("connection", lambda event: errors.append(event.get("error")))
    try:
        await session.start()
    finally:
        await session.close()
    assert errors[0]["code"] == "token_unavailable" and "vault" in errors[0]["message"], errors


async def test_tokens_are_not_logged(guarded, mint, caplog):
    caplog.set_level(logging.DEBUG)
    good, bad = mint.token(), mint.token(seconds=-5)
    async with Session(guarded.router.url, "guild-6", token=good):
        pass
    await request_error(guarded.router.url, token=bad)
    assert "guild-6" in caplog.text and good not in caplog.text and bad not in caplog.text


@pytest.mark.parametrize("status", [404, 403])
async def test_what_is_no_router(status):
    """A page of some other server."""

    async def answer(_: web.Request) -> web.Response:
        return web.Response(status=status, text="<h1>Not here</h1>")

    async with served(answer) as url:
        error = await request_error(url)
    assert error.code == {404: "not_found", 403: "forbidden"}[status], repr(error)
    assert str(status) in error.message and error.hint, repr(error)


async def test_a_router_that_is_full_for_now_is_tried_again():
    """An error that may pass does not end the start."""
    asked = []

    async def answer(request: web.Request) -> web.StreamResponse:
        asked.append(request)
        if len(asked) < 4:
            return web.json_response({"code": "too_many_sessions", "message": "full", "hint": "wait"}, status=503)
        socket = web.WebSocketResponse(protocols=["antiphon.opus.v1"])
        await socket.prepare(request)
        await socket.send_str("this is no JSON")
        await socket.send_json({"type": "status"})
        await be_idle(socket)
        return socket

    errors = []
    async with served(answer) as url:
        session = Session(url, "s", patience=30)
        session.on("connection", lambda event: errors.append(event.get("error")))
        await session.start()
        assert session.state.connected and not session.state.engine_connected
        await session.close()
    assert errors[0] == {"code": "too_many_sessions", "message": "full", "hint": "wait"}
    assert asked[0].query["buffer_ms"] == "100" and asked[0].headers["Sec-WebSocket-Protocol"] == "antiphon.opus.v1"


async def test_an_error_is_over_when_the_background_has_connected(monkeypatch):
    """A proxy was there before its Router: who starts again is not told the old error."""
    monkeypatch.setattr(link, "REFUSED_RETRY_SECONDS", 0.2)
    is_up = False

    async def answer(request: web.Request) -> web.StreamResponse:
        if not is_up:
            return web.Response(status=404)
        socket = web.WebSocketResponse(protocols=["antiphon.opus.v1"])
        await socket.prepare(request)
        await be_idle(socket)
        return socket

    async with served(answer) as url:
        session = Session(url, "s", patience=30)
        for _ in range(2):
            with pytest.raises(AntiphonError) as refused:
                await session.start()
            assert refused.value.code == "not_found", repr(refused.value)
        is_up = True
        await session.start()
        assert session.state.connected
        await session.start()
        await session.close()
