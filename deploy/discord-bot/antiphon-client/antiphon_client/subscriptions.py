"""Who is told of events."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

#: A JSON object of the Router as docs/http-and-websocket.md has it, always with `type`; and of this package
#: `{"type": "connection", "connected": bool, "error": {"code", "message", "hint"}}` (`error` only where there is one).
Event = dict[str, Any]


class EventStream(AsyncIterator[Event]):
    """The events from its making on. One that is read too slowly loses its oldest."""

    #: Events lost.
    dropped: int = 0

    async def __anext__(self) -> Event:
        raise NotImplementedError
