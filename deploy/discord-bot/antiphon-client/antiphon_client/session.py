"""One session of a Router: its events, its sound and its commands, over a connection that comes back by itself."""

from __future__ import annotations

import asyncio
import json
import logging
import random
import uuid
from collections.abc import Awaitable, Callable
from contextlib import suppress
from types import TracebackType
from typing import Any

import aiohttp

from .commands import Commands
from .connection import ConnectionRefused, open_connection
from .errors import AntiphonError
from .outstanding import Answer, Outstanding
from .packets import PacketBuffer
from .state import SessionState
from .subscriptions import Event, EventStream, Subscriptions

_log = logging.getLogger("antiphon_client")

#: A token, or what gives one: asked anew before each connection, so also when the Router says that one has expired.
Token = str | Callable[[], Awaitable[str]]

#: How long a command waits for a connection, or for the Router's engine.
PATIENCE_SECONDS = 15.0

#: Waits between two attempts to connect: doubled each time, and cut by up to half at random.
FIRST_RETRY_SECONDS = 0.2
LAST_RETRY_SECONDS = 5.0

#: Where the refusal will be the same until someone changes something.
REFUSED_RETRY_SECONDS = 30.0

#: How often a command that was refused for want of an engine looks for one.
ENGINE_LOOK_SECONDS = 0.2

#: How long a command that is done waits for the state to be so too.
LOOK_LIMIT_SECONDS = 2.0

#: The longest command, as JSON: the Router closes the connection beyond.
COMMAND_LIMIT_BYTES = 64 * 1024

#: A token has expired.
_EXPIRED = 4401

#: What changes nothing needs no idempotency key.
_READS = {"status", "why", "queue", "history", "media", "resolve", "ping"}


