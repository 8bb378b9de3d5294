"""Letting the bot into voice channels, moving it, and throwing it out."""

import asyncio
import secrets
from typing import TYPE_CHECKING, Any

from .dave import VERSION, Call
from .gateway import INTENT_VOICE_STATES
from .guilds import Channel, ChannelType, Guild, Member, Permission, User, VoiceState
from .voice_connection import VoiceConnection
from .voice_gateway import VoiceGateway
from .voice_session import VoiceSession
from .voice_udp import VoiceSocket

if TYPE_CHECKING:
    from .server import FakeDiscord


class VoiceServer:
    """All guilds' voice: who is where, the bot's connections, and the sockets they come in at."""

    def __init__(self, fake: "FakeDiscord") -> None:
        self._fake = fake
        self.violations = fake.violations
        self.bell = fake.bell
        #: Packets that came without a connection that they belong to.
        self.strays = 0
        self.gateway = VoiceGateway(self, fake.bell, fake.bot)
        self.socket = VoiceSocket(self)
        #: Cleared, it lets every handshake wait for its READY.
        self.answers = asyncio.Event()
        self.answers.set()
        #: What new calls are encrypted with, end to end: 0 is nothing.
        self.dave_version = VERSION
        #: Listens in every call, and is seen in none: people come and go, and the tests hear all.
        self.ear = User("ear")
        self._connections: dict[int, VoiceConnection] = {}
        self._by_ssrc: dict[int, VoiceConnection] = {}
        self._next_ssrc = secrets.randbelow(1 << 30)

    def connection(self, guild: Guild) -> VoiceConnection:
        if guild.id not in self._connections:
            self._connections[guild.id] = VoiceConnection(guild, self._fake.bell)
        return self._connections[guild.id]

    def by_guild(self, guild_id: int) -> VoiceConnection | None:
        return self._connections.get(guild_id)

    def by_ssrc(self, ssrc: int) -> VoiceConnection | None:
        return self._by_ssrc.get(ssrc)

    def request(self, data: dict[str, Any]) -> None:
        """The bot's op 4: join, move, leave, or mute itself."""
        guild = self._fake.guilds.get(int(data["guild_id"]))
        if guild is None:
            self.violations.record(f"gateway: a voice state for guild {data['guild_id']}, where the bot is not")
            return
        mutes = {"self_mute": data["self_mute"], "self_deaf": data["self_deaf"]}
        if data["channel_id"] is None:
            self.place(guild, guild.bot, None)
            self._end(guild)
            return
        channel = guild.channels.get(int(data["channel_id"]))
        if channel is None or channel.type != ChannelType.VOICE:
            self.violations.record(f"gateway: wants to join {data['channel_id']}, which is no voice channel")
            return
        if not guild.permissions(guild.bot, channel) & Permission.CONNECT:
            # Discord gives no answer at all.
            return
        connection = self.connection(guild)
        moves = connection.channel is not channel
        self.place(guild, guild.bot, channel, **mutes)
        if moves or connection.session is None or connection.session.socket is None:
            self._admit(guild)

    def place(self, guild: Guild, member: Member, channel: Channel | None, **mutes: bool) -> None:
        """Puts somebody into a channel, or out of all, and tells the bot."""
        state = guild.voice_states.pop(member.id, None)
        if state is None:
            if channel is None:
                return
            state = VoiceState(guild.id, member, None)
            if member is guild.bot and self._fake.gateway.session is not None:
                state.session_id = self._fake.gateway.session.id
        if member is not guild.bot:
            self._tell_call(guild, member.user, state.channel, channel)
        state.channel = channel
        for name, value in mutes.items():
            setattr(state, name, value)
        if channel is not None:
            guild.voice_states[member.id] = state
        self._fake.gateway.dispatch("VOICE_STATE_UPDATE", state.payload(), INTENT_VOICE_STATES)
        self._fake.bell.ring()

    def _tell_call(self, guild: Guild, user: User, before: Channel | None, after: Channel | None) -> None:
        """Who sits in the bot's channel is in its call."""
        session = self.connection(guild).session
        if session is None or before is after:
            return
        for channel, tell in ((before, session.call.leave), (after, session.call.join)):
            if channel is not None and channel.id == session.call.channel_id:
                tell(user)

    def move_bot(self, guild: Guild, channel: Channel | None) -> None:
        """As a moderator does it: to another channel, or out."""
        self.place(guild, guild.bot, channel)
        if channel is None:
            self._end(guild, close_code=4014)
        else:
            self._admit(guild)

    def drop(self, guild: Guild, code: int) -> None:
        """Closes the bot's connection. After 4006 and 4009 the session cannot be resumed."""
        session = self.connection(guild).session
        assert session is not None and session.socket is not None, f"the bot is not connected: {self.connection(guild)}"
        if code in (4006, 4009):
            self._end(guild, close_code=code)
        else:
            self.gateway.close(session, code)

    def readmit(self, guild: Guild) -> None:
        """The guild's call moves to another voice server."""
        self._admit(guild)

    def lose_all(self) -> None:
        """The bot's gateway session is gone, and with it its places in the voice channels."""
        for guild in self._fake.guilds.values():
            guild.voice_states.pop(guild.bot.id, None)
            self._end(guild, close_code=4006)

    def _admit(self, guild: Guild) -> None:
        """Begins a voice session, and says where: an older one is closed, as its server is not the right one now."""
        self._end(guild, close_code=4014)
        self._next_ssrc += 1
        state = guild.voice_states[guild.bot.id]
        assert state.channel is not None
        session = VoiceSession(secrets.token_hex(8), state.session_id, self._next_ssrc)
        people = [each.member.user for each in guild.voice_states.values() if each.channel is state.channel]
        people = [self.ear, *(user for user in people if user is not self._fake.bot)]
        session.call = Call(session, state.channel.id, self._fake.bot, people, self.violations, self.dave_version)
        connection = self.connection(guild)
        connection.session = session
        self._by_ssrc[session.ssrc] = connection
        self._fake.gateway.dispatch(
            "VOICE_SERVER_UPDATE",
            {"token": session.token, "guild_id": str(guild.id), "endpoint": self._fake.voice_endpoint},
        )

    def _end(self, guild: Guild, close_code: int | None = None) -> None:
        """Ends the voice session. A bot that leaves by itself closes its connection itself."""
        connection = self.connection(guild)
        session, connection.session = connection.session, None
        if session is None:
            return
        self._by_ssrc.pop(session.ssrc, None)
        if close_code is not None:
            self.gateway.close(session, close_code)
        self._fake.bell.ring()
