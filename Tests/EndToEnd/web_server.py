"""A real HTTP server for the engine to fetch from: one that is good, and one that is everything else."""

import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class WebServer:
    """Serves a folder, well and badly, by the first part of the path.

    `/files/NAME` with ranges, `/plain/NAME` without; `/missing`, `/gone` and `/broken` are errors; `/hang` never
    answers, `/stall/NAME` sends half and stops, `/cut/NAME` promises all and hangs up halfway, `/slow/NAME` sends
    32 kB a second; `/to?URL` redirects, `/round` redirects to itself.
    """

    def __init__(self, folder: Path, address: str = "127.0.0.1") -> None:
        self.folder = folder
        self.over = threading.Event()
        self.requests: list[str] = []
        handler = type("Handler", (_Handler,), {"site": self})
        self._server = ThreadingHTTPServer((address, 0), handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})

    @property
    def port(self) -> int:
        return self._server.server_address[1]

    @property
    def url(self) -> str:
        return f"http://{self._server.server_address[0]}:{self.port}"

    def __enter__(self) -> "WebServer":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    site: WebServer

    def do_GET(self) -> None:
        self.site.requests.append(self.path)
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

    def log_message(self, *_: object) -> None:
        pass

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
