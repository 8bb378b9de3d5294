"""A stranger's connections: raw HTTP and WebSocket, written as fast as they are taken, without a client's manners."""

import asyncio
import contextlib
import re
import socket
import struct
import time
from collections import Counter

#: Counted in what comes back; what is cut by two reads is missed, which does not matter.
CODES = re.compile(rb'HTTP/1\.1 \d{3}|"code":"\w+"|"type":"(?:queue|error)"')


def frame(text: bytes, opcode: int = 1, *, is_last: bool = True) -> bytes:
    """A client's WebSocket frame. It is masked with zeros, which leave the text as it is."""
    first = bytes([(0x80 if is_last else 0) | opcode])
    length = bytes([0x80 | len(text)]) if len(text) < 126 else b"\xfe" + struct.pack(">H", len(text))
    return first + length + bytes(4) + text


class Address:
    """A server, and how a stranger comes to it."""

    def __init__(self, address: str, token: str | None = None, source: str | None = None) -> None:
        self.address = address
        self._host, port = address.split(":")
        self._port = int(port)
        self._token = token
        self._source = source

    def head(self, method: str, path: str, *lines: str) -> bytes:
        """A request's head, which a body may follow."""
        token = (f"Authorization: Bearer {self._token}",) if self._token else ()
        return "\r\n".join([f"{method} {path} HTTP/1.1", f"Host: {self.address}", *token, *lines, "", ""]).encode()

    def request(self, method: str, path: str, body: bytes = b"") -> bytes:
        lines = ("Content-Type: application/json", f"Content-Length: {len(body)}") if method == "POST" else ()
        return self.head(method, path, *lines) + body

    async def connect(self, receive_buffer: int | None = None) -> "Connection":
        client = socket.socket()
        client.setblocking(False)
        if receive_buffer:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        if self._source:
            client.bind((self._source, 0))
        try:
            await asyncio.get_running_loop().sock_connect(client, (self._host, self._port))
        except BaseException:
            client.close()
            raise
        return Connection(client)

    async def websocket(self, session: str, receive_buffer: int | None = None) -> "Connection":
        """One whose upgrade was accepted; ConnectionError where it was not."""
        connection = await self.connect(receive_buffer)
        lines = ("Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13")
        key = "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=="
        await connection.send(self.head("GET", f"/ws?session={session}", *lines, key))
        answer = await connection.receive(12)
        if not answer.startswith(b"HTTP/1.1 101"):
            connection.close()
            raise ConnectionError(f"the upgrade was answered {answer!r}")
        return connection


class Connection:
    """One TCP connection. It reads only when it is told to."""

    def __init__(self, client: socket.socket) -> None:
        self._socket = client
        self._loop = asyncio.get_running_loop()
        self.is_open = True
        self.received = 0
        self.codes: Counter[bytes] = Counter()

    async def send(self, data: bytes) -> None:
        await self._loop.sock_sendall(self._socket, data)

    async def receive(self, count: int) -> bytes:
        return await self._loop.sock_recv(self._socket, count)

    async def flood(self, data: bytes, until: float, times: int = 1_000_000) -> int:
        """Sends the same again and again; how often it was taken whole."""
        for sent in range(times):
            if time.monotonic() >= until or not self.is_open:
                return sent
            try:
                async with asyncio.timeout(max(0.0, until - time.monotonic())):
                    await self.send(data)
            except (TimeoutError, OSError):
                return sent
            # A socket that always takes all would keep this process from everything else.
            await asyncio.sleep(0)
        return times

    async def drain(self) -> None:
        """Reads and counts until the other side ends it."""
        buffer = bytearray(1 << 18)
        view = memoryview(buffer)
        with contextlib.suppress(OSError):
            while count := await self._loop.sock_recv_into(self._socket, buffer):
                self.received += count
                text = bytes(view[:count])
                # Most of a long answer has neither, and is not gone through slowly.
                if b"HTTP/1.1 " in text or b'"type":"' in text:
                    self.codes.update(CODES.findall(text))
        self.is_open = False

    @property
    def queue_answers(self) -> int:
        """Of commands for a queue that were sent over a WebSocket."""
        return self.codes[b'"type":"queue"'] + self.codes[b'"type":"error"']

    @property
    def answered(self) -> int:
        """Of requests over HTTP."""
        return sum(count for code, count in self.codes.items() if code.startswith(b"HTTP"))

    @property
    def answers(self) -> dict[str, int]:
        """How often each status and each error code came."""
        return {code.decode().strip('"').split()[-1].split('"')[-1]: count for code, count in self.codes.items()}

    def close(self) -> None:
        self.is_open = False
        self._socket.close()
