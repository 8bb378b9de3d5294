"""Pages of other origins: what the Router answers them, and what a real browser lets them do."""

import json

import aiohttp
import pytest

from access import LISTED, PAGES, STRANGE, ask, failures, ticket
from client import bearer, listen, request
from local_server import EmptyPage, LocalServer
from media import OGG_OPUS, tone_clip
from processes import Antiphon

CLIP = tone_clip(440, 30, OGG_OPUS)


async def test_every_door_is_shut_to_strange_pages(guarded, mint, routes, new_session):
    """A browser sends a token for a strange page only after a preflight, which does not let it."""
    router, session = guarded.router.url, new_session()
    headers = bearer(mint.token()) | {"Origin": STRANGE}
    assert not await failures([*routes, *PAGES], router, session, headers, (403, "forbidden"))
    for route in [*routes, *PAGES]:
        for given in (headers, {"Origin": STRANGE}):
            _, _, answered, _ = await ask(route, router, session, given)
            assert "Access-Control-Allow-Origin" not in answered, route
            assert answered["Vary"] == "Origin", route
    for given in (bearer(mint.token()), {}):
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            async with aiohttp.ClientSession() as http:
                await http.ws_connect(f"{router}/ws?session={session}", headers=given, origin=STRANGE)
        assert refused.value.status == 403


@pytest.mark.parametrize("path", ["/api/v1/resolve?query=a", "/listen/a.ogg", "/artwork?url=media:a.mp3", "/stream/a"])
async def test_another_site_has_no_work_done(guarded, mint, path):
    """An image or a link of a foreign page sends no `Origin`, and needs no answer."""
    url = guarded.router.url + path

    async def code(**headers: str) -> str | None:
        async with aiohttp.ClientSession() as http, http.get(url, headers=headers) as answer:
            return (await answer.json())["message"] if answer.status == 403 else None

    assert "cross-site" in await code(**{"Sec-Fetch-Site": "cross-site"})
    assert "cross-site" in await code(**{"Sec-Fetch-Site": "cross-site", "Referer": f"{STRANGE}/{LISTED}"})
    for headers in ({}, {"Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": "none"}):
        assert "cross-site" not in (await code(**headers) or "")
    for headers in ({"Origin": LISTED}, {"Referer": f"{LISTED}/page"}):
        assert "cross-site" not in (await code(**{"Sec-Fetch-Site": "cross-site"} | headers) or "")


async def test_another_site_has_no_work_done_by_the_engine(guarded):
    for path, expected in (("/resolve?query=a", 403), ("/media", 403), ("/sessions", 403), ("/health", 200)):
        answer = await request("GET", guarded.engine.url + path, headers={"Sec-Fetch-Site": "cross-site"})
        assert answer.status == expected, (path, answer)


async def test_every_door_answers_preflights_without_a_token(guarded, routes, new_session):
    router, session = guarded.router.url, new_session()
    wish = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
    async with aiohttp.ClientSession() as http:
        for route in routes:
            for origin in (LISTED, STRANGE):
                async with http.options(route.url(router, session), headers=wish | {"Origin": origin}) as answer:
                    assert answer.status == 204 and answer.headers["Vary"] == "Origin", route
                    allowed = {name: value for name, value in answer.headers.items() if "Access-Control" in name}
                    assert allowed == (
                        {
                            "Access-Control-Allow-Origin": LISTED,
                            "Access-Control-Allow-Methods": "GET, HEAD, POST, DELETE",
                            "Access-Control-Allow-Headers": (
                                "Authorization, Content-Type, Idempotency-Key, Last-Event-ID"
                            ),
                            "Access-Control-Expose-Headers": "ETag, Retry-After",
                            "Access-Control-Max-Age": "600",
                        }
                        if origin == LISTED
                        else {}
                    )


async def test_every_door_is_open_to_listed_pages_with_a_token(guarded, mint, routes, new_session):
    router, session = guarded.router.url, new_session()
    for route in routes:
        status, code, answered, body = await ask(route, router, session, bearer(mint.token()) | {"Origin": LISTED})
        assert status not in (401, 403), f"{route.name} {status} {code} {body}"
        assert answered["Access-Control-Allow-Origin"] == LISTED, route
        # So that the page is told why.
        if route.scope:
            status, _, answered, _ = await ask(route, router, session, {"Origin": LISTED})
            assert status == 401 and answered["Access-Control-Allow-Origin"] == LISTED, route
    async with listen(router, session, token=mint.token(), origin=LISTED) as listener:
        await listener.wait_event("session")


# MARK: In Chromium


