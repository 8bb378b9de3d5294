"""Who may do what: every endpoint of the Router, with every kind of token."""

import base64
import hashlib
import hmac
import json
import time

import aiohttp
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from access import PAGES, ROUTES, ask, failures, ticket, websocket_status
from client import bearer, listen, request
from processes import Antiphon
from tokens import Mint

WEBSOCKET = next(route for route in ROUTES if route.path == "/ws")
SMALLER = {"control": "listen", "admin": "control"}


def test_the_table_has_every_route(declared):
    known = {route.name: route.access for route in ROUTES}
    assert len(declared) >= 20, declared
    assert {name: known.get(name) for name in declared} == declared


def unsigned(mint: Mint, header: dict, key: bytes) -> str:
    """A token whose header and HMAC are what an attacker would make."""

    def encode(data: bytes) -> str:
        return base64.urlsafe_b64encode(data).rstrip(b"=").decode()

    claims = {"session": "*", "scope": "admin", "exp": time.time() + 600}
    signed = encode(json.dumps(header).encode()) + "." + encode(json.dumps(claims).encode())
    return mint.keep(f"{signed}.{encode(hmac.new(key, signed.encode(), hashlib.sha256).digest())}")


#: What is no token of this Router, by what is wrong with it.
BAD_HEADERS = {
    "no token": lambda mint: {},
    "garbage": lambda mint: bearer("garbage"),
    "an empty token": lambda mint: {"Authorization": "Bearer "},
    "a token cut short": lambda mint: bearer(mint.token()[:-2]),
    "a token too long": lambda mint: bearer(mint.token(padding="a" * 5_000)),
    "another scheme": lambda mint: {"Authorization": "Basic YTpi"},
    "another secret": lambda mint: bearer(mint.token(key="x" * 40)),
    "another key": lambda mint: bearer(mint.token(algorithm="EdDSA", key=Ed25519PrivateKey.generate())),
    "another hash": lambda mint: bearer(mint.token(algorithm="HS512")),
    "no algorithm": lambda mint: bearer(mint.token(algorithm="none")),
    "the public key as the secret": lambda mint: bearer(unsigned(mint, {"alg": "HS256"}, mint.public_pem)),
    "the secret's hash as EdDSA": lambda mint: bearer(unsigned(mint, {"alg": "EdDSA"}, mint.secret.encode())),
    "an algorithm of its own": lambda mint: bearer(unsigned(mint, {"alg": "hs256"}, mint.secret.encode())),
    "expired": lambda mint: bearer(mint.token(seconds=-1)),
    "expired, by the key": lambda mint: bearer(mint.token(seconds=-1, algorithm="EdDSA")),
    "without exp": lambda mint: bearer(mint.token(exp=None)),
    "not valid yet": lambda mint: bearer(mint.token(nbf=int(time.time()) + 300)),
    "for others": lambda mint: bearer(mint.token(aud="another service")),
    "of no scope": lambda mint: bearer(mint.token(scope="play")),
    "of no session": lambda mint: bearer(mint.token(session=[])),
}


@pytest.mark.parametrize("what", BAD_HEADERS)
async def test_every_door_is_shut_to(guarded, mint, routes, new_session, what):
    headers, router, session = BAD_HEADERS[what](mint), guarded.router.url, new_session()
    shut = [route for route in routes if route.scope]
    assert len(shut) >= 20
    assert not await failures(shut, router, session, headers, (401, "unauthorized"))
    for route in [route for route in routes if not route.scope] + PAGES:
        status, *_ = await ask(route, router, session, headers)
        assert status == route.status, route
    with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
        async with aiohttp.ClientSession() as http:
            await http.ws_connect(f"{router}/ws?session={session}", headers=headers)
    assert refused.value.status == 401 and refused.value.headers["WWW-Authenticate"] == "Bearer"
    # In the query, tokens are nothing, and tickets are none.
    if token := headers.get("Authorization", "").removeprefix("Bearer "):
        for name in ("ticket", "token", "access_token"):
            assert not await failures(shut[:8], router, session, {}, (401, "unauthorized"), f"{name}={token}")


