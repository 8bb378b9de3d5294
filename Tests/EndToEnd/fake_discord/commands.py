"""The commands that the bot registered, for all guilds or for one."""

from typing import TYPE_CHECKING, Any

from aiohttp import web

from .api import body_of, invalid, json_answer, not_found
from .command_rules import CHAT_INPUT, SUBCOMMAND, SUBCOMMAND_GROUP, broken_command_rules
from .guilds import Guild, Payload
from .snowflakes import snowflake

if TYPE_CHECKING:
    from .server import FakeDiscord


class Commands:
    def __init__(self, fake: "FakeDiscord") -> None:
        self._fake = fake
        #: By the guild's ID, or None for those of all guilds; then by name.
        self._registered: dict[int | None, dict[str, Payload]] = {}
        #: How often a list was put.
        self.puts = 0

    def names(self, guild: Guild | None = None) -> list[str]:
        """Of the commands registered for one guild, or for all guilds."""
        return sorted(self._registered.get(guild.id if guild else None, {}))

    def find(self, guild: Guild, name: str) -> Payload | None:
        """The command as it is registered; one of the guild's own comes first."""
        for scope in (guild.id, None):
            if command := self._registered.get(scope, {}).get(name):
                return command
        return None

    async def wait(self, name: str, guild: Guild) -> Payload:
        """The command, once it is registered."""
        command: Payload = await self._fake.bell.wait(lambda: self.find(guild, name), f"command /{name}")
        return command

    def routes(self) -> list[web.RouteDef]:
        base = "/applications/{application}"
        return [
            web.get(f"{base}/commands", self._get),
            web.put(f"{base}/commands", self._put),
            web.get(f"{base}/guilds/{{guild}}/commands", self._get),
            web.put(f"{base}/guilds/{{guild}}/commands", self._put),
        ]

    def _scope(self, request: web.Request) -> int | None:
        if int(request.match_info["application"]) != self._fake.bot.id:
            raise not_found(10002, "Application")
        return self._fake.guild_of(request).id if "guild" in request.match_info else None

    async def _get(self, request: web.Request) -> web.Response:
        return json_answer(list(self._registered.get(self._scope(request), {}).values()))

    async def _put(self, request: web.Request) -> web.Response:
        scope, commands = self._scope(request), await body_of(request)
        if broken := broken_command_rules(commands):
            raise invalid(broken)
        before = self._registered.get(scope, {})
        self._registered[scope] = {
            command["name"]: self._completed(command, scope, before.get(command["name"])) for command in commands
        }
        self.puts += 1
        return json_answer(list(self._registered[scope].values()))

    def _completed(self, command: Payload, scope: int | None, before: Payload | None) -> Payload:
        """As Discord gives it back. A name keeps its ID."""
        made = {
            "id": before["id"] if before else str(snowflake()),
            "application_id": str(self._fake.bot.id),
            "version": str(snowflake()),
            "type": command.get("type", CHAT_INPUT),
            "description": command.get("description", ""),
            "default_member_permissions": command.get("default_member_permissions"),
            "nsfw": command.get("nsfw", False),
        }
        return command | made | ({"guild_id": str(scope)} if scope else {})


def leaf(command: Payload, path: list[str]) -> Payload:
    """The subcommand that a path of names leads to, or the command itself."""
    node = command
    for name in path:
        options = [option for option in node.get("options") or [] if option["type"] in (SUBCOMMAND, SUBCOMMAND_GROUP)]
        found = [option for option in options if option["name"] == name]
        assert found, f"/{command['name']} has no subcommand {name}, but {[option['name'] for option in options]}"
        node = found[0]
    return node


def nested(node: Payload, path: list[str], options: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The options of an interaction, inside the subcommands that they belong to."""
    if not path:
        return options
    child = leaf(node, path[:1])
    return [{"name": path[0], "type": child["type"], "options": nested(child, path[1:], options)}]
