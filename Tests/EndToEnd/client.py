"""The clients the tests listen and command with: WebSocket, Unix socket and HTTP."""

import asyncio
import itertools
import json
import os
import socket
import struct
from collections.abc import Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp

from inbox import PATIENCE_SECONDS, Event, Inbox, Packet, reading

#: One Opus packet per binary message.
OPUS = "antiphon.opus.v1"
#: Records with sequence, due time and position.
TIMED = "antiphon.timed.v1"

_request_numbers = itertools.count(1)


class Listener(Inbox):
    """A WebSocket client of one session."""

    def __init__(self, session: str, socket: aiohttp.ClientWebSocketResponse, protocol: str) -> None:
        super().__init__(f"listener of {session}")
        self.session = session
        self.socket = socket
        self._protocol = protocol

    async def send(self, kind: str, **fields: Any) -> str:
        """Sends a command without waiting; its request ID."""
        request = f"test-{next(_request_numbers)}"
        await self.socket.send_json({"type": kind, "request_id": request, **fields})
        return request

    async def ask(self, kind: str, *, seconds: float = PATIENCE_SECONDS, **fields: Any) -> Event:
        """Sends a command and waits for its answer, be it an error."""
        since = self.mark()
        request = await self.send(kind, **fields)
        return await self.wait(
            lambda: next((event for event in self.events(since=since) if event.get("request_id") == request), None),
            f"answer to {kind} {fields}",
            seconds,
        )

    async def command(self, kind: str, **fields: Any) -> Event:
        """As `ask`, for what has to succeed."""
        answer = await self.ask(kind, **fields)
        assert answer["type"] != "error", f"{kind} {fields} was refused: {answer}"
        return answer

    async def play(self, url: str, **fields: Any) -> Event:
        return await self.command("play", url=url, **fields)

    async def read(self) -> None:
        """Takes every message until the connection ends."""
        async for message in self.socket:
            if message.type == aiohttp.WSMsgType.BINARY:
                await self.put(self._packets_of(message.data))
            elif message.type == aiohttp.WSMsgType.TEXT:
                await self.put([json.loads(message.data)])
            else:
                break
        await self.close(f"code {self.socket.close_code}")

    def _packets_of(self, message: bytes) -> list[Packet]:
        if self._protocol == OPUS:
            return [Packet(message)]
        packets, position = [], 0
        while position < len(message):
            sequence, due, place, length = struct.unpack_from(">IQIH", message, position)
            audio = message[position + 18 : position + 18 + length]
            assert len(audio) == length > 0, f"a record of {length} bytes in a message of {len(message)}"
            packets.append(Packet(audio, self.session, sequence, due, place))
            position += 18 + length
        return packets


@asynccontextmanager
async def listen(
    router: str,
    session: str,
    protocol: str | None = TIMED,
    *,
    buffer_ms: int | None = None,
    frames: int | None = None,
    origin: str | None = None,
    token: str | None = None,
    ticket: str | None = None,
):
    """Connects a listener, reads in the background, and disconnects at the end."""
    query = {"session": session} | ({} if buffer_ms is None else {"buffer_ms": str(buffer_ms)})
    query |= {} if frames is None else {"frames": str(frames)}
    query |= {} if ticket is None else {"ticket": ticket}
    async with (
        aiohttp.ClientSession() as http,
        http.ws_connect(
            f"{router}/ws",
            params=query,
            protocols=(protocol,) if protocol else (),
            origin=origin,
            headers=bearer(token),
            max_msg_size=0,
        ) as socket,
    ):
        assert socket.protocol == protocol, f"asked for {protocol}, the Router chose {socket.protocol}"
        listener = Listener(session, socket, protocol or OPUS)
        async with reading(listener.read()):
            yield listener


