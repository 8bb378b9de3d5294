"""From what somebody asks for to tracks in the queue, with the name of who asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from antiphon_client import Session

from .errors import RequestError

#: Of a playlist; the most that the engine finds at once.
MAX_TRACKS = 50
#: Tracks of one message: with the longest addresses they are within the Router's 64 KiB.
BATCH_TRACKS = 8
#: A picture is no more than decoration.
MAX_ARTWORK_CHARACTERS = 1_000


async def find(session: Session, query: str, requested_by: str) -> list[dict[str, Any]]:
    """The tracks of a link or a file; the best hit for words. Raises AntiphonError, RequestError if there is none."""
    is_address = query.startswith(("http://", "https://", "media:"))
    found = await session.resolve(query, limit=MAX_TRACKS if is_address else 1)
    tracks = [track_of(entry, requested_by) for entry in found["entries"]]
    if not tracks:
        raise RequestError("Nothing was found. Try other words.")
    return tracks if found["kind"] == "playlist" else tracks[:1]


def track_of(entry: Mapping[str, Any], requested_by: str) -> dict[str, Any]:
    """What the queue is to know of something that `resolve` has found."""
    url = entry["url"]
    artwork = entry.get("thumbnail")
    track = {
        "url": url,
        # What a file's tags say is known when it plays; until then its name is shown.
        "title": None if url.startswith("media:") else entry.get("title"),
        "artist": entry.get("artist"),
        "duration_ms": entry.get("duration_ms"),
        "artwork": artwork if artwork and len(artwork) <= MAX_ARTWORK_CHARACTERS else None,
        "requested_by": requested_by,
    }
    return {name: value for name, value in track.items() if value is not None}


async def add(session: Session, tracks: list[dict[str, Any]], next: bool) -> list[str]:
    """Adds them at the end, or before all that waits; the IDs of their entries. Raises AntiphonError."""
    added: list[str] = []
    for begin in range(0, len(tracks), BATCH_TRACKS):
        batch = tracks[begin : begin + BATCH_TRACKS]
        answer = await session.queue_add(tracks=batch, position=begin if next else None)
        added += answer["queue"]["added"]
    return added
