"""One voice handshake: from VOICE_SERVER_UPDATE's token to the key, and what may be resumed after it."""

import asyncio
import json
import secrets
import struct
from collections import deque
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from aiohttp import web

if TYPE_CHECKING:
    from .dave import Call

#: Messages kept for a resume.
REPLAY_LIMIT = 100


class Op(IntEnum):
    IDENTIFY = 0
    SELECT_PROTOCOL = 1
    READY = 2
    HEARTBEAT = 3
    SESSION_DESCRIPTION = 4
    SPEAKING = 5
    HEARTBEAT_ACK = 6
    RESUME = 7
    HELLO = 8
    RESUMED = 9
    CLIENTS_CONNECT = 11
    CLIENT_DISCONNECT = 13
    PREPARE_TRANSITION = 21
    EXECUTE_TRANSITION = 22
    TRANSITION_READY = 23
    PREPARE_EPOCH = 24
    MLS_EXTERNAL_SENDER = 25
    MLS_KEY_PACKAGE = 26
    MLS_PROPOSALS = 27
    MLS_COMMIT_WELCOME = 28
    MLS_ANNOUNCE_COMMIT_TRANSITION = 29
    MLS_WELCOME = 30
    MLS_INVALID_COMMIT_WELCOME = 31


@dataclass
class VoiceSession:
    """The bot was let into a channel with `token`; the WebSocket comes, goes, and may come back."""

    token: str
    session_id: str
    ssrc: int
    socket: web.WebSocketResponse | None = None
    request: web.BaseRequest | None = None
    mode: str | None = None
    key: bytes | None = None
    #: What the UDP socket saw as the client's address, which the client must repeat.
    discovered: tuple[str, int] | None = None
    last_nonce: int = -1
    packets: int = 0
    sequence: int = -1
    _sent: deque[tuple[int, str | bytes]] = field(default_factory=lambda: deque(maxlen=REPLAY_LIMIT))
    _posted: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        #: Set by who lets the bot in.
        self.call: Call

    def post(self, op: int, data: dict[str, Any]) -> None:
        """Sends a message now, or when the client resumes: version 8 numbers these."""
        self.sequence += 1
        self._keep(json.dumps({"op": op, "d": data, "seq": self.sequence}))

    def post_binary(self, op: int, data: bytes) -> None:
        self.sequence += 1
        self._keep(struct.pack(">HB", self.sequence, op) + data)

    def _keep(self, message: str | bytes) -> None:
        self._sent.append((self.sequence, message))
        self._posted.set()

    async def forward(self, socket: web.WebSocketResponse, acknowledged: int) -> int:
        """Sends what was posted since; gives the number of the last one."""
        for sequence, message in list(self._sent):
            if sequence <= acknowledged:
                continue
            if isinstance(message, str):
                await socket.send_str(message)
            else:
                await socket.send_bytes(message)
            acknowledged = sequence
        return acknowledged

    async def forward_all(self, socket: web.WebSocketResponse, acknowledged: int) -> None:
        """Sends what is posted from now on, as long as this is the session's socket."""
        while self.socket is socket:
            self._posted.clear()
            acknowledged = await self.forward(socket, acknowledged)
            await self._posted.wait()

    def new_key(self, mode: str) -> bytes:
        self.mode, self.key, self.last_nonce = mode, secrets.token_bytes(32), -1
        return self.key
