"""Who is told of events: streams to iterate over, and callbacks."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Any
from weakref import WeakSet

_log = logging.getLogger("antiphon_client")

#: A JSON object of the Router as docs/http-and-websocket.md has it, always with `type`; and of this package
#: `{"type": "connection", "connected": bool, "error": {"code", "message", "hint"}}` (`error` only where there is one).
Event = dict[str, Any]

#: How many events wait for one reader.
EVENT_LIMIT = 256


class EventStream(AsyncIterator[Event]):
    """The events from its making on, for `async for`. One that is read too slowly loses its oldest."""

    def __init__(self, limit: int = EVENT_LIMIT) -> None:
        self._events: deque[Event] = deque(maxlen=limit)
        self._news = asyncio.Event()
        self._has_ended = False
        #: Events lost.
        self.dropped = 0

    def put(self, event: Event) -> None:
        """Adds an event; for the session."""
        if len(self._events) == self._events.maxlen:
            self.dropped += 1
        self._events.append(event)
        self._news.set()

    def end(self) -> None:
        """Nothing follows what waits; for the session."""
        self._has_ended = True
        self._news.set()

    async def __anext__(self) -> Event:
        while not self._events:
            if self._has_ended:
                raise StopAsyncIteration
            self._news.clear()
            await self._news.wait()
        return self._events.popleft()


class Subscriptions:
    """All who are told of one session's events."""

    def __init__(self) -> None:
        # Weak: a loop that was left by `break` does not say goodbye.
        self._streams: WeakSet[EventStream] = WeakSet()
        self._callbacks: list[tuple[str | None, Callable[[Event], object]]] = []
        self._has_ended = False

    def stream(self) -> EventStream:
        stream = EventStream()
        self._streams.add(stream)
        if self._has_ended:
            stream.end()
        return stream

    def on(self, type: str | None, callback: Callable[[Event], object]) -> Callable[[], None]:
        subscription = (type, callback)
        self._callbacks.append(subscription)

        def unsubscribe() -> None:
            if subscription in self._callbacks:
                self._callbacks.remove(subscription)

        return unsubscribe

    def tell(self, event: Event) -> None:
        for stream in list(self._streams):
            stream.put(event)
        for type, callback in list(self._callbacks):
            if type is None or type == event["type"]:
                try:
                    callback(event)
                except Exception:
                    _log.exception("a callback for the event %s failed", event["type"])

    def end(self) -> None:
        self._has_ended = True
        for stream in list(self._streams):
            stream.end()
