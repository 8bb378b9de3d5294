"""A stranger's web server: its files and pages never come to an end."""

import asyncio
import contextlib
import struct

#: An ID3 tag that says to have a mebibyte, which a reader has to wait for.
TAG = b"ID3\x04\x00\x00" + struct.pack(">I", 0x00400000)


class Site:
    """`/slow/…` sends a few bytes a second, `/page/…` is a page to the engine and nothing to yt-dlp."""

    def __init__(self) -> None:
        #: Requests that are being kept waiting, or have been.
        self.asked = 0
        self._news = asyncio.Condition()
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task] = set()

    @property
    def url(self) -> str:
        assert self._server
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def __aenter__(self) -> "Site":
        self._server = await asyncio.start_server(self._answer, "127.0.0.1", 0, backlog=1_024)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server
        self._server.close()
        for task in self._tasks:
            task.cancel()

    async def wait_asked(self, count: int, seconds: float) -> None:
        """Until so many requests are kept waiting; who serves them fairly may never ask for as many."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds), self._news:
                await self._news.wait_for(lambda: self.asked >= count)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._tasks.add(asyncio.current_task())
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            head = await reader.readuntil(b"\r\n\r\n")
            is_page = head.startswith((b"GET /page/", b"HEAD /page/"))
            if is_page and b"user-agent: antiphon/" in head.lower():
                page = b"<!doctype html><title>A page</title><p>Wait for it."
                lines = f"Content-Type: text/html\r\nContent-Length: {len(page)}\r\nConnection: close"
                writer.write(f"HTTP/1.1 200 OK\r\n{lines}\r\n\r\n".encode() + page)
                await writer.drain()
            else:
                async with self._news:
                    self.asked += 1
                    self._news.notify_all()
                if not is_page:
                    lines = b"Content-Type: audio/mpeg\r\nContent-Length: 5000000"
                    writer.write(b"HTTP/1.1 200 OK\r\n" + lines + b"\r\n\r\n" + TAG)
                while True:
                    await asyncio.sleep(0.5)
                    if not is_page:
                        writer.write(bytes(4))
                        await writer.drain()
        writer.close()
