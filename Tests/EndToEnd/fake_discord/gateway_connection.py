"""One WebSocket of the bot's to the gateway, and the session that outlives it."""

import asyncio
import json
import secrets
import zlib
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

#: Messages waiting to be written to one connection.
OUTGOING_LIMIT = 10_000

#: Events kept for a resume.
REPLAY_LIMIT = 2_000

_END_OF_MESSAGE = b"\x00\x00\xff\xff"


class Connection:
    """Writes in the order of `send`, all messages one zlib stream where the client asked for it."""

    def __init__(self, socket: web.WebSocketResponse, request: web.BaseRequest, *, compressed: bool) -> None:
        self.socket = socket
        self._request = request
        self._deflate = zlib.compressobj() if compressed else None
        self._outgoing: asyncio.Queue[dict[str, Any] | int] = asyncio.Queue(OUTGOING_LIMIT)
        self._writer = asyncio.create_task(self._write())

    def send(self, payload: dict[str, Any]) -> None:
        self._outgoing.put_nowait(payload)

    def close(self, code: int) -> None:
        """Closes after what was sent before."""
        self._outgoing.put_nowait(code)

    def abort(self) -> None:
        """Cuts the connection as a lost network does: the client sees 1006."""
        if self._request.transport is not None:
            self._request.transport.abort()

    async def _write(self) -> None:
        while isinstance(payload := await self._outgoing.get(), dict):
            text = json.dumps(payload)
            try:
                if self._deflate is None:
                    await self.socket.send_str(text)
                else:
                    data = self._deflate.compress(text.encode()) + self._deflate.flush(zlib.Z_SYNC_FLUSH)
                    assert data.endswith(_END_OF_MESSAGE)
                    await self.socket.send_bytes(data)
            except ConnectionError:
                return
        await self.socket.close(code=payload)

    async def stop(self) -> None:
        self._writer.cancel()
        await asyncio.gather(self._writer, return_exceptions=True)


@dataclass
class Session:
    """What a READY begins: numbered events, kept so that a new connection can resume after the last one it got."""

    intents: int
    connection: Connection | None
    id: str = field(default_factory=lambda: secrets.token_hex(16))
    sequence: int = 0
    resumable: bool = True
    sent: deque[dict[str, Any]] = field(default_factory=lambda: deque(maxlen=REPLAY_LIMIT))

    def dispatch(self, event: str, data: dict[str, Any]) -> None:
        self.sequence += 1
        payload = {"op": 0, "t": event, "s": self.sequence, "d": data}
        self.sent.append(payload)
        if self.connection is not None:
            self.connection.send(payload)

    def can_resume(self, after: int) -> bool:
        """Whether all that the client has missed is still there."""
        return self.resumable and self.sequence - after <= len(self.sent)

    def resume(self, connection: Connection, after: int) -> None:
        for payload in self.sent:
            if payload["s"] > after:
                connection.send(payload)
        self.connection = connection
        self.dispatch("RESUMED", {})
