"""One session of a Router: its events, its sound and its commands, over a connection that comes back by itself."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Union

import aiohttp

from .packets import PacketBuffer
from .state import LoopMode, SessionState
from .subscriptions import Event, EventStream

#: A token, or what gives one: asked before each connection, and when the Router says that the old one has expired.
Token = Union[str, Callable[[], Awaitable[str]]]


class Session:
    """A session, named by its ID (a bot's guild ID, for example).

    All methods belong to the event loop that `start` was called on; `packets.take` alone to any thread.
    """

    state: SessionState
    packets: PacketBuffer

    def __init__(
        self, url: str, session_id: str, *, token: Token | None = None, http: aiohttp.ClientSession | None = None
    ) -> None:
        """`url` is the Router's, `http(s)://host:port`. A given `http` is used and not closed."""
        raise NotImplementedError

    async def __aenter__(self) -> Session:
        raise NotImplementedError

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        raise NotImplementedError

    async def start(self) -> None:
        """Connects; returns when the state is known.

        Raises AntiphonError where the Router refuses (`unauthorized`, `forbidden`, `invalid_session_id`, …) or cannot be
        reached within 15 s (`connection_lost`); in the background it goes on trying until `close`.
        """
        raise NotImplementedError

    async def close(self) -> None:
        """Disconnects; the session itself plays on. Commands that wait fail with `closed`, event streams end."""
        raise NotImplementedError

    async def command(self, type: str, **fields: Any) -> Event:
        """Sends a command and gives its answer. Fields that are None are left out.

        What is in flight when the connection breaks is repeated after it is back, and done once. Raises AntiphonError
        where it is refused, `connection_lost` without a connection for 15 s, `timeout` without an answer for 60 s.
        """
        raise NotImplementedError

    def events(self) -> EventStream:
        """The events from now on, for `async for`. At most 256 wait; the oldest are lost, and counted in `.dropped`."""
        raise NotImplementedError

    def on(self, type: str | None, callback: Callable[[Event], object]) -> Callable[[], None]:
        """Calls a plain function with each event of a type (None: all), on the event loop, after `state` has it.

        Gives what ends it. What takes longer than a moment belongs into a task of its own, or to `events`.
        """
        raise NotImplementedError

    # The commands, each as docs/http-and-websocket.md has it.

    async def play(
        self,
        url: str,
        *,
        start_ms: int | None = None,
        end_ms: int | None = None,
        volume: float | None = None,
        loop: bool | None = None,
        paused: bool | None = None,
        bitrate_kbps: int | None = None,
    ) -> Event:
        raise NotImplementedError

    async def pause(self) -> Event:
        raise NotImplementedError

    async def resume(self) -> Event:
        raise NotImplementedError

    async def stop(self) -> Event:
        raise NotImplementedError

    async def seek(self, position_ms: int) -> Event:
        raise NotImplementedError

    async def volume(self, level: float) -> Event:
        raise NotImplementedError

    async def quality(self, bitrate_kbps: int | None) -> Event:
        raise NotImplementedError

    async def status(self) -> Event:
        raise NotImplementedError

    async def why(self) -> Event:
        raise NotImplementedError

    async def queue(self, offset: int = 0, limit: int = 100) -> Event:
        raise NotImplementedError

    async def queue_add(
        self,
        *,
        url: str | None = None,
        query: str | None = None,
        tracks: Sequence[Mapping[str, Any]] | None = None,
        title: str | None = None,
        artist: str | None = None,
        duration_ms: int | None = None,
        artwork: str | None = None,
        requested_by: str | None = None,
        next: bool | None = None,
        position: int | None = None,
    ) -> Event:
        """One of `url`, `query` and `tracks`; the answer's `["queue"]["added"]` has the new entries' IDs."""
        raise NotImplementedError

    async def queue_remove(self, id: str) -> Event:
        raise NotImplementedError

    async def queue_move(self, id: str, position: int) -> Event:
        raise NotImplementedError

    async def queue_shuffle(self) -> Event:
        raise NotImplementedError

    async def queue_clear(self) -> Event:
        raise NotImplementedError

    async def queue_loop(self, mode: LoopMode) -> Event:
        raise NotImplementedError

    async def skip(self) -> Event:
        raise NotImplementedError

    async def skip_to(self, id: str) -> Event:
        raise NotImplementedError

    async def previous(self) -> Event:
        raise NotImplementedError

    async def history(self, limit: int | None = None) -> Event:
        raise NotImplementedError

    async def resolve(self, query: str, limit: int = 10) -> Event:
        """The answer's `entries`: `url`, `title`, `artist`, `duration_ms`, `thumbnail`, `live`."""
        raise NotImplementedError

    async def media(self, path: str | None = None) -> Event:
        raise NotImplementedError
