"""One server's music: its Antiphon session and its voice connection, and what follows from who is there."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import aiohttp
import discord
from antiphon_client import AntiphonError, Event, Session, Track
from antiphon_client.discord import AntiphonSource

from .settings import Settings
from .tasks import Tasks
from .voice_following import Action, Attendance, channel_to_follow
from .voice_link import CannotJoin, VoiceChannel, VoiceLink, join_problem

_log = logging.getLogger(__name__)

#: A session that nobody uses is closed after this time; the music of others who listen to it goes on.
IDLE_SECONDS = 600.0
#: How long a command waits for a Router or an engine that is away.
PATIENCE_SECONDS = 8.0

Announce = Callable[["GuildPlayer", Event], None]


class GuildPlayer:
    """All methods belong to the event loop."""

    def __init__(
        self, client: discord.Client, guild_id: int, settings: Settings, http: aiohttp.ClientSession, announce: Announce
    ) -> None:
        self.guild_id = guild_id
        self.voice = VoiceLink(client, guild_id, self._source, self._removed)
        #: Who called the bot last.
        self.summoner_id: int | None = None
        #: Where they did: announcements go there.
        self.text_channel_id: int | None = None
        self._client = client
        self._settings = settings
        self._http = http
        self._announce = announce
        self._attendance = Attendance(settings.leave_after_seconds)
        self._leaving: asyncio.TimerHandle | None = None
        self._session: Session | None = None
        self._acting = asyncio.Lock()
        self._tasks = Tasks(f"guild {guild_id}")
        self._used_at = asyncio.get_running_loop().time()

    async def session(self) -> Session:
        """The session, connected. Raises AntiphonError; a Router that cannot be reached is tried again and again."""
        self._used_at = asyncio.get_running_loop().time()
        if self._session is None or _is_refused(self._session.state.error):
            # One that is refused would try again at last. Who asks has it tried now, with what the token's file says.
            old, self._session = self._session, self._new_session()
            if old is not None:
                await old.close()
        session = self._session
        await session.start()
        return session

    @property
    def open_session(self) -> Session | None:
        """The session, where there is one already."""
        return self._session

    @property
    def current(self) -> Track | None:
        return self._session.state.current if self._session else None

    @property
    def paused_for_absence(self) -> bool:
        """Whether the bot itself has paused, because nobody listened."""
        return self._attendance.paused_for_absence

    def people_in(self, channel_id: int | None) -> int:
        """How many people, not bots, are in a voice channel."""
        guild = self._client.get_guild(self.guild_id)
        channel = guild.get_channel(channel_id) if guild and channel_id is not None else None
        if guild is None or not isinstance(channel, (discord.VoiceChannel, discord.StageChannel)):
            return 0
        members = (guild.get_member(member_id) for member_id in channel.voice_states)
        return sum(1 for member in members if member is None or not member.bot)

    async def join(self, channel: VoiceChannel) -> bool:
        """Comes to a voice channel; whether it was in none before. Raises CannotJoin or AntiphonError."""
        session = await self.session()
        was_away = self.voice.channel_id is None
        if self.voice.channel_id != channel.id or not self.voice.is_connected:
            await self.voice.join(channel)
        self.voice.set_sounding(session.state.playback == "streaming")
        self.attend()
        return was_away

    async def leave(self) -> None:
        """Leaves voice; the session stays as it is."""
        self._cancel_leaving()
        self._attendance.gone()
        await self.voice.leave()

    async def close(self) -> None:
        """Leaves voice and disconnects from the Router; the music goes on for others."""
        self._tasks.cancel()
        await self.leave()
        await self._close_session()

    async def close_if_idle(self) -> None:
        """Disconnects from the Router where the bot has been neither in voice nor asked anything for long."""
        now = asyncio.get_running_loop().time()
        if self.voice.channel_id is not None:
            self._used_at = now
        elif self._session is not None and now - self._used_at > IDLE_SECONDS:
            _log.info("guild %s: idle, disconnecting from the Router", self.guild_id)
            await self._close_session()

    def member_moved(self, before: int | None, after: int | None) -> None:
        """Somebody but the bot has gone from one voice channel to another, or come, or left."""
        here = self.voice.channel_id
        if here is None or here not in (before, after) or before == after:
            return
        target = None
        if before == here:
            target = channel_to_follow(here, self.people_in(here), after, self._summoner_channel())
        if target is not None:
            self._tasks.spawn(self._follow(target))
        else:
            self.attend()

    def was_moved(self, before: int | None, after: int) -> None:
        """The bot itself is in another channel: somebody has moved it, or it has come by itself."""
        if self.voice.channel_id is None:
            self._tasks.spawn(self.voice.leave_unless_wanted())
        elif before is not None:
            self.voice.moved_to(after)
            self.attend()

    def attend(self) -> None:
        """Does what follows from who is in the bot's channel now."""
        self._cancel_leaving()
        if self.voice.channel_id is None:
            return
        loop = asyncio.get_running_loop()
        playing = self._session is not None and self._session.state.playback in ("streaming", "extracting")
        action = self._attendance.observe(self.people_in(self.voice.channel_id), playing, loop.time())
        if self._attendance.deadline is not None and action is not Action.LEAVE:
            self._leaving = loop.call_at(self._attendance.deadline, self.attend)
        if action is not None:
            self._tasks.spawn(self._perform(action))

    async def _perform(self, action: Action) -> None:
        async with self._acting:
            _log.info("guild %s: %s", self.guild_id, action.name.lower())
            if action is Action.LEAVE:
                await self.leave()
                return
            session = await self.session()
            if action is Action.PAUSE and session.state.playback in ("streaming", "extracting"):
                await session.pause()
            elif action is Action.RESUME and session.state.playback == "paused":
                await session.resume()

    async def _follow(self, channel_id: int) -> None:
        guild = self._client.get_guild(self.guild_id)
        channel = guild.get_channel(channel_id) if guild else None
        if isinstance(channel, (discord.VoiceChannel, discord.StageChannel)) and not join_problem(channel):
            try:
                await self.voice.join(channel)
            except CannotJoin as problem:
                _log.info("guild %s: cannot follow: %s", self.guild_id, problem)
        self.attend()

    def _summoner_channel(self) -> int | None:
        guild = self._client.get_guild(self.guild_id)
        member = guild.get_member(self.summoner_id) if guild and self.summoner_id is not None else None
        return member.voice.channel.id if member and member.voice and member.voice.channel else None

    def _new_session(self) -> Session:
        session = Session(
            self._settings.antiphon_url,
            str(self.guild_id),
            token=self._settings.antiphon_token,
            http=self._http,
            patience=PATIENCE_SECONDS,
        )
        session.on(None, self._heard)
        return session

    def _source(self) -> discord.AudioSource:
        assert self._session, "the bot joins voice only with a session"
        return AntiphonSource(self._session)

    def _heard(self, event: Event) -> None:
        """An event of the session."""
        if self._session is not None:
            self.voice.set_sounding(self._session.state.playback == "streaming")
        self._announce(self, event)

    def _removed(self) -> None:
        """Thrown out of voice: as if everybody had left, but at once."""
        self._cancel_leaving()
        self._attendance.gone()
        if self._session is not None and self._session.state.playback == "streaming":
            self._attendance.paused_for_absence = True
            self._tasks.spawn(self._perform(Action.PAUSE))

    async def _close_session(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _cancel_leaving(self) -> None:
        if self._leaving is not None:
            self._leaving.cancel()
            self._leaving = None


def _is_refused(error: AntiphonError | None) -> bool:
    return error is not None and error.code in ("unauthorized", "forbidden", "token_unavailable")
