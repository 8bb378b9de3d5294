"""The REST API, version 10: addresses, who may ask, and errors as Discord words them."""

import json
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from aiohttp import web

if TYPE_CHECKING:
    from .server import FakeDiscord

PREFIX = "/api/v10"

#: What lies below these needs no bot token: the interaction's own token is in the address.
_OPEN = (f"{PREFIX}/interactions/", f"{PREFIX}/webhooks/")

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class RequestError(Exception):
    """An answer with an error. `broken` says which rule the bot broke, if it did."""

    def __init__(self, status: int, code: int, message: str, broken: str | None = None) -> None:
        self.status = status
        self.code = code
        self.message = message
        self.broken = broken


def not_found(code: int, what: str) -> RequestError:
    return RequestError(404, code, f"Unknown {what}")


def invalid(broken: list[str]) -> RequestError:
    """The answer to a form that breaks rules."""
    return RequestError(400, 50035, "Invalid Form Body", "; ".join(broken))


async def body_of(request: web.Request) -> Any:
    """The JSON of a request, which comes in a form where there are files beside it."""
    if request.content_type != "multipart/form-data":
        return await request.json()
    form = await request.post()
    return json.loads(str(form["payload_json"]))


def json_answer(data: Any, status: int = 200) -> web.Response:
    """JSON as Discord sends it: discord.py does not take it for JSON if the type names a charset."""
    return web.Response(body=json.dumps(data).encode(), status=status, content_type="application/json")


class Api:
    """Puts the parts' routes together and answers for all of them."""

    def __init__(self, fake: "FakeDiscord") -> None:
        self._fake = fake

    def application(self, *parts: list[web.RouteDef]) -> web.Application:
        api = web.Application(middlewares=[self._answer], client_max_size=30 << 20)
        for routes in (self._account_routes(), *parts):
            api.add_routes([web.route(route.method, PREFIX + route.path, route.handler) for route in routes])
        return api

    @web.middleware
    async def _answer(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if not request.path.startswith(PREFIX):
            return await handler(request)
        name = f"{request.method} {request.path.removeprefix(PREFIX)}"
        try:
            if not request.path.startswith(_OPEN):
                self._authorize(request)
            return await handler(request)
        except RequestError as request_error:
            if request_error.broken:
                self._fake.violations.record(f"{name}: {request_error.broken}")
            body = {"code": request_error.code, "message": request_error.message}
            return json_answer(body, status=request_error.status)
        except web.HTTPException as unknown:
            self._fake.violations.record(f"{name}: the fake does not know this address")
            return json_answer({"code": 0, "message": f"{unknown.status}: {unknown.reason}"}, status=404)
        except (KeyError, TypeError, ValueError) as error:
            self._fake.violations.record(f"{name}: the fake cannot read this: {error!r}")
            return json_answer({"code": 50109, "message": "The request body contains invalid JSON."}, status=400)
        finally:
            self._fake.bell.ring()

    def _authorize(self, request: web.Request) -> None:
        if request.headers.get("Authorization") != f"Bot {self._fake.token}":
            raise RequestError(401, 0, "401: Unauthorized")

    def _account_routes(self) -> list[web.RouteDef]:
        return [
            web.get("/gateway", self._gateway),
            web.get("/gateway/bot", self._gateway),
            web.get("/users/@me", self._me),
            web.get("/oauth2/applications/@me", self._application),
            web.get("/users/{user}", self._user),
            web.get("/guilds/{guild}", self._guild),
            web.get("/guilds/{guild}/channels", self._channels),
            web.get("/guilds/{guild}/members/{user}", self._member),
            web.get("/guilds/{guild}/voice-states/{user}", self._voice_state),
            web.get("/channels/{channel}", self._channel),
        ]

    async def _gateway(self, request: web.Request) -> web.Response:
        limit = {"total": 1000, "remaining": 1000, "reset_after": 0, "max_concurrency": 1}
        return json_answer({"url": self._fake.gateway_url, "shards": 1, "session_start_limit": limit})

    async def _me(self, request: web.Request) -> web.Response:
        return json_answer(self._fake.bot.payload())

    async def _application(self, request: web.Request) -> web.Response:
        return json_answer(
            {
                "id": str(self._fake.bot.id),
                "name": self._fake.bot.name,
                "icon": None,
                "description": "",
                "bot_public": True,
                "bot_require_code_grant": False,
                "owner": self._fake.author.payload(),
                "verify_key": "00" * 32,
                "flags": 0,
                "team": None,
            }
        )

    async def _user(self, request: web.Request) -> web.Response:
        user_id = int(request.match_info["user"])
        for guild in self._fake.guilds.values():
            if user_id in guild.members:
                return json_answer(guild.members[user_id].user.payload())
        raise not_found(10013, "User")

    async def _guild(self, request: web.Request) -> web.Response:
        return json_answer(self._fake.guild_of(request).payload())

    async def _channels(self, request: web.Request) -> web.Response:
        return json_answer([channel.payload() for channel in self._fake.guild_of(request).channels.values()])

    async def _member(self, request: web.Request) -> web.Response:
        member = self._fake.guild_of(request).members.get(int(request.match_info["user"]))
        if member is None:
            raise not_found(10007, "Member")
        return json_answer(member.payload())

    async def _voice_state(self, request: web.Request) -> web.Response:
        guild = self._fake.guild_of(request)
        user = request.match_info["user"]
        state = guild.voice_states.get(self._fake.bot.id if user == "@me" else int(user))
        if state is None:
            raise not_found(10065, "Voice State")
        return json_answer(state.payload())

    async def _channel(self, request: web.Request) -> web.Response:
        return json_answer(self._fake.channel_of(request).payload())
