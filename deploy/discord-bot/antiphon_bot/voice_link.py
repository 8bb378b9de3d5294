"""One server's voice connection: it is where it is wanted, and comes back by itself."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress

import discord

from .guild_voice import GuildVoice

_log = logging.getLogger(__name__)

#: How long a handshake with Discord may take. One in which an event or a datagram is lost never ends, so it is shorter
#: than discord.py's own, and tried again; discord.py itself misses one of two events that come at the same moment
#: (`_wait_for_state` looks at the state before it waits for the next).
CONNECT_SECONDS = 7.0
CONNECT_ATTEMPTS = 3
#: discord.py reconnects by itself; what it has not managed in this time is begun again.
RECONNECT_SECONDS = 45.0
#: How long leaving may take; Discord's word that it is done is not waited for any longer.
LEAVE_SECONDS = 2.0
#: How often it is looked whether it is done.
GONE_POLL_SECONDS = 0.05
#: How often the connection is looked at where nothing is heard of it.
LOOK_SECONDS = 1.0
#: Between failed attempts, doubled each time.
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.5, 30.0
#: How long silence is sent once nothing plays, for what the jitter buffer still holds, before nothing is sent.
SILENCE_SECONDS = 0.5

VoiceChannel = discord.VoiceChannel | discord.StageChannel


class CannotJoin(Exception):
    """Why a voice channel cannot be joined, for people."""


class VoiceLink:
    """Joins, moves, leaves, and restores what broke. All methods belong to the event loop."""

    def __init__(
        self,
        client: discord.Client,
        guild_id: int,
        make_source: Callable[[], discord.AudioSource],
        removed: Callable[[], None],
    ) -> None:
        """`make_source` is asked for the sound at each start; `removed` is called when somebody threw the bot out."""
        self._client = client
        self._guild_id = guild_id
        self._make_source = make_source
        self._removed = removed
        self._voice: GuildVoice | None = None
        self._wanted: int | None = None
        self._sounding = False
        self._player_runs = False
        self._plays = 0
        self._disconnected_since: float | None = None
        self._changing = asyncio.Lock()
        self._wake = asyncio.Event()
        self._keeper: asyncio.Task[None] | None = None
        self._hush: asyncio.TimerHandle | None = None

    @property
    def channel_id(self) -> int | None:
        """Where the bot is, or is about to be again."""
        return self._wanted

    @property
    def is_connected(self) -> bool:
        return self._voice is not None and self._voice.is_connected()

    async def join(self, channel: VoiceChannel) -> None:
        """Is in the channel when it returns. Raises CannotJoin."""
        if problem := join_problem(channel):
            raise CannotJoin(problem)
        async with self._changing:
            before, self._wanted = self._wanted, channel.id
            try:
                await self._restore()
            except (discord.DiscordException, OSError, asyncio.TimeoutError) as error:
                _log.warning("guild %s: cannot join voice channel %s: %r", self._guild_id, channel.id, error)
                self._wanted = before
                raise CannotJoin(f"Discord did not let me into <#{channel.id}>. Try again in a moment.") from error
        if self._keeper is None:
            self._keeper = asyncio.create_task(self._keep(), name=f"voice of {self._guild_id}")

    async def leave(self) -> None:
        """Is in no channel when it returns."""
        self._wanted = None
        if self._keeper is not None:
            self._keeper.cancel()
            self._keeper = None
        await self.leave_unless_wanted()

    async def leave_unless_wanted(self) -> None:
        """To be called where Discord says that the bot is in a channel, and it should be in none."""
        async with self._changing:
            if self._wanted is None:
                await self._drop()

    def set_sounding(self, sounding: bool) -> None:
        """Whether there is something to be heard; where not, a little silence is sent and then nothing."""
        if sounding == self._sounding:
            return
        self._sounding = sounding
        if self._hush is not None:
            self._hush.cancel()
            self._hush = None
        if sounding:
            if self._voice is not None and self._voice.is_paused():
                self._voice.resume()
        else:
            self._hush = asyncio.get_running_loop().call_later(SILENCE_SECONDS, self._pause)

    def moved_to(self, channel_id: int) -> None:
        """Somebody has moved the bot to another channel, and there it stays."""
        if self._wanted is not None:
            self._wanted = channel_id

    async def renew(self) -> None:
        """To be called when Discord has begun a new gateway session: voice connections of the old one are void."""
        guild = self._client.get_guild(self._guild_id)
        async with self._changing:
            if self._voice is not None and (guild is None or guild.voice_client is not self._voice):
                await self._drop()
        self._wake.set()

    def _pause(self) -> None:
        if self._voice is not None and self._player_runs and not self._sounding:
            self._voice.pause()

    def _over(self, voice: GuildVoice) -> None:
        """discord.py has given the connection up, or was told to."""
        if voice is not self._voice:
            return
        self._voice = None
        self._player_runs = False
        if voice.removed:
            _log.info("guild %s: somebody has taken the bot out of voice", self._guild_id)
            self._wanted = None
            if self._keeper is not None:
                self._keeper.cancel()
                self._keeper = None
            self._removed()
        self._wake.set()

    async def _keep(self) -> None:
        pause = FIRST_PAUSE_SECONDS
        while True:
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._wake.wait(), LOOK_SECONDS)
            self._wake.clear()
            try:
                async with self._changing:
                    await self._restore()
                pause = FIRST_PAUSE_SECONDS
            except Exception as error:
                # Whatever it is: nobody else would try again.
                _log.warning("guild %s: voice is not back yet: %r; again in %.1f s", self._guild_id, error, pause)
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
                self._wake.set()

    async def _restore(self) -> None:
        """Makes what is be what is wanted."""
        channel = self._channel()
        if channel is None:
            return
        if self._voice is not None and self._has_hung():
            await self._drop()
        if self._voice is None:
            await self._connect(channel)
        elif self._voice.is_connected() and self._voice.channel.id != channel.id:
            await self._voice.move_to(channel, timeout=CONNECT_SECONDS)
        self._start_player()

    def _channel(self) -> VoiceChannel | None:
        guild = self._client.get_guild(self._guild_id)
        channel = guild.get_channel(self._wanted) if guild and self._wanted is not None else None
        return channel if isinstance(channel, (discord.VoiceChannel, discord.StageChannel)) else None

    def _has_hung(self) -> bool:
        now = asyncio.get_running_loop().time()
        if self.is_connected:
            self._disconnected_since = None
        elif self._disconnected_since is None:
            self._disconnected_since = now
        return self._disconnected_since is not None and now - self._disconnected_since > RECONNECT_SECONDS

    async def _connect(self, channel: VoiceChannel) -> None:
        self._disconnected_since = None
        for attempt in range(1, CONNECT_ATTEMPTS + 1):
            await self._drop()
            await _until_gone(channel.guild)
            try:
                # After a time-out discord.py waits as long again for a goodbye.
                await asyncio.wait_for(self._shake_hands(channel), CONNECT_SECONDS + 1)
                break
            except BaseException as error:
                # Cut short, discord.py neither leaves nor forgets its client, and would refuse every other one.
                await self._drop()
                if not isinstance(error, asyncio.TimeoutError) or attempt == CONNECT_ATTEMPTS:
                    raise
        if isinstance(channel, discord.StageChannel):
            # Who is no moderator of the stage asks for the floor.
            with suppress(discord.DiscordException):
                await channel.guild.me.edit(suppress=False)

    async def _shake_hands(self, channel: VoiceChannel) -> None:
        def make(client: discord.Client, connectable: discord.abc.Connectable) -> GuildVoice:
            self._voice = GuildVoice(client, connectable, self._over)
            return self._voice

        await channel.connect(timeout=CONNECT_SECONDS, self_deaf=True, cls=make)

    async def _drop(self) -> None:
        """Leaves, whatever there is: a connection, one that discord.py still has, or only a place in a channel."""
        guild = self._client.get_guild(self._guild_id)
        voice = self._voice or (guild.voice_client if guild else None)
        self._voice = None
        self._player_runs = False
        with suppress(discord.DiscordException, OSError, asyncio.TimeoutError):
            if voice is not None:
                await asyncio.wait_for(voice.disconnect(force=True), LEAVE_SECONDS)
            elif guild is not None and guild.me.voice is not None:
                await asyncio.wait_for(guild.change_voice_state(channel=None), LEAVE_SECONDS)

    def _start_player(self) -> None:
        """Has discord.py's player read the source, unless it does; it gives up where voice was away for long."""
        if self._voice is None or not self._voice.is_connected() or self._player_runs:
            return
        self._voice.stop()
        self._plays += 1
        loop, play = asyncio.get_running_loop(), self._plays

        def ended(error: Exception | None) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(self._player_ended, play, error)

        self._voice.play(self._make_source(), after=ended)
        self._player_runs = True
        self._pause()

    def _player_ended(self, play: int, error: Exception | None) -> None:
        if error is not None:
            _log.error("guild %s: the voice thread failed", self._guild_id, exc_info=error)
        if play == self._plays:
            self._player_runs = False
            self._wake.set()


async def _until_gone(guild: discord.Guild) -> None:
    """Waits for Discord's word that the bot has left: the next connection would take it for an end of its own."""
    loop = asyncio.get_running_loop()
    give_up_at = loop.time() + LEAVE_SECONDS
    while guild.me.voice is not None and loop.time() < give_up_at:
        await asyncio.sleep(GONE_POLL_SECONDS)


def join_problem(channel: VoiceChannel) -> str | None:
    """None, or why the bot may not play there, as far as that can be known before."""
    me = channel.guild.me
    may = channel.permissions_for(me)
    missing = [
        name
        for name, has in (("View Channel", may.view_channel), ("Connect", may.connect), ("Speak", may.speak))
        if not has
    ]
    if missing:
        return f"I may not play in <#{channel.id}>: give me the permission “{'”, “'.join(missing)}” there."
    full = channel.user_limit and len(channel.voice_states) >= channel.user_limit and me.id not in channel.voice_states
    if full and not may.move_members:
        return f"<#{channel.id}> is full."
    return None
