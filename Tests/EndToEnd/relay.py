"""A network between a browser and a server that can go away: it takes connections and passes bytes on, or does not."""

import asyncio
from contextlib import asynccontextmanager


class Relay:
    """While it is `cut`, what is open hears nothing more, as where a cable is pulled: nobody is told."""

    def __init__(self, target: str) -> None:
        self._host, _, port = target.rpartition(":")
        self._port = int(port)
        self._writers: set[asyncio.StreamWriter] = set()
        self._flows = asyncio.Event()
        self._flows.set()
        #: How many bytes still reach the browser, and what is set when they have.
        self._left: int | None = None
        self._is_cut = asyncio.Event()
        self._broken: bytes | None = None
        self.url = ""

    def cut(self) -> None:
        self._flows.clear()

    def cut_after(self, count: int) -> asyncio.Event:
        """Cuts it when so many more bytes have come from the server; the event is set then."""
        self._left, self._is_cut = count, asyncio.Event()
        return self._is_cut

    def breaks(self, beginning: bytes) -> None:
        """Connections that begin so are closed, as by a proxy that does not know what they are for."""
        self._broken = beginning

    def restore(self) -> None:
        """What was open when it was cut stays dead, as it does where an address has changed."""
        for writer in self._writers:
            writer.transport.abort()
        self._flows.set()

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._flows.wait()
        try:
            there, away = await asyncio.open_connection(self._host, self._port)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, away}
        try:
            await asyncio.gather(self._pass(reader, away), self._pass(there, writer, counts=True))
        except OSError:
            pass
        finally:
            self._writers -= {writer, away}
            for each in (writer, away):
                each.transport.abort()

    async def _pass(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, counts: bool = False) -> None:
        while data := await source.read(65_536):
            if self._broken and data.startswith(self._broken):
                raise ConnectionResetError
            if counts and self._left is not None:
                self._left -= len(data)
                if self._left <= 0:
                    self._left = None
                    self.cut()
                    self._is_cut.set()
            await self._flows.wait()
            sink.write(data)
            await sink.drain()
        sink.close()


@asynccontextmanager
async def relay(target: str):
    """A relay to `host:port`."""
    between = Relay(target)
    server = await asyncio.start_server(between.take, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    between.url = f"http://127.0.0.1:{port}"
    try:
        yield between
    finally:
        server.close()
        between.restore()
