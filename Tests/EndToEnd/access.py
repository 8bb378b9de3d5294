"""The Router's routes and what each is to ask for, and ways to ask."""

from dataclasses import dataclass

import aiohttp

from client import bearer, request
from inbox import PATIENCE_SECONDS
from tokens import Mint

LISTED = "https://listed.example"
STRANGE = "https://strange.example"


@dataclass(frozen=True)
class Route:
    """A path and what it is to ask for."""

    method: str
    path: str
    #: None: for everyone.
    scope: str | None
    of_session: bool = False
    takes_ticket: bool = False
    #: What it is answered with when nothing is in the way.
    status: int = 200

    @property
    def name(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def access(self) -> str:
        """As the Router's log has it."""
        if self.scope is None:
            return "open"
        if self.takes_ticket:
            return f"{self.scope}, by ticket too"
        return f"{self.scope} of its session" if self.of_session else self.scope

    def url(self, router: str, session: str) -> str:
        path = self.path.format(id=session, file=f"{session}.ogg", entry="1")
        query = {"/ws": f"?session={session}", "/artwork": "?url=media:none.mp3"}.get(self.path, "")
        return router + path + query


def of_session(scope: str, *names: str) -> list[Route]:
    """`METHOD PATH`, below a session's path."""
    routes = []
    for name in names:
        method, path = name.split(" ")
        routes.append(Route(method, "/api/v1/sessions/{id}" + path, scope, of_session=True))
    return routes


ROUTES = [
    Route("GET", "/health", None),
    Route("GET", "/ready", None),
    Route("GET", "/health/repo/{id}", "listen", of_session=True),
    # Without a secret.
    Route("POST", "/webhooks/github", None, status=503),
    Route("POST", "/webhooks/event", None, status=503),
    Route("GET", "/stream/{id}", "listen", of_session=True, takes_ticket=True),
    Route("POST", "/stream/{id}/test", "control", of_session=True),
    Route("GET", "/api/v1/repositories", "listen"),
    *(
        Route("GET", f"/api/v1/repositories/{{id}}{path}", "listen", of_session=True)
        for path in ("", "/events", "/replay", "/replay.ogg")
    ),
    Route("GET", "/api/v1/openapi.yaml", None),
    Route("GET", "/metrics", "admin"),
    Route("GET", "/ws", "listen", of_session=True, takes_ticket=True),
    Route("GET", "/listen/{file}", "listen", of_session=True, takes_ticket=True),
    Route("GET", "/artwork", "listen", takes_ticket=True),
    Route("GET", "/api/v1/me", "listen"),
    Route("POST", "/api/v1/tickets", "listen"),
    Route("GET", "/api/v1/media", "control"),
    Route("GET", "/api/v1/resolve", "control"),
    Route("GET", "/api/v1/sessions", "listen"),
    *of_session("listen", "GET ", "GET /why", "GET /queue", "GET /history"),
    *of_session("control", *(f"POST /{name}" for name in ("play", "prepare", "pause", "resume", "stop", "seek"))),
    *of_session(
        "control", *(f"POST /{name}" for name in ("unprepare", "volume", "quality", "skip", "skip_to", "previous"))
    ),
    *of_session("control", "POST /perform", "POST /mute"),
    *of_session("control", "POST /queue", "DELETE /queue", "POST /queue/shuffle", "POST /queue/loop"),
    *of_session("control", "POST /queue/{entry}/move", "DELETE /queue/{entry}"),
]
PAGES = [Route("GET", path, None) for path in ("/", "/index.html", "/main.js", "/logo.svg")]


async def ask(route: Route, router: str, session: str, headers: dict[str, str], query: str = ""):
    """The status, error code and headers of an answer, whose body may be endless."""
    url = route.url(router, session)
    url += ("&" if "?" in url else "?") + query if query else ""
    async with (
        aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=PATIENCE_SECONDS)) as http,
        http.request(route.method, url, headers=headers, data=b"{}" if route.method == "POST" else None) as response,
    ):
        is_json = response.content_type == "application/json"
        body = await response.json() if is_json else {}
        return response.status, body.get("code"), response.headers, body


async def failures(routes: list[Route], router: str, session: str, headers, expected, query: str = "") -> list[str]:
    """What of the routes does not answer with that status and code."""
    wrong = []
    for route in routes:
        status, code, answered, body = await ask(route, router, session, headers, query)
        if (status, code) != expected:
            wrong.append(f"{route.name}: {status} {body}")
        if status == 401 and answered.get("WWW-Authenticate") != "Bearer":
            wrong.append(f"{route.name}: {answered}")
    return wrong


async def ticket(router: str, mint: Mint, token: str | None, session: str, scope: str | None = None) -> str:
    """A ticket that a token is given."""
    wish = {"session": session} | ({} if scope is None else {"scope": scope})
    answer = await request("POST", f"{router}/api/v1/tickets", wish, headers=bearer(token))
    assert answer.status == 200 and answer.body["expires_ms"] == 30_000, answer
    return mint.keep(answer.body["ticket"])


async def websocket_status(router: str, session: str, given: str, **options) -> int:
    """What an upgrade is answered; 101 where it succeeds."""
    try:
        async with (
            aiohttp.ClientSession() as http,
            http.ws_connect(f"{router}/ws?session={session}&ticket={given}", **options),
        ):
            return 101
    except aiohttp.WSServerHandshakeError as refused:
        return refused.status
