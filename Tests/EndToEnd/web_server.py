"""A real HTTP server for the engine to fetch from: one that is good, and one that is everything else."""

import contextlib
import ssl
import threading
import time
import urllib.parse
import zlib
from pathlib import Path

from local_server import LocalHandler, LocalServer


class WebServer(LocalServer):
    """Serves a folder, well and badly, by the first part of the path.

    `/files/NAME` with ranges, `/plain/NAME` without; `/missing`, `/gone` and `/broken` are errors; `/hang` never
    answers, `/stall/NAME` sends half and stops, `/cut/NAME` promises all and hangs up halfway, `/slow/NAME` sends
    32 kB a second; `/to?URL` redirects, `/round` redirects to itself.

    `/breaks/NAME` hangs up after every 300,000 bytes. These do wrong once, at half of the file, and right when asked
    again from there: `/once/NAME` (which knows no ranges), `/stalls/NAME`, `/tears/NAME` (chunked), `/limps/NAME` (503
    twice), `/ticket/NAME` (redirects to an address that is good for one request). `/chunked/NAME` says no length, nor
    does `/held/NAME`, which waits after 40,000 bytes until it is `released`; `/long/NAME` says one too long,
    `/short/NAME` one too short. `/shifts/NAME` answers another part than asked for, `/grows/NAME` another length,
    `/changes/NAME` has another file each time, `/trickle/NAME` sends a byte now and then, `/deflated/NAME` compresses.
    """

    BREAK_BYTES = 300_000

    def __init__(self, folder: Path, address: str = "127.0.0.1", tls: ssl.SSLContext | None = None) -> None:
        super().__init__(_Handler, address, tls)
        self.folder = folder
        self.ranges: list[str | None] = []
        self.released = threading.Event()


