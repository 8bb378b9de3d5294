"""The fake Discord as a whole, as tests hold it."""

import asyncio
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from aiohttp import web

from .api import PREFIX, Api, not_found
from .bell import Bell
from .certificate import Certificate
from .commands import Commands
from .gateway import INTENT_GUILDS, Gateway
from .guilds import Channel, ChannelType, Guild, Member, Payload, User
from .interaction_answers import InteractionAnswers
from .interaction_payloads import OptionValue
from .interactions import Interactions
from .messages import Message, Messages
from .reply import Reply
from .snowflakes import snowflake
from .violations import Violations
from .voice import VoiceServer
from .voice_connection import VoiceConnection

#: Where Python finds this package, for a bot's process.
_TESTS = Path(__file__).resolve().parent.parent


class FakeDiscord:
    """Everything that a bot talks to, on 127.0.0.1. Leaving it asserts that the bot broke no rule."""

    def __init__(self) -> None:
        self.bell = Bell()
        self.violations = Violations()
        self.bot = User("antiphon", bot=True)
        self.author = User("author")
        self.token = f"fake.{snowflake()}.token"
        self.guilds: dict[int, Guild] = {}
        self.gateway = Gateway(self)
        self.commands = Commands(self)
        self.messages = Messages(self)
        self.interactions = Interactions(self)
        self.api = Api(self)
        self._runners: list[web.AppRunner] = []

    async def __aenter__(self) -> Self:
        self._folder = tempfile.TemporaryDirectory(prefix="fake-discord-")
        self.certificate = Certificate(Path(self._folder.name))
        self.voice_server = VoiceServer(self)
        main = self.api.application(self.commands.routes(), self.messages.routes(), InteractionAnswers(self).routes())
        main.router.add_get("/gateway/", self.gateway.handle)
        main_port = await self._listen(main)
        voice = web.Application()
        voice.router.add_get("/", self.voice_server.gateway.handle)
        voice_port = await self._listen(voice, secure=True)
        self.api_url = f"http://127.0.0.1:{main_port}{PREFIX}"
        self.gateway_url = f"ws://127.0.0.1:{main_port}/gateway/"
        self.voice_endpoint = f"127.0.0.1:{voice_port}"
        return self

    async def _listen(self, application: web.Application, *, secure: bool = False) -> int:
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        self._runners.append(runner)
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=self.certificate.server_context if secure else None)
        await site.start()
        port: int = runner.addresses[0][1]
        return port

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.gather(*(runner.cleanup() for runner in self._runners))
        self.voice_server.socket.close()
        self._folder.cleanup()
        if error is None:
            self.violations.assert_none()

    @property
    def environment(self) -> dict[str, str]:
        """What `python -m fake_discord.launch MODULE` needs besides the bot's own settings."""
        return {
            "FAKE_DISCORD_API": self.api_url,
            "FAKE_DISCORD_GATEWAY": self.gateway_url,
            "SSL_CERT_FILE": str(self.certificate.path),
            "PYTHONPATH": os.pathsep.join(filter(None, [str(_TESTS), os.environ.get("PYTHONPATH")])),
        }

    def command_line(self, module: str, *arguments: str) -> list[str]:
        """Runs a bot's module as a process."""
        return [sys.executable, "-m", "fake_discord.launch", module, *arguments]

    # The world

    def add_guild(
        self,
        name: str,
        guild_id: int | None = None,
        *,
        voice_channels: Iterable[str] = ("Music",),
        text_channels: Iterable[str] = ("general",),
        roles: Mapping[str, int] | None = None,
        members: Mapping[str, Iterable[str]] | None = None,
    ) -> Guild:
        """Adds the bot to a new guild: roles by name with their permissions, members by name with their roles."""
        guild = Guild(name, guild_id or snowflake(), self.bot)
        for role, permissions in (roles or {}).items():
            guild.add_role(role, permissions)
        for channels, kind in ((text_channels, ChannelType.TEXT), (voice_channels, ChannelType.VOICE)):
            for channel in channels:
                guild.add_channel(channel, kind)
        for member, its_roles in (members or {}).items():
            guild.add_member(member, *its_roles)
        self.guilds[guild.id] = guild
        self.gateway.dispatch_guild(guild, joined=True)
        return guild

    def remove_guild(self, guild: Guild) -> None:
        """Throws the bot out of a guild."""
        if self.bot.id in guild.voice_states:
            self.voice_server.move_bot(guild, None)
        del self.guilds[guild.id]
        self.gateway.dispatch("GUILD_DELETE", {"id": str(guild.id)}, INTENT_GUILDS)

    def guild_of(self, request: web.Request) -> Guild:
        guild = self.guilds.get(int(request.match_info["guild"]))
        if guild is None:
            raise not_found(10004, "Guild")
        return guild

    def channel_of(self, request: web.Request) -> Channel:
        channel_id = int(request.match_info["channel"])
        for guild in self.guilds.values():
            if channel_id in guild.channels:
                return guild.channels[channel_id]
        raise not_found(10003, "Channel")

    # The gateway

    async def wait_ready(self, identified: int = 1) -> None:
        """Until the bot is connected to the gateway, and has begun `identified` sessions."""
        await self.bell.wait(
            lambda: self.gateway.identified >= identified and self.gateway.connected,
            lambda: f"bot at the gateway (begun {self.gateway.identified}, resumed {self.gateway.resumed})",
        )

    async def wait_resumed(self, resumed: int = 1) -> None:
        """Until the bot has resumed its session so often."""
        await self.bell.wait(lambda: self.gateway.resumed >= resumed, "resumed gateway session")

    def drop_gateway(self, *, resume: bool = True) -> None:
        """Cuts the gateway's connection. Without `resume` the session is lost, and every voice connection with it."""
        self.gateway.drop(resume=resume)

    # What people do

    async def invoke(
        self,
        guild: Guild,
        member: Member,
        command: str,
        options: Mapping[str, OptionValue] | None = None,
        *,
        channel: Channel | None = None,
    ) -> Reply:
        """Gives a slash command ("play", or "queue add" with a subcommand) as soon as the bot has registered it, and
        returns the answer when it says more than "thinking…". Fails if Discord's client would not let it be given."""
        return await self.interactions.command(guild, member, command, options or {}, channel or guild.text)

    async def autocomplete(
        self,
        guild: Guild,
        member: Member,
        command: str,
        options: Mapping[str, OptionValue],
        *,
        focused: str,
        channel: Channel | None = None,
    ) -> list[Payload]:
        """The choices (`name`, `value`) offered while the option `focused` is typed."""
        there = channel or guild.text
        return await self.interactions.autocomplete(guild, member, command, options, focused, there)

    async def press(
        self, member: Member, message: Message | Reply, component: str, values: Sequence[str] = ()
    ) -> Reply:
        """Presses a button by its label or custom_id, or chooses `values` of a select."""
        on = message.message if isinstance(message, Reply) else message
        assert on is not None, f"no message to press {component!r} on: {message}"
        return await self.interactions.component(member, on, component, values)

    async def wait_message(self, channel: Channel, done: Callable[[Message], bool], what: str) -> Message:
        """The newest message in a channel that `done` is true of, once there is one."""

        def find() -> Message | None:
            return next(filter(done, reversed(self.messages.of(channel))), None)

        def seen() -> str:
            return f"{what} in #{channel.name}: {[str(message) for message in self.messages.of(channel)]}"

        message: Message = await self.bell.wait(find, seen)
        return message

    # Voice

    def move_user(self, guild: Guild, member: Member, channel: Channel | None) -> None:
        """Somebody joins a voice channel, changes it, or (None) leaves; the bot is moved, or thrown out."""
        if member is guild.bot:
            self.voice_server.move_bot(guild, channel)
        else:
            self.voice_server.place(guild, member, channel)

    def voice(self, guild: Guild) -> VoiceConnection:
        """What came and comes from the bot into a guild's voice channels."""
        return self.voice_server.connection(guild)

    def drop_voice(self, guild: Guild, code: int) -> None:
        """Closes the voice gateway's connection: 4006 and 4009 (the session is over), 4015 (the server crashed, and
        it can be resumed), 1006 (cut without a goodbye).

        discord.py 2.7.1 cannot resume after 4015: it waits for its connect timeout, and then leaves the channel.
        """
        self.voice_server.drop(guild, code)

    def change_voice_server(self, guild: Guild) -> None:
        """The call goes on at another voice server: 4014, and a new VOICE_SERVER_UPDATE."""
        self.voice_server.readmit(guild)

    def kick_voice(self, guild: Guild) -> None:
        """A moderator throws the bot out of its voice channel."""
        self.move_user(guild, guild.bot, None)
