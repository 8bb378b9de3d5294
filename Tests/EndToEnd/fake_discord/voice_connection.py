"""What a test sees of the bot's voice in one guild, over all connections that the bot makes there."""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from inbox import PATIENCE_SECONDS

from .bell import Bell
from .dave import Call
from .guilds import Channel, Guild
from .rtp import RtpPacket
from .voice_session import VoiceSession

#: Packets kept, the newest: 400 s of sound.
PACKET_LIMIT = 20_000

#: Speaking messages kept, the newest.
SPEAKING_LIMIT = 1_000


@dataclass(frozen=True)
class Speaking:
    """The bot said that it begins (1: microphone) or ends (0) to send sound."""

    flags: int
    ssrc: int
    arrived_ns: int = field(default_factory=time.monotonic_ns)


class VoiceConnection:
    """All that came from the bot into one guild's voice channels."""

    def __init__(self, guild: Guild, bell: Bell) -> None:
        self.guild = guild
        self._bell = bell
        #: The handshake that is in force; None while there is none.
        self.session: VoiceSession | None = None
        #: How many handshakes ended with a key, and how many sessions were resumed.
        self.handshakes = 0
        self.resumes = 0
        self.speaking: deque[Speaking] = deque(maxlen=SPEAKING_LIMIT)
        #: Packets that could not be decrypted.
        self.undecryptable = 0
        #: Packets received in all, kept or not.
        self.received = 0
        self._packets: deque[RtpPacket] = deque(maxlen=PACKET_LIMIT)

    @property
    def channel(self) -> Channel | None:
        """Where the bot sits."""
        state = self.guild.voice_states.get(self.guild.bot.id)
        return state.channel if state else None

    @property
    def connected(self) -> bool:
        """Whether the bot has its keys and an open WebSocket: what it sends is heard."""
        session = self.session
        return session is not None and session.key is not None and session.socket is not None and self.call.is_admitted

    @property
    def call(self) -> Call:
        """The end-to-end encryption that is in force."""
        assert self.session is not None, f"the bot is in no call: {self}"
        return self.session.call

    @property
    def is_speaking(self) -> bool:
        return bool(self.speaking) and self.speaking[-1].flags & 1 != 0

    def mark(self) -> int:
        """A place in the stream: what is received from now on."""
        return self.received

    def packets(self, since: int = 0) -> list[RtpPacket]:
        """The packets received since a mark, in the order they came."""
        kept = list(self._packets)
        return kept[max(0, since - (self.received - len(kept))) :]

    def put(self, packet: RtpPacket) -> None:
        self._packets.append(packet)
        self.received += 1

    async def wait(self, done: Callable[[], Any], what: str, seconds: float = PATIENCE_SECONDS) -> Any:
        return await self._bell.wait(done, lambda: f"{what} in guild {self.guild.name}: {self}", seconds)

    async def wait_packets(self, count: int, since: int = 0, seconds: float | None = None) -> list[RtpPacket]:
        """The first `count` packets since a mark."""
        patience = seconds or PATIENCE_SECONDS + count * 0.02
        await self.wait(lambda: self.received - since >= count, f"{count} packets", patience)
        return self.packets(since)[:count]

    async def wait_connected(self, handshakes: int = 1) -> None:
        """Until the bot is connected, for the `handshakes`-th time at least."""
        await self.wait(lambda: self.connected and self.handshakes >= handshakes, "voice connection")

    async def wait_disconnected(self) -> None:
        """Until the bot sits in no channel and has no connection."""
        await self.wait(lambda: self.channel is None and not self.connected, "end of the voice connection")

    async def wait_quiet(self, seconds: float = 0.5) -> None:
        """Until no packet has come for so long."""
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                before = -1
                while self.received != before:
                    before = self.received
                    await asyncio.sleep(seconds)
        except TimeoutError:
            raise AssertionError(f"no quiet in guild {self.guild.name}: {self}") from None

    def __str__(self) -> str:
        return (
            f"channel {self.channel.name if self.channel else None}, {self.handshakes} handshakes, "
            f"{'' if self.connected else 'not '}connected, {self.received} packets, {self.undecryptable} undecryptable"
        )
