"""The jitter buffer between the network and the voice thread."""

from __future__ import annotations

from dataclasses import dataclass

#: A 20 ms Opus packet of silence, as Discord wants it.
SILENCE = b"\xf8\xff\xfe"


@dataclass(frozen=True)
class Counters:
    """What became of the packets: `received == played + dropped + len(buffer)`."""

    #: Packets put in.
    received: int = 0
    #: Packets taken out.
    played: int = 0
    #: Silence frames taken because packets came too late or not at all.
    starved: int = 0
    #: Silence frames taken while nothing was to be heard, or at a beginning.
    silent: int = 0
    #: Packets thrown away so that the delay does not grow, or because nobody took any.
    dropped: int = 0


class PacketBuffer:
    """Opus packets of 20 ms on their way from the event loop to a voice thread. Thread-safe and bounded."""

    def __init__(self, target: int = 5, maximum: int = 20) -> None:
        raise NotImplementedError

    def put(self, packet: bytes) -> None:
        """Adds the newest packet; never blocks."""
        raise NotImplementedError

    def take(self) -> bytes:
        """The packet to be sent now, or `SILENCE`; to be called every 20 ms. Never blocks."""
        raise NotImplementedError

    def clear(self) -> None:
        """Drops what waits, and fills again."""
        raise NotImplementedError

    def __len__(self) -> int:
        raise NotImplementedError

    @property
    def counters(self) -> Counters:
        """A snapshot."""
        raise NotImplementedError
