"""What a session is doing, kept current from its events."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Literal

from .errors import AntiphonError
from .tracks import Entry, Track, entry_of, track_of

Playback = Literal["idle", "extracting", "streaming", "paused"]
LoopMode = Literal["off", "track", "queue"]

#: The longest list of entries that the Router sends in one piece.
QUEUE_PAGE = 100


class SessionState:
    """A view that is always current: read it whenever you need it; only the session writes it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        #: Whether there is a connection to the Router.
        self.connected = False
        #: Why there is none, until there is one again.
        self.error: AntiphonError | None = None
        #: Whether the Router has an engine. As all that follows, the last that is known while not `connected`.
        self.engine_connected = False
        self.playback: Playback = "idle"
        #: Streaming, but what is to be sent next has not been produced yet.
        self.buffering = False
        #: Linear gain, 0 to 10.
        self.volume = 1.0
        #: Of the queue.
        self.loop: LoopMode = "off"
        #: What waits: the first 100.
        self.queue: tuple[Entry, ...] = ()
        #: How many wait.
        self.total = 0
        #: How many `history` and `previous` can reach.
        self.history_total = 0
        #: What `quality` was set to, in kbit/s; None for the engine's own.
        self.bitrate_kbps: int | None = None
        self._clock = clock
        self._entry: Entry | None = None
        # What the engine says of what plays: of `ready` or a session object.
        self._details: Mapping[str, Any] = {}
        self._position_ms = 0.0
        # When the position was that; None where it does not move.
        self._moves_since: float | None = None

    @property
    def current(self) -> Track | None:
        """What plays or is being opened; None where nothing is."""
        return track_of(self._entry, self._details)

    @property
    def position_ms(self) -> int:
        """Where in the current track the session is, now; 0 where nothing plays.

        The sound is heard later, by what the network and the jitter buffer take.
        """
        position = self._position_ms
        if self._moves_since is not None:
            position += (self._clock() - self._moves_since) * 1_000
        duration = self.duration_ms
        if duration:
            # A track that goes round by itself is counted on past its end.
            position = position % duration if self._details.get("loop") else min(position, duration)
        return int(position)

    @property
    def duration_ms(self) -> int | None:
        """Of the current track; None where it is not known, or the stream has no end."""
        current = self.current
        return current.duration_ms if current else None

    @property
    def is_sounding(self) -> bool:
        """Whether packets are to come now."""
        return self.playback == "streaming" and not self.buffering and self.engine_connected

    def apply(self, event: Mapping[str, Any]) -> None:
        """Takes an event of the Router's; for the session."""
        kind = event["type"]
        if "engine" in event:
            self._take_engine(bool(event["engine"].get("connected")))
        if kind in ("session", "status"):
            self._take_session(event["session"])
        if "queue" in event:
            self._take_queue(event["queue"])
        if kind == "extracting":
            self._details = {"url": event["url"]}
            self._take_playback("extracting", 0)
        elif kind == "ready":
            self._details = event
            self.volume = float(event.get("volume", self.volume))
        elif kind == "metadata":
            self._details = {**self._details, "title": event.get("title"), "artist": event.get("artist")}
        elif kind in ("playing", "resumed", "rebased"):
            self._take_playback("streaming", event["position_ms"])
        elif kind == "seeked":
            self._take_playback(self.playback, event["position_ms"])
        elif kind == "buffering":
            self._take_playback("streaming", event["position_ms"], buffering=True)
        elif kind == "paused":
            self._take_playback("paused", event["position_ms"])
        elif kind == "ended":
            self._details = {}
            self._take_playback("idle", 0)

    def _take_session(self, session: Mapping[str, Any]) -> None:
        url = session.get("url")
        # Not every session object has the chapters.
        chapters = self._details.get("chapters", ()) if self._details.get("url") == url else ()
        self._details = {"chapters": chapters, **session} if url else {}
        self.volume = float(session.get("volume", self.volume))
        buffering = bool(session.get("buffering"))
        self._take_playback(session.get("state", "idle"), session.get("position_ms", 0), buffering=buffering)

    def _take_queue(self, queue: Mapping[str, Any]) -> None:
        current = queue.get("current")
        self._entry = entry_of(current) if current else None
        self.total = queue["total"]
        self.history_total = queue.get("history_total", 0)
        self.loop = queue.get("loop", "off")
        self.bitrate_kbps = queue.get("bitrate_kbps")
        tracks = queue.get("tracks")
        # A page that was asked for from further on, or of few, is not the first hundred.
        if tracks is not None and queue.get("offset", 0) == 0 and len(tracks) == min(self.total, QUEUE_PAGE):
            self.queue = tuple(entry_of(track) for track in tracks)

    def _take_engine(self, connected: bool) -> None:
        self.engine_connected = connected
        if not connected:
            # The position stands until the engine is back and says where the session is.
            self._position_ms, self._moves_since = self.position_ms, None

    def _take_playback(self, playback: Playback, position_ms: float, *, buffering: bool = False) -> None:
        self.playback = playback
        self.buffering = buffering
        self._position_ms = position_ms
        self._moves_since = self._clock() if self.is_sounding else None