class _Handler(LocalHandler):
    site: WebServer

    def do_GET(self) -> None:
        self.site.requests.append(self.path)
        self.site.ranges.append(self.headers.get("Range"))
        path, _, query = self.path.partition("?")
        _, kind, *rest = path.split("/")
        name = urllib.parse.unquote("/".join(rest))
        try:
            match kind:
                case "files":
                    self._send_file(name, ranges=True)
                case "plain":
                    self._send_file(name, ranges=False)
                case "stall":
                    self._send_half(name, then_wait=True)
                case "cut":
                    self._send_half(name, then_wait=False)
                case "slow":
                    self._send_slowly(name)
                case "breaks":
                    self._send_part(name, stop_after=WebServer.BREAK_BYTES)
                case "once":
                    self._send_part(name, ranges=False, stop_after=self._first_half(name))
                case "stalls":
                    self._send_part(name, stop_after=self._first_half(name), then_wait=True)
                case "tears":
                    self._send_chunks(name, stop_after=self._first_half(name))
                case "limps":
                    if self._times_asked() in (2, 3):
                        self._send(503, b"busy")
                    else:
                        self._send_part(name, stop_after=self._first_half(name))
                case "ticket":
                    self._redirect(f"/ticket-{self._times_asked()}/{name}")
                case kind if kind.startswith("ticket-"):
                    if self._times_asked() > 1:
                        self._send(403, b"expired")
                    else:
                        self._send_part(name, stop_after=self._half(name) if kind == "ticket-1" else None)
                case "chunked":
                    self._send_chunks(name)
                case "held":
                    self._send_chunks(name, hold_after=40_000)
                case "long":
                    self._send_part(name, promised=10_000)
                case "short":
                    self._send(200, self._data(name)[: self._half(name)], "application/octet-stream")
                case "shifts":
                    self._send_part(name, stop_after=self._half(name), shift=1_000)
                case "grows":
                    self._send_part(name, stop_after=self._half(name), promised=self._times_asked() - 1)
                case "changes":
                    self._send_part(name, stop_after=self._half(name), etag=f'"{self._times_asked()}"')
                case "trickle":
                    self._trickle(name)
                case "deflated":
                    self._send(200, zlib.compress(self._data(name)), Content_Encoding="deflate")
                case "hang":
                    self.site.over.wait()
                case "to":
                    self._redirect(urllib.parse.unquote(query))
                case "round":
                    self._redirect("/round")
                case "gone":
                    self._send(410, b"gone")
                case "broken":
                    self._send(500, b"broken")
                case "page":
                    self._send(200, b"<!doctype html><title>No sound here</title>" * 50, "text/html")
                case "empty":
                    self._send(200, b"")
                case _:
                    self._send(404, b"not found")
        except ConnectionError:
            self.close_connection = True

    do_HEAD = do_GET

    def handle(self) -> None:
        # The engine hangs up where it wants another part.
        with contextlib.suppress(ConnectionError):
            super().handle()

    def _send(self, status: int, body: bytes, kind: str = "text/plain", **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _send_file(self, name: str, ranges: bool) -> None:
        data = (self.site.folder / name).read_bytes()
        asked = self.headers.get("Range")
        if not ranges or not asked:
            self._send(200, data, "application/octet-stream", **({"Accept_Ranges": "bytes"} if ranges else {}))
            return
        first, _, last = asked.removeprefix("bytes=").partition("-")
        begin = int(first)
        end = min(int(last) if last else len(data) - 1, len(data) - 1)
        if begin > end:
            self._send(416, b"", Content_Range=f"bytes */{len(data)}")
            return
        self._send(
            206,
            data[begin : end + 1],
            "application/octet-stream",
            Accept_Ranges="bytes",
            Content_Range=f"bytes {begin}-{end}/{len(data)}",
        )

    def _data(self, name: str) -> bytes:
        return (self.site.folder / name).read_bytes()

    def _half(self, name: str) -> int:
        return len(self._data(name)) // 2

    def _times_asked(self) -> int:
        return self.site.requests.count(self.path)

    def _first_half(self, name: str) -> int | None:
        """Where the first answer breaks off; later ones do not."""
        return self._half(name) if self._times_asked() == 1 else None

    def _send_part(
        self,
        name: str,
        *,
        ranges: bool = True,
        stop_after: int | None = None,
        then_wait: bool = False,
        promised: int = 0,
        shift: int = 0,
        etag: str = '"constant"',
    ) -> None:
        """The file from the byte that is asked for, breaking off after some bytes; `promised` is by how much the
        length is wrong, `shift` by how much the part is, of any but the first."""
        data = self._data(name)
        begin = int(self.headers["Range"].removeprefix("bytes=").partition("-")[0]) if ranges else 0
        if self.headers.get("If-Range") not in (None, etag):
            begin, ranges = 0, False
        if begin >= len(data):
            self._send(416, b"", Content_Range=f"bytes */{len(data)}")
            return
        begin -= min(shift, begin)
        whole = len(data) + promised
        self.send_response(206 if ranges else 200)
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Content-Length", str(whole - begin))
        self.send_header("ETag", etag)
        if ranges:
            self.send_header("Content-Range", f"bytes {begin}-{whole - 1}/{whole}")
        self.end_headers()
        self.wfile.write(data[begin:][:stop_after])
        self.wfile.flush()
        if then_wait and stop_after is not None:
            self.site.over.wait()
        self.close_connection = True

    def _send_chunks(self, name: str, stop_after: int | None = None, hold_after: int | None = None) -> None:
        """Without a length; one that breaks off does ranges."""
        data = self._data(name)
        begin = int(self.headers["Range"].removeprefix("bytes=").partition("-")[0])
        if begin and self._times_asked() > 1:
            self._send_part(name)
            return
        self.send_response(200)
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.send_header("ETag", '"constant"')
        self.end_headers()
        for place in range(0, stop_after or len(data), 10_000):
            if place == hold_after:
                self.site.released.wait()
            piece = data[place : min(place + 10_000, stop_after or len(data))]
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        if stop_after is None:
            self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()
        self.close_connection = True

    def _trickle(self, name: str) -> None:
        data = self._data(name)
        self._begin(len(data))
        for byte in data:
            if self.site.over.wait(0.1):
                return
            self.wfile.write(bytes([byte]))

    def _begin(self, length: int) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Content-Length", str(length))
        self.end_headers()

    def _send_half(self, name: str, then_wait: bool) -> None:
        data = (self.site.folder / name).read_bytes()
        self._begin(len(data))
        self.wfile.write(data[: len(data) // 2])
        self.wfile.flush()
        if then_wait:
            self.site.over.wait()
        self.close_connection = True

    def _send_slowly(self, name: str) -> None:
        data = (self.site.folder / name).read_bytes()
        self._begin(len(data))
        for begin in range(0, len(data), 1_600):
            self.wfile.write(data[begin : begin + 1_600])
            time.sleep(0.05)

    def _redirect(self, target: str) -> None:
        self._send(302, b"", Location=target)
