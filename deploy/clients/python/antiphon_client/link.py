"""A session's connection to the Router, which reconnects until it is closed."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress

import aiohttp

from .addresses import Addresses
from .connection import ConnectionRefused, open_connection
from .errors import AntiphonError
from .outstanding import COMMAND_LIMIT

_log = logging.getLogger("antiphon_client")

#: A token, or what gives one: asked again before each connection, so also when the Router says that one has expired.
Token = str | Callable[[], Awaitable[str]]

#: Where commands go, on one connection.
Outbox = asyncio.Queue[str]

#: Waits between two attempts to connect: doubled each time, and cut by up to half at random.
FIRST_RETRY_SECONDS = 0.2
LAST_RETRY_SECONDS = 5.0

#: Where the error will be the same until someone changes something.
REFUSED_RETRY_SECONDS = 30.0

#: How many commands wait for a socket that does not take them: those outstanding, and as many that were cancelled.
OUTBOX_LIMIT = 2 * COMMAND_LIMIT

#: The Router's close code for a token that has expired.
_EXPIRED = 4401

#: The Router's close code for a session that another Router has taken over.
_MOVED = aiohttp.WSCloseCode.SERVICE_RESTART


class _Moved(AntiphonError):
    """The session is at another Router, and each Router knows where."""


class Link:
    """Tells of each message as it comes, with the outbox of its connection, and of each end of a connection."""

    def __init__(
        self,
        addresses: Addresses,
        session_id: str,
        token: Token | None,
        *,
        on_text: Callable[[str, Outbox], None],
        on_packet: Callable[[bytes], None],
        on_lost: Callable[[AntiphonError], None],
    ) -> None:
        self._addresses = addresses
        self._session_id = session_id
        self._token = token
        self._on_text = on_text
        self._on_packet = on_packet
        self._on_lost = on_lost

    async def run(self, http: aiohttp.ClientSession) -> None:
        """Connects again and again, until it is cancelled: to the next address at once, and after all of them waits."""
        clock = asyncio.get_running_loop().time
        retry = FIRST_RETRY_SECONDS
        while True:
            begun = clock()
            error = await self._connection(http)
            self._on_lost(error)
            lasted = clock() - begun
            if lasted > LAST_RETRY_SECONDS:
                retry = FIRST_RETRY_SECONDS
                self._addresses.begin_round()
            if self._addresses.advance() or (isinstance(error, _Moved) and lasted > FIRST_RETRY_SECONDS):
                continue
            is_permanent = isinstance(error, ConnectionRefused) and error.is_permanent
            await asyncio.sleep(REFUSED_RETRY_SECONDS if is_permanent else retry * random.uniform(0.5, 1))
            retry = min(2 * retry, LAST_RETRY_SECONDS)
            self._addresses.begin_round()

    async def _connection(self, http: aiohttp.ClientSession) -> AntiphonError:
        """One connection, from the asking for a token to its end; why it has ended, or could not be had."""
        url = self._addresses.current
        try:
            token = await self._current_token()
            async with await open_connection(http, url, self._session_id, token) as socket:
                await self._read(socket)
            if socket.close_code == _EXPIRED:
                return AntiphonError("unauthorized", "the token has expired", "a new one is asked for")
            if socket.close_code == _MOVED:
                return _Moved("connection_lost", f"{url} does not serve the session any more: another Router does")
            return AntiphonError("connection_lost", f"{url} has closed the connection ({socket.close_code})")
        except AntiphonError as error:
            return error
        except asyncio.TimeoutError:
            return AntiphonError("connection_lost", f"{url} does not answer")
        except (OSError, aiohttp.ClientError) as error:
            return AntiphonError("connection_lost", f"{url} cannot be reached: {error}", "is the Router running there?")
        except Exception as error:
            _log.exception("session %s: the connection failed", self._session_id)
            return AntiphonError("internal", repr(error))

    async def _current_token(self) -> str | None:
        if self._token is None or isinstance(self._token, str):
            return self._token
        try:
            return await self._token()
        except Exception as error:
            _log.exception("session %s: the token could not be had", self._session_id)
            raise AntiphonError("token_unavailable", f"the token could not be had: {error!r}") from error

    async def _read(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        outbox: Outbox = asyncio.Queue(OUTBOX_LIMIT)
        writing = asyncio.create_task(_write(socket, outbox))
        try:
            async for message in socket:
                if message.type == aiohttp.WSMsgType.BINARY:
                    self._on_packet(message.data)
                elif message.type == aiohttp.WSMsgType.TEXT:
                    self._on_text(message.data, outbox)
        finally:
            writing.cancel()
            await asyncio.gather(writing, return_exceptions=True)


async def _write(socket: aiohttp.ClientWebSocketResponse, outbox: Outbox) -> None:
    """Sends commands in the order they were asked. Where that fails, the reader sees it too; they are sent again."""
    with suppress(OSError, aiohttp.ClientError):
        while True:
            await socket.send_str(await outbox.get())
