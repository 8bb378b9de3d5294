"""One session of a Router: its events, its sound and its commands, over a connection that comes back by itself."""

from __future__ import annotations

import asyncio
import json
import logging
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any

import aiohttp

from .addresses import Addresses
from .commands import Commands
from .connection import ConnectionRefused
from .errors import AntiphonError
from .link import Link, Outbox, Token
from .outstanding import Answer, Outstanding
from .packets import PacketBuffer
from .state import SessionState
from .subscriptions import Event, EventStream, Subscriptions

_log = logging.getLogger("antiphon_client")

#: How long a command waits for a connection, or for the Router's engine.
PATIENCE_SECONDS = 15.0

#: How often a command that was refused for want of an engine looks for one.
ENGINE_LOOK_SECONDS = 0.2

#: How long a command that is done waits for the state to be so too.
LOOK_LIMIT_SECONDS = 2.0

#: The longest command, as JSON: the Router closes the connection beyond.
COMMAND_LIMIT_BYTES = 64 * 1024

#: What changes nothing needs no idempotency key.
_READS = {"status", "why", "queue", "history", "media", "resolve", "ping"}


class Session(Commands):
    """A session, named by its ID (a bot's guild ID, for example).

    All methods belong to the event loop that `start` was called on; `packets.take` alone may be called by any thread.
    """

    def __init__(
        self,
        url: str | Sequence[str],
        session_id: str,
        *,
        token: Token | None = None,
        http: aiohttp.ClientSession | None = None,
        patience: float = PATIENCE_SECONDS,
    ) -> None:
        """`url` is the Router's, `http(s)://host:port`. Where any of several Routers serves it: a list of theirs, or one
        text with commas between them. When one is lost the next is tried at once.

        A given `http` is used and not closed. Its connector's limit, aiohttp's own of 100 where none was given, is how
        many sessions it carries at once.

        `patience`, in seconds, is how long `start` and the commands wait for a connection and for the engine.
        """
        self._addresses = Addresses(url)
        self.session_id = session_id
        #: What the session is doing.
        self.state = SessionState()
        #: The session's sound.
        self.packets = PacketBuffer()
        self.is_closed = False
        self._link = Link(
            self._addresses,
            session_id,
            token,
            on_text=self._take_text,
            on_packet=self.packets.put,
            on_lost=self._lost,
        )
        self._http = http
        self._owns_http = http is None
        self._patience = patience
        self._outstanding = Outstanding(patience)
        self._subscriptions = Subscriptions()
        self._event_count = 0
        # Where commands go; None without a connection.
        self._outbox: Outbox | None = None
        self._task: asyncio.Task[None] | None = None
        # What `start` waits for: why it is refused, or None.
        self._outcome: asyncio.Future[AntiphonError | None] | None = None

    @property
    def url(self) -> str:
        """Of the Router that the session is connected to, or tried last."""
        return self._addresses.current

    async def __aenter__(self) -> Session:
        try:
            await self.start()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def start(self) -> None:
        """Connects; returns when the state is known.

        Raises AntiphonError where the Router refuses (`unauthorized`, `forbidden`, `invalid_session_id`, …) or cannot
        be reached in time (`connection_lost`). In the background it is tried on until `close`.
        """
        if self.is_closed:
            raise _closed()
        if self.state.connected:
            return
        if self._outcome is None or (self._outcome.done() and self._outcome.result()):
            # An error is of the time when it was said: the next attempt may go well.
            self._outcome = asyncio.get_running_loop().create_future()
        if self._task is None:
            self._http = self._http or aiohttp.ClientSession()
            self._task = asyncio.create_task(self._link.run(self._http), name=f"antiphon session {self.session_id}")
        outcome = self._outcome
        await asyncio.wait({outcome}, timeout=self._patience)
        if not outcome.done():
            raise self.state.error or AntiphonError(
                "connection_lost",
                f"{self._addresses} has not answered in {self._patience:g} s",
                "is the Router running there?",
            )
        if error := outcome.result():
            raise error

    async def close(self) -> None:
        """Disconnects; the session itself plays on. Commands that wait fail with `closed`, event streams end."""
        if self.is_closed:
            return
        self.is_closed = True
        self._settle(_closed())
        if self._task:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._http and self._owns_http:
            await self._http.close()
        self._outstanding.fail(_closed())
        self._subscriptions.end()

    async def command(self, type: str, **fields: Any) -> Event:
        """Sends a command and gives its answer.

        What is in flight when the connection breaks is repeated when it is back, with the same idempotency key, so that
        it is done once. So is what was refused because the Router had no engine. Raises AntiphonError where it is
        refused, with `connection_lost` where there is no connection in time, with `timeout` where no answer comes in
        60 s.
        """
        key = {} if type in _READS else {"idempotency_key": uuid.uuid4().hex}
        command = key | fields | {"type": type}
        give_up_at = asyncio.get_running_loop().time() + self._patience
        while True:
            answer = await self._ask(command, self._events_before(type, fields))
            if answer.event["type"] != "error":
                if answer.is_late:
                    await self._look_again(answer.event)
                return answer.event
            error = AntiphonError.from_object(answer.event)
            if error.code != "engine_unavailable" or not await self._engine_is_back(give_up_at):
                raise error

    def events(self) -> EventStream:
        """The events from now on, for `async for`. At most 256 wait; the oldest are lost, and counted in `.dropped`."""
        return self._subscriptions.stream()

    def on(self, type: str | None, callback: Callable[[Event], object]) -> Callable[[], None]:
        """Calls a plain function with each event of a type (None: all), on the event loop, when `state` has it.

        Gives what ends it. What takes longer than a moment belongs into a task of its own, or to `events`.
        """
        return self._subscriptions.on(type, callback)

    async def _look_again(self, answer: Event) -> None:
        """Brings up to date what the late answer to a change did not."""
        read = {"type": "queue" if answer["type"] == "queue" else "status"}
        with suppress(asyncio.TimeoutError, AntiphonError):
            await asyncio.wait_for(self._ask(read), LOOK_LIMIT_SECONDS)

    def _events_before(self, type: str, fields: Mapping[str, Any]) -> int | None:
        """How many events there were before a change that is asked now; None for what changes nothing."""
        if type in _READS:
            return None
        # With a key of the requester's own it may be a repetition, whose answer is older than all events.
        return -1 if "idempotency_key" in fields else self._event_count

    async def _ask(self, command: Event, event_count: int | None = None) -> Answer:
        if self.is_closed:
            raise _closed()
        request_id = uuid.uuid4().hex
        text = json.dumps(command | {"request_id": request_id}, ensure_ascii=False, separators=(",", ":"))
        if (size := len(text.encode())) > COMMAND_LIMIT_BYTES:
            raise AntiphonError(
                "line_too_long",
                f"the command has {size} bytes, and at most {COMMAND_LIMIT_BYTES} are taken",
                "ask in parts",
            )
        answer = self._outstanding.add(request_id, text, event_count)
        try:
            if self._outbox:
                self._outbox.put_nowait(text)
            return await answer
        except asyncio.QueueFull:
            raise AntiphonError("overloaded", "the Router does not read what it is sent", "ask again later") from None
        finally:
            self._outstanding.remove(request_id)

    async def _engine_is_back(self, give_up_at: float) -> bool:
        """Waits for the Router's engine, and until it has taken up what played: before, it would refuse again."""
        was_there = False
        while asyncio.get_running_loop().time() < give_up_at:
            await asyncio.sleep(ENGINE_LOOK_SECONDS)
            if was_there and self.state.engine_connected and self.state.playback != "extracting":
                return True
            was_there = self.state.engine_connected
        return False

    def _take_text(self, text: str, outbox: Outbox) -> None:
        try:
            self._take(json.loads(text), outbox)
        except (ValueError, LookupError, TypeError, AttributeError):
            _log.exception("session %s: an event that cannot be understood", self.session_id)

    def _take(self, event: Event, outbox: Outbox) -> None:
        is_late = self._outstanding.is_late(event, self._event_count)
        if not is_late:
            self.state.apply(event)
        self._event_count += 1
        self.packets.expect(self.state.is_sounding)
        if self._outbox is None:
            self._found(outbox)
        self._subscriptions.tell(event)
        self._outstanding.answer(event, is_late=is_late)

    def _found(self, outbox: Outbox) -> None:
        """The Router has said what the session is doing: commands may go."""
        self._outbox = outbox
        for text in self._outstanding.connection_found():
            outbox.put_nowait(text)
        self.state.connected = True
        self.state.error = None
        _log.info("session %s: connected to %s", self.session_id, self.url)
        self._subscriptions.tell({"type": "connection", "connected": True})
        self._settle(None)

    def _lost(self, error: AntiphonError) -> None:
        is_news = self.state.connected or self.state.error is None or self.state.error.code != error.code
        self._outbox = None
        self.state.connected = False
        self.state.error = error
        self._outstanding.connection_lost()
        if is_news:
            _log.warning("session %s: %s", self.session_id, error)
            self._subscriptions.tell({"type": "connection", "connected": False, "error": error.to_object()})
        if isinstance(error, ConnectionRefused) and error.is_permanent:
            self._settle(error)

    def _settle(self, outcome: AntiphonError | None) -> None:
        if self._outcome and not self._outcome.done():
            self._outcome.set_result(outcome)


def _closed() -> AntiphonError:
    return AntiphonError("closed", "the session was closed here", "make another one")
