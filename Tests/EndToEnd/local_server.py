"""An HTTP server on loopback, for tests that need one that behaves, or one that does not."""

import ssl
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """A client that hangs up over a certificate is none."""
        if not isinstance(sys.exception(), ssl.SSLError):
            super().handle_error(*_)


class LocalServer:
    """Serves from `with` to its end; each request is a thread with `handler`, which finds this as `site`."""

    def __init__(
        self,
        handler: type["LocalHandler"],
        address: str = "127.0.0.1",
        tls: ssl.SSLContext | None = None,
        port: int = 0,
    ) -> None:
        self.requests: list[str] = []
        #: Set when it stops: what waits on purpose waits for this.
        self.over = threading.Event()
        self._server = _Server((address, port), type("Handler", (handler,), {"site": self}))
        self._scheme = "https" if tls else "http"
        if tls:
            # Each connection's handshake is its own thread's, not the listening one's.
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})

    @property
    def port(self) -> int:
        return self._server.server_address[1]

    @property
    def url(self) -> str:
        return f"{self._scheme}://{self._server.server_address[0]}:{self.port}"

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class LocalHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass


class EmptyPage(LocalHandler):
    """A page of an origin of its own, for scripts."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", "0")
        self.end_headers()