class EngineConnection(Inbox):
    """A connection to the engine's socket, as a Router has it."""

    def __init__(self, name: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        super().__init__(name)
        self._reader = reader
        self._writer = writer
        #: Cleared, it does not read.
        self.reads = asyncio.Event()
        self.reads.set()

    async def write(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def send(self, **command: Any) -> str:
        request = command.setdefault("request_id", f"test-{next(_request_numbers)}")
        await self.write(json.dumps(command).encode() + b"\n")
        return request

    async def ask(self, **command: Any) -> Event:
        """Sends a command and waits for its answer, be it an error."""
        since = self.mark()
        request = await self.send(**command)
        return await self.wait_answer(request, since)

    async def wait_answer(self, request: str, since: int = 0) -> Event:
        news = self.follow(since)
        return await self.wait(
            lambda: next(
                (item for item in news() if isinstance(item, dict) and item.get("request_id") == request), None
            ),
            f"answer to {request}",
        )

    async def command(self, **command: Any) -> Event:
        answer = await self.ask(**command)
        assert answer["type"] != "error", f"{command} was refused: {answer}"
        return answer

    async def read(self) -> None:
        try:
            while True:
                await self.reads.wait()
                await self.put([await self._message()])
        except (asyncio.IncompleteReadError, ConnectionError) as end:
            await self.close(repr(end))

    async def _message(self) -> Packet | Event:
        first = await self._reader.readexactly(1)
        if first == b"{":
            return json.loads(first + await self._reader.readuntil(b"\n"))
        assert first == b"\0", f"a message that begins with {first!r} is neither a packet nor an event"
        length = int.from_bytes(first + await self._reader.readexactly(3), "big")
        assert 25 <= length <= 65_536, f"a packet of length {length}"
        body = await self._reader.readexactly(length)
        name = body[:24].decode("ascii")
        assert name.rstrip(" ") and " " not in name.rstrip(" "), f"session ID {name!r} is not padded with spaces"
        return Packet(body[24:], name.rstrip(" "))


@asynccontextmanager
async def connect_to_engine(path: str, name: str = "router connection", *, receive_buffer: int = 2**20):
    """Connects as a Router does, reads in the background, and disconnects at the end."""
    # Where more connect at once than the engine's queue holds, asyncio would take the error for a connection.
    peer = socket.socket(socket.AF_UNIX)
    await asyncio.to_thread(peer.connect, os.fspath(path))
    peer.setblocking(False)
    reader, writer = await asyncio.open_unix_connection(sock=peer, limit=receive_buffer)
    connection = EngineConnection(name, reader, writer)
    try:
        async with reading(connection.read()):
            yield connection
    finally:
        writer.close()


@dataclass(frozen=True)
class Answer:
    """An HTTP answer with a JSON body."""

    status: int
    body: Any
    headers: Mapping[str, str]

    @property
    def code(self) -> str | None:
        return self.body.get("code") if isinstance(self.body, dict) else None


def bearer(token: str | None) -> dict[str, str]:
    """The header that shows a token, where there is one."""
    return {} if token is None else {"Authorization": f"Bearer {token}"}


async def request(
    method: str, url: str, body: Any = None, *, raw: bytes | None = None, headers: dict[str, str] | None = None
) -> Answer:
    """One HTTP request with a JSON answer. A path is sent as it is written."""
    from yarl import URL

    data = raw if raw is not None else json.dumps(body).encode() if body is not None else None
    headers = ({"Content-Type": "application/json"} if data is not None else {}) | (headers or {})
    timeout = aiohttp.ClientTimeout(total=PATIENCE_SECONDS)
    async with (
        aiohttp.ClientSession(timeout=timeout) as http,
        http.request(method, URL(url, encoded=True), data=data, headers=headers) as response,
    ):
        text = await response.text()
        try:
            return Answer(response.status, json.loads(text), response.headers)
        except ValueError:
            return Answer(response.status, text, response.headers)


def raw_request(address: str, text: str, *, receive_buffer: int | None = None) -> socket.socket:
    """A client that sends the lines of a request, and does not read."""
    host, port = address.split(":")
    client = socket.socket()
    if receive_buffer:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    client.connect((host, int(port)))
    client.sendall(text.replace("\n", f"\r\nHost: {address}\r\n", 1).encode())
    return client
