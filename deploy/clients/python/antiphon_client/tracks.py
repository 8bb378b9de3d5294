"""Tracks, as the queue has them and as they play."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Entry:
    """A track of the queue."""

    #: Unique in the session, and never used again.
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
    #: An http(s) URL, or a path of the Router that begins with `/artwork?`.
    artwork: str | None = None
    duration_ms: int | None = None
    requested_by: str | None = None
    #: A stream without an end.
    live: bool = False
    #: Of a radio station: its name.
    station: str | None = None
    genre: str | None = None
    #: `start_ms` and `title` each.
    chapters: tuple[Mapping[str, Any], ...] = ()
    codec: str | None = None
    #: The source's own Opus packets, unaltered.
    passthrough: bool = False


def entry_of(fields: Mapping[str, Any]) -> Entry:
    """The entry in a queue's JSON."""
    return Entry(
        id=fields["id"],
        url=fields["url"],
        title=fields.get("title"),
        artist=fields.get("artist"),
        duration_ms=fields.get("duration_ms"),
        artwork=fields.get("artwork"),
        requested_by=fields.get("requested_by"),
    )


def track_of(entry: Entry | None, details: Mapping[str, Any]) -> Track | None:
    """What plays, from the queue's entry and from what the engine found out (a session object, or `ready`)."""
    if entry is None and "url" not in details:
        return None
    # Between two tracks the two can be of different ones for a moment: the entry then says what plays.
    if entry is not None and details.get("url") != entry.url:
        details = {}
    said = asdict(entry) if entry else {}

    def known(name: str) -> Any:
        """What someone said of the track goes before what the file says of itself."""
        return said.get(name) or details.get(name)

    return Track(
        url=known("url"),
        id=said.get("id"),
        title=known("title"),
        artist=known("artist"),
        album=details.get("album"),
        artwork=known("artwork"),
        # The engine has measured it.
        duration_ms=details.get("duration_ms") or said.get("duration_ms"),
        requested_by=said.get("requested_by"),
        live=bool(details.get("live", False)),
        station=details.get("station"),
        genre=details.get("genre"),
        chapters=tuple(details.get("chapters", ())),
        codec=details.get("codec"),
        passthrough=bool(details.get("passthrough", False)),
    )
