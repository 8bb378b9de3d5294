"""One voice handshake: from VOICE_SERVER_UPDATE's token to the key, and what may be resumed after it."""

import secrets
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

#: Messages kept for a resume.
REPLAY_LIMIT = 100


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
    sent: deque[dict[str, Any]] = field(default_factory=lambda: deque(maxlen=REPLAY_LIMIT))

    def numbered(self, op: int, data: dict[str, Any]) -> dict[str, Any]:
        """A message that is kept for a resume: version 8 numbers these."""
        self.sequence += 1
        message = {"op": op, "d": data, "seq": self.sequence}
        self.sent.append(message)
        return message

    def new_key(self, mode: str) -> bytes:
        self.mode, self.key, self.last_nonce = mode, secrets.token_bytes(32), -1
        return self.key