class Session(Commands):
    """A session, named by its ID (a bot's guild ID, for example).

    All methods belong to the event loop that `start` was called on; `packets.take` alone may be called by any thread.
    """

    def __init__(
        self,
        url: str,
        session_id: str,
        *,
        token: Token | None = None,
        http: aiohttp.ClientSession | None = None,
        patience: float = PATIENCE_SECONDS,
    ) -> None:
        """`url` is the Router's, `http(s)://host:port`.

        A given `http` is used and not closed. Its connector's limit, aiohttp's own of 100 where none was given, is how
        many sessions it carries at once.

        `patience`, in seconds, is how long `start` and the commands wait for a connection and for the engine.
        """
        self.url = url
        self.session_id = session_id
        #: What the session is doing.
        self.state = SessionState()
        #: The session's sound.
        self.packets = PacketBuffer()
        self.is_closed = False
        self._token = token
        self._http = http
        self._owns_http = http is None
        self._patience = patience
        self._outstanding = Outstanding(patience)
        self._subscriptions = Subscriptions()
        self._event_count = 0
        # Where commands go; None without a connection. At most as long as there are commands outstanding.
        self._outbox: asyncio.Queue[str] | None = None
        self._task: asyncio.Task[None] | None = None
        self._first_outcome: asyncio.Future[AntiphonError | None] | None = None

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
        if self._first_outcome is None:
            self._first_outcome = asyncio.get_running_loop().create_future()
            self._http = self._http or aiohttp.ClientSession()
            self._task = asyncio.create_task(self._run(), name=f"antiphon session {self.session_id}")
        await asyncio.wait({self._first_outcome}, timeout=self._patience)
        if not self._first_outcome.done():
            raise self.state.error or AntiphonError(
                "connection_lost",
                f"{self.url} has not answered in {self._patience:g} s",
                "is the Router running there?",
            )
        if error := self._first_outcome.result():
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
            answer = await self._ask(command)
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

    async def _ask(self, command: Event) -> Answer:
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
        event_count = None if command["type"] in _READS else self._event_count
        answer = self._outstanding.add(request_id, text, event_count)
        try:
            if self._outbox:
                self._outbox.put_nowait(text)
            return await answer
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

    async def _run(self) -> None:
        """Connects again and again."""
        clock = asyncio.get_running_loop().time
        retry = FIRST_RETRY_SECONDS
        while True:
            begun = clock()
            error = await self._connection()
            self._lost(error)
            is_permanent = isinstance(error, ConnectionRefused) and error.is_permanent
            if is_permanent:
                self._settle(error)
            if clock() - begun > LAST_RETRY_SECONDS:
                retry = FIRST_RETRY_SECONDS
            await asyncio.sleep(REFUSED_RETRY_SECONDS if is_permanent else retry * random.uniform(0.5, 1))
            retry = min(2 * retry, LAST_RETRY_SECONDS)

    async def _connection(self) -> AntiphonError:
        """One connection, from the asking for a token to its end; why it has ended, or could not be had."""
        assert self._http
        try:
            token = await self._current_token()
            async with await open_connection(self._http, self.url, self.session_id, token) as socket:
                await self._read(socket)
            if socket.close_code == _EXPIRED:
                return AntiphonError("unauthorized", "the token has expired", "a new one is asked for")
            return AntiphonError("connection_lost", f"{self.url} has closed the connection ({socket.close_code})")
        except AntiphonError as error:
            return error
        except asyncio.TimeoutError:
            return AntiphonError("connection_lost", f"{self.url} does not answer")
        except (OSError, aiohttp.ClientError) as error:
            return AntiphonError(
                "connection_lost", f"{self.url} cannot be reached: {error}", "is the Router running there?"
            )
        except Exception as error:
            _log.exception("session %s: the connection failed", self.session_id)
            return AntiphonError("internal", repr(error))

    async def _current_token(self) -> str | None:
        if self._token is None or isinstance(self._token, str):
            return self._token
        try:
            return await self._token()
        except Exception as error:
            _log.exception("session %s: the token could not be had", self.session_id)
            raise AntiphonError("token_unavailable", f"the token could not be had: {error!r}") from error

    async def _read(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        outbox: asyncio.Queue[str] = asyncio.Queue()
        writing = asyncio.create_task(_write(socket, outbox))
        try:
            async for message in socket:
                if message.type == aiohttp.WSMsgType.BINARY:
                    self.packets.put(message.data)
                elif message.type == aiohttp.WSMsgType.TEXT:
                    try:
                        self._take(json.loads(message.data), outbox)
                    except (ValueError, LookupError, TypeError):
                        _log.exception("session %s: an event that cannot be understood", self.session_id)
        finally:
            self._outbox = None
            writing.cancel()
            await asyncio.gather(writing, return_exceptions=True)

    def _take(self, event: Event, outbox: asyncio.Queue[str]) -> None:
        is_late = self._outstanding.is_late(event, self._event_count)
        if not is_late:
            self.state.apply(event)
        self._event_count += 1
        self.packets.expect(self.state.is_sounding)
        if self._outbox is None:
            self._found(outbox)
        self._subscriptions.tell(event)
        self._outstanding.answer(event, is_late=is_late)

    def _found(self, outbox: asyncio.Queue[str]) -> None:
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
        self.state.connected = False
        self.state.error = error
        self._outstanding.connection_lost()
        if is_news:
            _log.warning("session %s: %s", self.session_id, error)
            self._subscriptions.tell({"type": "connection", "connected": False, "error": error.to_object()})

    def _settle(self, outcome: AntiphonError | None) -> None:
        if self._first_outcome and not self._first_outcome.done():
            self._first_outcome.set_result(outcome)


async def _write(socket: aiohttp.ClientWebSocketResponse, outbox: asyncio.Queue[str]) -> None:
    """Sends commands in the order they were asked. Where that fails, the reader sees it too; they are sent again."""
    with suppress(OSError, aiohttp.ClientError):
        while True:
            await socket.send_str(await outbox.get())


def _closed() -> AntiphonError:
    return AntiphonError("closed", "the session was closed here", "make another one")
