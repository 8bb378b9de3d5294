"""A real HTTP server for pages: each path is a function, which can look at who asks and can wait."""

import ssl
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler

from local_server import LocalHandler, LocalServer


class Asked:
    """One request, and the ways to answer it."""

    def __init__(self, handler: BaseHTTPRequestHandler, site: "PageServer") -> None:
        self._handler = handler
        self.site = site
        self._cookies: Sequence[str] = ()
        self.path = handler.path

    @property
    def is_engine(self) -> bool:
        """Asked by the engine itself; else by yt-dlp."""
        return self._handler.headers.get("User-Agent", "").startswith("Antiphon/")

    @property
    def is_stream(self) -> bool:
        """Asked by the engine, which wants a part each time, also in the name of yt-dlp's agent."""
        return self._handler.headers.get("Range") is not None

    @property
    def header(self) -> Callable[[str], str | None]:
        return self._handler.headers.get

    def page(self, body: str, kind: str = "text/html; charset=utf-8", cookies: Sequence[str] = ()) -> None:
        self._cookies = cookies
        self.answer(200, f"<!doctype html>{body}".encode() if "html" in kind else body.encode(), kind)

    def redirect(self, target: str) -> None:
        self.answer(302, b"", Location=target)

    def answer(self, status: int, body: bytes, kind: str = "text/plain", **headers: str) -> None:
        self.begin(status, len(body), kind, **headers)
        if self._handler.command != "HEAD":
            self._handler.wfile.write(body)

    def begin(self, status: int, length: int, kind: str, **headers: str) -> None:
        self._handler.send_response(status)
        self._handler.send_header("Content-Type", kind)
        self._handler.send_header("Content-Length", str(length))
        for name, value in [*headers.items(), *(("Set-Cookie", cookie) for cookie in self._cookies)]:
            self._handler.send_header(name.replace("_", "-"), value)
        self._handler.end_headers()

    def media(self, data: bytes, *, at_most: int | None = None, kind: str = "audio/mpeg") -> None:
        """A file with ranges; of a request only the first `at_most` bytes, then the connection breaks."""
        asked = self.header("Range")
        first = int(asked.removeprefix("bytes=").partition("-")[0]) if asked else 0
        span = {"Content_Range": f"bytes {first}-{len(data) - 1}/{len(data)}"} if asked else {}
        self.begin(206 if asked else 200, len(data) - first, kind, Accept_Ranges="bytes", **span)
        self._handler.wfile.write(data[first:][:at_most])
        if at_most is not None:
            self._handler.close_connection = True

    def wait(self) -> None:
        """For as long as the site is there."""
        self.site.over.wait()


class PageServer(LocalServer):
    """Answers each path of `pages`, without its query, with that function; others are 404."""

    def __init__(self, address: str = "127.0.0.1", tls: ssl.SSLContext | None = None, port: int = 0) -> None:
        super().__init__(_Handler, address, tls, port)
        self.pages: dict[str, Callable[[Asked], None]] = {}

    def add(self, path: str, page: Callable[[Asked], None]) -> str:
        """Its URL."""
        self.pages[path] = page
        return self.url + path


class _Handler(LocalHandler):
    site: PageServer

    def do_GET(self) -> None:
        self.site.requests.append(self.path)
        asked = Asked(self, self.site)
        page = self.site.pages.get(self.path.partition("?")[0])
        try:
            page(asked) if page else asked.answer(404, b"not found")
        except ConnectionError:
            self.close_connection = True

    do_HEAD = do_GET
