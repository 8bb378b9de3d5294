"""The Discord client: which server's player hears of what."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import aiohttp
import discord
from antiphon_client import Event
from discord import app_commands

from . import health
from .announcements import announce
from .guild_player import GuildPlayer
from .settings import Settings
from .suggestions import Suggestions
from .tasks import Tasks, guarded

_log = logging.getLogger(__name__)

HOUSEKEEPING_SECONDS = 60.0
#: What stopping may take of all that is asked to leave; the process ends within 5 s.
STOP_SECONDS = 3.0


class AntiphonBot(discord.Client):
    """Knows no command: the program adds them to its tree before it logs in."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(
            # No privileged intents: who is in voice channels comes with voice states.
            intents=discord.Intents(guilds=True, voice_states=True),
            allowed_mentions=discord.AllowedMentions.none(),
            max_messages=None,
        )
        self.settings = settings
        self.tree = app_commands.CommandTree(
            self,
            allowed_contexts=app_commands.AppCommandContext(guild=True),
            allowed_installs=app_commands.AppInstallationType(guild=True),
        )
        self.suggestions = Suggestions()
        self._players: dict[int, GuildPlayer] = {}
        self._tasks = Tasks("the bot")
        self._http: aiohttp.ClientSession | None = None

    @property
    def router_http(self) -> aiohttp.ClientSession:
        """For everything that goes to the Router."""
        if self._http is None:
            # A connection a server, and not the 100 that are usual.
            self._http = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
        return self._http

    def player(self, guild_id: int) -> GuildPlayer:
        """The server's player, made when it is first asked for."""
        player = self._players.get(guild_id)
        if player is None:
            player = GuildPlayer(self, guild_id, self.settings, self.router_http, self._announce)
            self._players[guild_id] = player
        return player

    async def setup_hook(self) -> None:
        await self.tree.sync()
        self._tasks.spawn(self._housekeeping())
        if self.settings.health_file is not None:
            self._tasks.spawn(self._report_health(self.settings.health_file))

    async def on_ready(self) -> None:
        _log.info("connected to Discord as %s, in %d servers", self.user, len(self.guilds))
        await asyncio.gather(*(player.voice.renew() for player in self._players.values()))

    async def on_voice_state_update(
        self, member: discord.Member, before: discord.VoiceState, after: discord.VoiceState
    ) -> None:
        player = self._players.get(member.guild.id)
        if player is None:
            return
        old, new = (state.channel.id if state.channel else None for state in (before, after))
        if self.user is None or member.id != self.user.id:
            player.member_moved(old, new)
        elif new is not None and new != old:
            player.was_moved(old, new)

    async def on_guild_remove(self, guild: discord.Guild) -> None:
        if player := self._players.pop(guild.id, None):
            await player.close()

    async def stop(self) -> None:
        """Leaves every voice channel properly and disconnects; the music goes on for those who hear it elsewhere."""
        self._tasks.cancel()
        closing = [asyncio.create_task(player.close()) for player in self._players.values()]
        if closing:
            await asyncio.wait(closing, timeout=STOP_SECONDS)
        await self.close()
        if self._http is not None:
            await self._http.close()

    def _announce(self, player: GuildPlayer, event: Event) -> None:
        if self.settings.announce:
            self._tasks.spawn(announce(self, player, event))

    async def _housekeeping(self) -> None:
        while True:
            await asyncio.sleep(HOUSEKEEPING_SECONDS)
            for player in list(self._players.values()):
                await guarded("housekeeping", player.close_if_idle())

    async def _report_health(self, file: Path) -> None:
        while True:
            well = self.is_ready() and self.ws is not None and self.ws.open
            await guarded("health", _write_health(file, well))
            await asyncio.sleep(health.WRITE_SECONDS if well else 1)


async def _write_health(file: Path, well: bool) -> None:
    try:
        health.write(file, health.READY if well else "not connected to Discord")
    except OSError as error:
        _log.warning("the health file cannot be written: %s", error)