@pytest.fixture(params=["tokens", "anonymous"])
def visited(request, tmp_path, media, mint):
    """A Router, a page of an origin that it lists, one of another, and a token for scripts of both to show."""
    media.make(CLIP)
    with LocalServer(EmptyPage) as listed, LocalServer(EmptyPage) as strange:
        keys = mint.options if request.param == "tokens" else ()
        options = ("--allow-origin", listed.url, *keys)
        with Antiphon(tmp_path, media.root, router_options=options) as antiphon:
            yield antiphon.router.url, listed.url, strange.url, mint.token("page", "control")


#: What a fetch comes to: the answer's status and text, or the error.
FETCH = """async ([url, options]) => {
  try {
    const answer = await fetch(url, options);
    return [answer.type, answer.status, await answer.text()];
  } catch (error) {
    return [String(error)];
  }
}"""

#: What a WebSocket comes to: what it was sent in the end, or that there was none.
WEBSOCKET = """([url, command]) => new Promise((resolve) => {
  const socket = new WebSocket(url, "antiphon.opus.v1");
  socket.binaryType = "arraybuffer";
  let packets = 0;
  socket.onopen = () => socket.send(JSON.stringify(command));
  socket.onmessage = ({ data }) => {
    if (typeof data !== "string" && ++packets === 20) resolve("sound");
  };
  socket.onclose = ({ code }) => resolve(`closed ${code}`);
})"""


async def fetch(page, url: str, method: str = "GET", body: str | None = None, headers=None, **options) -> list:
    options = {"method": method, "body": body, "headers": headers or {}} | options
    return await page.evaluate(FETCH, [url, {name: value for name, value in options.items() if value is not None}])


async def test_a_strange_page_can_neither_read_nor_command(visited, browser, mint):
    router, _, strange, token = visited
    api, command = f"{router}/api/v1", json.dumps({"url": CLIP.url})
    page = await (await browser.new_context()).new_page()
    await page.goto(strange)
    for path in ("/me", "/sessions", "/sessions/page", "/sessions/page/queue", "/media"):
        # Without and with the token, which a page may have been given by mistake.
        for headers in ({}, bearer(token)):
            answer = await fetch(page, api + path, headers=headers)
            assert answer == ["TypeError: Failed to fetch"], f"{path}: {answer}"
    # A request that needs no preflight is sent, and refused.
    for method, path, body in (("POST", "/sessions/page/play", command), ("POST", "/tickets", '{"session": "page"}')):
        for headers in ({}, bearer(token)):
            assert await fetch(page, api + path, method, body, headers) == ["TypeError: Failed to fetch"]
        opaque = await fetch(page, api + path, method, body, mode="no-cors")
        assert opaque == ["opaque", 0, ""]
    assert await fetch(page, f"{api}/sessions/page/queue", "DELETE") == ["TypeError: Failed to fetch"]
    given = await ticket(router, mint, token, "page", "control")
    for query in ("", f"&ticket={given}"):
        url = f"{router.replace('http', 'ws')}/ws?session=page{query}"
        assert await page.evaluate(WEBSOCKET, [url, {"type": "play", "url": CLIP.url}]) == "closed 1006"
    answer = await request("GET", f"{api}/sessions/page", headers=bearer(token))
    assert answer.body["state"] == "idle" and answer.body["queue"]["tracks"] == [], answer
    await page.context.close()


async def test_a_listed_page_can_read_and_command(visited, browser):
    router, listed, _, token = visited
    api, page = f"{router}/api/v1", await (await browser.new_context()).new_page()
    await page.goto(listed)
    headers = bearer(token) | {"Content-Type": "application/json", "Idempotency-Key": "1"}
    kind, status, text = await fetch(page, f"{api}/me", headers=bearer(token))
    assert (kind, status) == ("cors", 200) and '"control"' in text
    kind, status, text = await fetch(page, f"{api}/sessions/page/queue", "DELETE", headers=headers)
    assert (kind, status) == ("cors", 200), text
    wish = '{"session": "page", "scope": "control"}'
    kind, status, text = await fetch(page, f"{api}/tickets", "POST", wish, headers)
    given = json.loads(text)["ticket"]
    url = f"{router.replace('http', 'ws')}/ws?session=page&ticket={given}"
    assert await page.evaluate(WEBSOCKET, [url, {"type": "play", "url": CLIP.url}]) == "sound"
    # And it is told what is wrong with what it shows.
    if (await request("GET", f"{api}/me")).status == 401:
        kind, status, text = await fetch(page, f"{api}/me", headers=bearer("garbage"))
        assert (kind, status) == ("cors", 401) and "JSON Web Token" in text
    await page.context.close()