@pytest.mark.parametrize("algorithm", ["HS256", "EdDSA"])
async def test_every_door_is_open_to_the_scope_it_asks_for(guarded, mint, routes, new_session, algorithm):
    session = new_session()
    for route in routes:
        for pattern in (session, session[0] + "*", ["other", session]):
            token = mint.token(pattern, route.scope or "listen", algorithm=algorithm)
            status, code, _, body = await ask(route, guarded.router.url, session, bearer(token))
            assert status not in (401, 403), f"{route.name} {status} {code} {body}"
            # What comes after the check of the token: the WebSocket is none, and there is no such picture.
            if route.path == "/ws":
                assert status == 426


async def test_every_door_is_shut_to_smaller_scopes(guarded, mint, routes, new_session):
    session = new_session()
    for needed, scope in SMALLER.items():
        shut = [route for route in routes if route.scope == needed]
        assert shut
        headers = bearer(mint.token("*", scope))
        assert not await failures(shut, guarded.router.url, session, headers, (403, "forbidden"))
        *_, body = await ask(shut[0], guarded.router.url, session, headers)
        assert body["message"] == f"this needs the scope {needed}, and the token has {scope}"


async def test_every_door_is_shut_to_tokens_for_another_session(guarded, mint, routes, new_session):
    session = new_session()
    shut = [route for route in routes if route.of_session]
    assert len(shut) >= 15
    for pattern in ("other", f"{session}-*", f"*-{session}", f"{session}x"):
        headers = bearer(mint.token(pattern))
        assert not await failures(shut, guarded.router.url, session, headers, (403, "forbidden"))
    status, *_ = await ask(WEBSOCKET, guarded.router.url, "other", bearer(mint.token("other")))
    assert status == 426


async def test_the_list_of_sessions_has_ones_own(guarded, mint):
    router, admin = guarded.router.url, mint.token()
    async with (
        listen(router, "mine-1", token=admin),
        listen(router, "mine-2", token=admin),
        listen(router, "yours-1", token=admin),
    ):
        for pattern, expected in (("mine-*", ["mine-1", "mine-2"]), ("yours-1", ["yours-1"]), ("no", [])):
            headers = bearer(mint.token(pattern, "listen"))
            answer = await request("GET", f"{router}/api/v1/sessions", headers=headers)
            assert [each["session_id"] for each in answer.body["sessions"]] == expected


async def test_me_says_what_one_may_do(guarded, mint):
    url, expires = f"{guarded.router.url}/api/v1/me", int(time.time()) + 60
    token = mint.token(["a*", "b"], ["control"], exp=expires, sub="Ann")
    answer = await request("GET", url, headers=bearer(token))
    assert answer.body == {
        "anonymous": False,
        "subject": "Ann",
        "scopes": ["listen", "control"],
        "sessions": ["a*", "b"],
        "expires_at_ms": expires * 1_000,
    }


async def test_without_keys_everyone_may_do_everything(tmp_path, media, mint):
    with Antiphon(tmp_path, media.root) as antiphon:
        router, everything = antiphon.router.url, {"anonymous": True, "sessions": ["*"]}
        everything["scopes"] = ["listen", "control", "admin"]
        for headers in ({}, bearer("of another Router"), {"Authorization": "Basic YTpi"}):
            answer = await request("GET", f"{router}/api/v1/me", headers=headers)
            assert (answer.status, answer.body) == (200, everything)
        # So that pages and bots need no other way where no tokens are asked for.
        given = await ticket(router, mint, None, "a", "control")
        async with listen(router, "a", ticket=given) as listener:
            await listener.command("queue_clear")
        assert await websocket_status(router, "a", given) == 401


async def test_anonymous_lets_in_who_has_no_token(tmp_path, media, mint):
    with Antiphon(tmp_path, media.root, router_options=(*mint.options, "--anonymous")) as antiphon:
        url = f"{antiphon.router.url}/api/v1/me"
        assert (await request("GET", url)).body["anonymous"]
        answer = await request("GET", url, headers=bearer(mint.token("a", "listen")))
        assert answer.body["anonymous"] is False and answer.body["scopes"] == ["listen"]
        assert (await request("GET", url, headers=bearer("garbage"))).status == 401
