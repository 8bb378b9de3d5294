"""Interactions: people's commands, typing and clicks go to the bot, and its answers come back."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from inbox import PATIENCE_SECONDS

from .commands import leaf, nested
from .guilds import Channel, Guild, Member, Payload
from .interaction_payloads import (
    AUTOCOMPLETE,
    COMMAND,
    COMPONENT,
    OptionValue,
    interaction_payload,
    option_payloads,
    resolved_payload,
)
from .message_rules import BUTTON
from .messages import Message
from .reply import Reply

if TYPE_CHECKING:
    from .server import FakeDiscord


class Interaction:
    """One of them, as long as its token is good."""

    def __init__(self, payload: Payload, member: Member, channel: Channel, reply: Reply) -> None:
        self.id = int(payload["id"])
        self.token: str = payload["token"]
        self.type: int = payload["type"]
        self.member = member
        self.channel = channel
        self.reply = reply


class Interactions:
    def __init__(self, fake: "FakeDiscord") -> None:
        self._fake = fake
        self.by_token: dict[str, Interaction] = {}

    async def command(
        self, guild: Guild, member: Member, name: str, values: Mapping[str, OptionValue], channel: Channel
    ) -> Reply:
        """A slash command; `name` may have subcommands after it."""
        data = await self._command_data(guild, member, name, values)
        if resolved := resolved_payload(guild, values):
            data["resolved"] = resolved
        reply = self._send(COMMAND, guild, member, channel, data, f"/{name} {dict(values)}")
        await self._answered(reply)
        return reply

    async def autocomplete(
        self,
        guild: Guild,
        member: Member,
        name: str,
        values: Mapping[str, OptionValue],
        focused: str,
        channel: Channel,
    ) -> list[Payload]:
        """What is offered while somebody types the option `focused`."""
        data = await self._command_data(guild, member, name, values, focused)
        reply = self._send(AUTOCOMPLETE, guild, member, channel, data, f"typing /{name} {dict(values)}")
        await self._answered(reply)
        return reply.choices

    async def component(self, member: Member, message: Message, name: str, values: Sequence[str]) -> Reply:
        """A press on a button, or a choice of values."""
        assert not message.deleted, f"the {message} is gone"
        part = message.component(name)
        assert not part.get("disabled"), f"{name!r} is disabled"
        data: Payload = {"custom_id": part["custom_id"], "component_type": part["type"], "id": part.get("id", 1)}
        if part["type"] != BUTTON:
            offered = [option["value"] for option in part.get("options", [])]
            assert set(values) <= set(offered), f"{name!r} offers {offered}, not {values}"
            data["values"] = list(values)
        guild = self._fake.guilds[message.channel.guild_id]
        reply = self._send(COMPONENT, guild, member, message.channel, data, f"{name!r}", message)
        await self._answered(reply)
        return reply

    async def _command_data(
        self,
        guild: Guild,
        member: Member,
        name: str,
        values: Mapping[str, OptionValue],
        focused: str | None = None,
    ) -> Payload:
        first, *path = name.split()
        command = await self._fake.commands.wait(first, guild)
        if needed := command["default_member_permissions"]:
            granted = guild.permissions(member)
            assert granted & int(needed) == int(needed), f"Discord does not offer /{first} to {member.user.name}"
        options = option_payloads(leaf(command, path), values, focused)
        return {
            "id": command["id"],
            "name": first,
            "type": command["type"],
            "options": nested(command, path, options),
        } | ({"guild_id": str(guild.id)} if "guild_id" in command else {})

    def _send(
        self,
        kind: int,
        guild: Guild,
        member: Member,
        channel: Channel,
        data: Payload,
        what: str,
        message: Message | None = None,
    ) -> Reply:
        assert self._fake.gateway.connected, f"{what}: the bot is not at the gateway"
        payload = interaction_payload(kind, self._fake.bot.id, guild, member, channel, data)
        reply = Reply(self._fake.bell, what)
        if message is not None:
            payload["message"] = message.payload()
            reply.message = message
        self.by_token[payload["token"]] = Interaction(payload, member, channel, reply)
        self._fake.gateway.dispatch("INTERACTION_CREATE", payload)
        return reply

    async def _answered(self, reply: Reply) -> None:
        await reply.wait(lambda reply: reply.complete, "end", PATIENCE_SECONDS)
