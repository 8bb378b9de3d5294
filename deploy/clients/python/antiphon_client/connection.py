"""One WebSocket to the Router: opened, or refused with a reason."""

from __future__ import annotations

import asyncio
import base64
import json
import os
from http import HTTPStatus
from typing import Any

import aiohttp
from yarl import URL

from .errors import AntiphonError
from .packets import TARGET_PACKETS

PROTOCOL = "antiphon.opus.v1"

#: What the Router is to send at once of the sound just played: the jitter buffer is full with it.
BUFFER_MS = TARGET_PACKETS * 20

#: How long the opening of a connection may take.
OPEN_LIMIT_SECONDS = 10.0

#: A ping goes out when nothing came for so long, and is to be answered within half of it: a peer that is gone without
#: a word is noticed within 12 s.
HEARTBEAT_SECONDS = 8.0

#: How long the Router has to say goodbye.
CLOSE_LIMIT_SECONDS = 2.0

#: The longest message; an event of the Router's has at most 1 MiB.
MESSAGE_LIMIT_BYTES = 2 * 1024 * 1024

#: An error's body is one error object.
REFUSAL_LIMIT_BYTES = 64 * 1024

#: Statuses below 500 with which it is worth to try again soon.
_PASSING = {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS}

#: Codes for errors that do not come from a Router, but from what is in its place or before it.
_CODES = {400: "invalid_command", 401: "unauthorized", 403: "forbidden", 404: "not_found"}


class ConnectionRefused(AntiphonError):
    """The upgrade was answered with another status."""

    def __init__(self, status: int, code: str, message: str, hint: str | None) -> None:
        super().__init__(code, message, hint)
        #: Whether it will be so again until someone changes something: a token, an address, an ID.
        self.is_permanent = 400 <= status < 500 and status not in _PASSING


async def open_connection(
    http: aiohttp.ClientSession, base: str, session_id: str, token: str | None
) -> aiohttp.ClientWebSocketResponse:
    """Opens the session's WebSocket.

    Raises ConnectionRefused where there is an answer, but no upgrade; OSError, aiohttp.ClientError or
    asyncio.TimeoutError where there is none.
    """
    url = (URL(base) / "ws").with_query(session=session_id, buffer_ms=BUFFER_MS)
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}

    async def connect() -> aiohttp.ClientWebSocketResponse:
        try:
            return await http.ws_connect(
                url,
                protocols=(PROTOCOL,),
                headers=headers,
                heartbeat=HEARTBEAT_SECONDS,
                max_msg_size=MESSAGE_LIMIT_BYTES,
                timeout=aiohttp.ClientWSTimeout(ws_close=CLOSE_LIMIT_SECONDS),
            )
        except aiohttp.WSServerHandshakeError as error:
            raise await _error(http, url, headers, error.status) from None

    return await asyncio.wait_for(connect(), OPEN_LIMIT_SECONDS)


async def _error(http: aiohttp.ClientSession, url: URL, headers: dict[str, str], status: int) -> ConnectionRefused:
    """Why the upgrade was refused. aiohttp keeps the status alone, so that the Router is asked once more."""
    upgrade = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": base64.b64encode(os.urandom(16)).decode(),
    }
    error: Any = None
    body = b""
    try:
        async with http.get(url.with_scheme(_HTTP[url.scheme]), headers=headers | upgrade) as response:
            while response.status == status and len(body) < REFUSAL_LIMIT_BYTES:
                if not (chunk := await response.content.readany()):
                    error = json.loads(body)
                    break
                body += chunk
    except (OSError, aiohttp.ClientError, ValueError):
        pass
    if isinstance(error, dict) and "code" in error:
        given = AntiphonError.from_object(error)
        return ConnectionRefused(status, given.code, given.message, given.hint)
    return ConnectionRefused(
        status,
        _CODES.get(status, "connection_lost"),
        f"{url.origin()} answered the WebSocket's upgrade with status {status}, and not as a Router does",
        "is it the Router's address, and does a proxy before it pass WebSockets on?",
    )


_HTTP = {"http": "http", "https": "https", "ws": "http", "wss": "https"}
