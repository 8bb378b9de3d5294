"""WebSockets and players by scope and until their token's end, and tickets."""

import asyncio
import time

import aiohttp
import pytest

from access import STRANGE, failures, ticket, websocket_status
from client import bearer, listen, request
from inbox import PATIENCE_SECONDS
from media import OGG_OPUS, tone_clip

CLIP = tone_clip(440, 30, OGG_OPUS)
READING = {"queue": {}, "status": {}, "why": {}, "ping": {"t": 1}}
CHANGING = {
    "play": {"url": CLIP.url},
    "prepare": {"url": CLIP.url},
    "pause": {},
    "resume": {},
    "stop": {},
    "seek": {"position_ms": 1},
    "volume": {"level": 1},
    "skip": {},
    "queue_add": {"url": CLIP.url},
    "queue_remove": {"id": "1"},
    "queue_clear": {},
    "media": {"path": ""},
    "resolve": {"query": "media:a"},
}


async def test_a_listener_hears_and_may_not_command(guarded, mint, media, new_session):
    media.make(CLIP)
    router, session = guarded.router.url, new_session()
    async with (
        listen(router, session, token=mint.token(session, "listen")) as listener,
        listen(router, session, token=mint.token(session, "control")) as commander,
    ):
        for kind, fields in CHANGING.items():
            answer = await listener.ask(kind, **fields)
            assert (answer["type"], answer.get("code")) == ("error", "forbidden"), f"{kind}: {answer}"
            assert "scope control" in answer["message"] and answer["hint"]
        for kind, fields in READING.items():
            await listener.command(kind, **fields)
        assert (await listener.ask("dance"))["code"] == "invalid_command"
        assert not commander.events("ready") and not commander.packets(), "what was forbidden was done"
        await commander.play(CLIP.url)
        await listener.wait_packets(20)
        for kind, fields in (READING | CHANGING).items():
            answer = await commander.ask(kind, **fields)
            assert answer.get("code") != "forbidden", f"{kind}: {answer}"
        await commander.ask("stop")


@pytest.mark.parametrize("by_ticket", [False, True], ids=["token", "ticket"])
async def test_a_websocket_ends_when_its_token_does(guarded, mint, new_session, by_ticket):
    router, session = guarded.router.url, new_session()
    token = mint.token(session, "control", seconds=3)
    query = f"&ticket={await ticket(router, mint, token, session, 'control')}" if by_ticket else ""
    headers = {} if by_ticket else bearer(token)
    async with (
        aiohttp.ClientSession() as http,
        http.ws_connect(f"{router}/ws?session={session}{query}", headers=headers) as socket,
        asyncio.timeout(PATIENCE_SECONDS),
    ):
        while (message := await socket.receive()).type is not aiohttp.WSMsgType.CLOSE:
            pass
    assert (message.data, message.extra) == (4401, "the token has expired: connect again with a new one")


@pytest.mark.parametrize("by_ticket", [False, True], ids=["token", "ticket"])
async def test_a_player_ends_when_its_token_does(guarded, mint, new_session, by_ticket):
    router, session = guarded.router.url, new_session()
    token = mint.token(session, "listen", seconds=3)
    query = f"?ticket={await ticket(router, mint, token, session)}" if by_ticket else ""
    headers = {} if by_ticket else bearer(token)
    async with (
        aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=PATIENCE_SECONDS)) as http,
        http.get(f"{router}/listen/{session}.ogg{query}", headers=headers) as response,
    ):
        assert response.status == 200
        stream = await response.read()
    # Whole: its last page says that it is (RFC 3533, 6).
    assert stream.startswith(b"OggS") and stream[stream.rindex(b"OggS") + 5] & 4


async def test_a_ticket_opens_one_websocket_with_its_own_scope(guarded, mint, new_session):
    router, session = guarded.router.url, new_session()
    admin = mint.token("*", "admin")
    for scope, expected in ((None, "forbidden"), ("listen", "forbidden"), ("control", None)):
        given = await ticket(router, mint, admin, session, scope)
        async with listen(router, session, ticket=given) as listener:
            await listener.command("status")
            assert (await listener.ask("queue_clear")).get("code") == expected
        assert await websocket_status(router, session, given) == 401


async def test_a_ticket_opens_one_of_many_at_once(guarded, mint, new_session):
    router, session = guarded.router.url, new_session()
    given = await ticket(router, mint, mint.token(), session)
    statuses = await asyncio.gather(*(websocket_status(router, session, given) for _ in range(20)))
    assert sorted(statuses) == [101] + [401] * 19


async def test_a_ticket_opens_a_player_and_a_picture(guarded, mint, new_session):
    router, session = guarded.router.url, new_session()
    for path, expected in ((f"/listen/{session}.ogg?", 200), ("/artwork?url=media:none.mp3&", 404)):
        given = await ticket(router, mint, mint.token(session, "listen"), session)
        for status in (expected, 401):
            async with aiohttp.ClientSession() as http, http.get(f"{router}{path}ticket={given}") as response:
                assert response.status == status, path


async def test_a_ticket_opens_nothing_else(guarded, mint, routes, new_session):
    router, session = guarded.router.url, new_session()
    given = await ticket(router, mint, mint.token(), session, "control")
    others = [route for route in routes if route.scope and not route.takes_ticket]
    assert not await failures(others, router, session, {}, (401, "unauthorized"), f"ticket={given}")
    assert not await failures(others, router, session, bearer(given), (401, "unauthorized"))
    # For another session it opens nothing, and is used by that.
    assert await websocket_status(router, "other", given) == 403
    assert await websocket_status(router, session, given) == 401
    # A strange page's attempt does not use it up.
    given = await ticket(router, mint, mint.token(), session, "control")
    assert await websocket_status(router, session, given, origin=STRANGE) == 403
    assert await websocket_status(router, session, given) == 101


async def test_a_ticket_gives_no_more_than_its_token(guarded, mint, new_session):
    router, session = guarded.router.url, new_session()
    listener = bearer(mint.token(session, "listen"))
    for wish, status, code in (
        ({"session": session, "scope": "control"}, 403, "forbidden"),
        ({"session": "other"}, 403, "forbidden"),
        ({"session": session, "scope": "admin"}, 400, "invalid_command"),
        ({"session": session, "scope": "dance"}, 400, "invalid_command"),
        ({"session": "a*"}, 400, "invalid_session_id"),
        ({"scope": "listen"}, 400, "invalid_command"),
        ([], 400, "invalid_json"),
    ):
        answer = await request("POST", f"{router}/api/v1/tickets", wish, headers=listener)
        assert (answer.status, answer.code) == (status, code), f"{wish}: {answer}"
    assert (await request("POST", f"{router}/api/v1/tickets", {"session": session})).status == 401


async def test_a_ticket_ends_with_its_token(guarded, mint, new_session):
    router, session = guarded.router.url, new_session()
    expires = time.time() + 2
    given = await ticket(router, mint, mint.token(session, exp=expires), session)
    await asyncio.sleep(max(0, expires - time.time()) + 0.01)
    assert await websocket_status(router, session, given) == 401


async def test_tickets_that_wait_are_bounded(guarded, mint, new_session):
    router, session = guarded.router.url, new_session()
    token = mint.token(session, "listen", sub="greedy")
    for _ in range(100):
        await ticket(router, mint, token, session)
    answer = await request("POST", f"{router}/api/v1/tickets", {"session": session}, headers=bearer(token))
    assert (answer.status, answer.code) == (503, "overloaded") and answer.headers["Retry-After"]
    await ticket(router, mint, mint.token(session, "listen", sub="modest"), session)
