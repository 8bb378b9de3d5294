"""What a session is doing, kept current from its events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from .errors import AntiphonError

Playback = Literal["idle", "extracting", "streaming", "paused"]
LoopMode = Literal["off", "track", "queue"]


@dataclass(frozen=True)
class Entry:
    """A track of the queue."""

    #: Unique in the session for ever.
    id: str
    url: str
    title: str | None = None
    artist: str | None = None
    duration_ms: int | None = None
    #: An http(s) URL, or a path of the Router that begins with `/artwork?`.
    artwork: str | None = None
    requested_by: str | None = None


@dataclass(frozen=True)
class Track:
    """What plays now, or is being opened."""

    url: str
    #: The queue entry's.
    id: str | None = None
    title: str | None = None
    artist: str | None = None
    album: str | None = None
    artwork: str | None = None
    duration_ms: int | None = None
    requested_by: str | None = None
    #: A stream without an end.
    live: bool = False
    #: `start_ms` and `title` each.
    chapters: tuple[dict[str, Any], ...] = ()
    codec: str | None = None
    #: The source's own Opus packets, unaltered.
    passthrough: bool = False


class SessionState:
    """A view that is always current: read it whenever you need it; only the session writes it."""

    #: Whether there is a connection to the Router.
    connected: bool = False
    #: Why there is none, until there is one again.
    error: AntiphonError | None = None
    #: Whether the Router has an engine.
    engine_connected: bool = False
    playback: Playback = "idle"
    #: Streaming, but nothing to be sent has been produced yet.
    buffering: bool = False
    current: Track | None = None
    #: Linear gain, 0 to 10.
    volume: float = 1.0
    #: Of the queue.
    loop: LoopMode = "off"
    #: What waits: the first 100.
    queue: tuple[Entry, ...] = ()
    #: How many wait.
    total: int = 0
    #: How many `previous` and `history` can reach.
    history_total: int = 0
    #: What `quality` was set to; None for the engine's own.
    bitrate_kbps: int | None = None

    @property
    def position_ms(self) -> int:
        """Where in the current track the session is, now; 0 where nothing plays."""
        raise NotImplementedError

    @property
    def duration_ms(self) -> int | None:
        """Of the current track; None where it is not known, or the stream has no end."""
        raise NotImplementedError
