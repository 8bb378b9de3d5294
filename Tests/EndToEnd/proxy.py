"""A real HTTP proxy that tunnels, and knows names that nobody else does."""

import base64
import contextlib
import selectors
import socket
import urllib.parse

from local_server import LocalHandler, LocalServer


class Proxy(LocalServer):
    """Connects to the hosts of `names`, and to no other; `asked` has all that it was asked for, as host:port."""

    def __init__(self, names: dict[str, tuple[str, int]], user: str = "", password: str = "") -> None:
        super().__init__(_Handler)
        self.names = names
        self.asked: list[str] = []
        self.wanted = f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}" if user else None


class _Handler(LocalHandler):
    site: Proxy

    def do_CONNECT(self) -> None:
        host, _, port = self.path.rpartition(":")
        if (server := self._reach(host, int(port))) is None:
            return
        with server:
            self.send_response(200)
            self.end_headers()
            self._pass_on(server)
        self.close_connection = True

    def do_GET(self) -> None:
        """Of a client that asks for a whole address: yt-dlp does, of http."""
        url = urllib.parse.urlsplit(self.path)
        if (server := self._reach(url.hostname or "", url.port or 80)) is None:
            return
        with server:
            kept = [f"{name}: {value}" for name, value in self.headers.items() if name.lower() != "proxy-authorization"]
            target = url._replace(scheme="", netloc="").geturl() or "/"
            server.sendall("\r\n".join([f"{self.command} {target} HTTP/1.1", *kept, "", ""]).encode())
            self._pass_on(server)
        self.close_connection = True

    do_HEAD = do_GET

    def _reach(self, host: str, port: int) -> socket.socket | None:
        self.site.asked.append(f"{host}:{port}")
        if self.site.wanted not in (None, self.headers.get("Proxy-Authorization")):
            self.send_error(407)
        elif host in self.site.names:
            return socket.create_connection(self.site.names[host])
        else:
            self.send_error(502)
        return None

    def _pass_on(self, server: socket.socket) -> None:
        with selectors.DefaultSelector() as selector, contextlib.suppress(ConnectionError):
            selector.register(server, selectors.EVENT_READ, self.connection)
            selector.register(self.connection, selectors.EVENT_READ, server)
            while True:
                for key, _ in selector.select():
                    if not (data := key.fileobj.recv(65_536)):
                        return
                    key.data.sendall(data)
