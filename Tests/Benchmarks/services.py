"""AudioEngine and Router as processes of a run, what they tell of themselves, and a listener to them."""

import base64
import contextlib
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import harness


@dataclass
class Service:
    """A running process with an HTTP address."""

    pid: int
    port: int

    def request(self, method, path, **body):
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}", method=method, data=json.dumps(body).encode() if body else None,
            headers={"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.read().decode()

    def request_all(self, posts, at_once=16):
        """Many POSTs, (path, body) each."""
        with ThreadPoolExecutor(at_once) as pool:
            list(pool.map(lambda post: self.request("POST", post[0], **post[1]), posts))

    def metrics(self):
        """Those without labels, by what follows antiphon_engine_."""
        found = re.findall(r"^antiphon_engine_(\w+) (\S+)$", self.request("GET", "/metrics"), re.MULTILINE)
        return {name: float(value) for name, value in found}

    def wait_produced(self):
        """Until no track is being produced: what follows has the machine for itself, and finds them in the cache."""
        harness.wait_until("the end of production", lambda: self.metrics()["workers_busy"] == 0, 180)


@contextlib.contextmanager
def engine(bench, media_root, *flags, binaries=None):
    path, port = bench.directory / "engine.sock", harness.free_port()
    program = binaries / "AudioEngine" if binaries else bench.binary("AudioEngine")
    command = [program, "--socket", path, "--listen", f"127.0.0.1:{port}", "--media-root",
               media_root, *flags]
    with open(bench.directory / "engine.log", "w") as log, harness.process(*command, stderr=log) as child:
        harness.wait_until("the engine's readiness", lambda: harness.is_ready(port))
        yield Service(child.pid, port)
    path.unlink(missing_ok=True)


@contextlib.contextmanager
def antiphon(bench, media_root, *flags, router_flags=()):
    """Both processes: (engine, router)."""
    port = harness.free_port()
    command = [bench.binary("Router"), "--engine-socket", bench.directory / "engine.sock", "--listen",
               f"127.0.0.1:{port}", "--state", bench.directory / f"state-{port}", *router_flags]
    with (engine(bench, media_root, *flags) as sound, open(bench.directory / "router.log", "w") as log,
          harness.process(*command, stderr=log) as child):
        harness.wait_until("the router's readiness", lambda: harness.is_ready(port))
        yield sound, Service(child.pid, port)


@contextlib.contextmanager
def cluster(bench, media_root, count, *flags, router_flags=()):
    """So many engines and a Router at a NATS server of their own: (engines, router, server)."""
    tools = harness.ROOT / ".build/tools/usr"
    program = shutil.which("nats-server", path=os.pathsep.join([os.environ["PATH"], f"{tools}/sbin", f"{tools}/bin"]))
    if not program:
        raise harness.Failure("nats-server is missing: deploy/test unpacks it")
    port = harness.free_port()
    meeting = ["--nats", f"nats://127.0.0.1:{port}"]
    with contextlib.ExitStack() as stack:
        def begin(name, *command):
            log = stack.enter_context(open(bench.directory / f"{name}.log", "w"))
            return stack.enter_context(harness.process(*command, stderr=log)).pid

        def start(name, binary, *arguments):
            address = harness.free_port()
            pid = begin(name, bench.binary(binary), *meeting, "--listen", f"127.0.0.1:{address}", *arguments)
            return Service(pid, address)

        store = bench.directory / f"jetstream-{port}"
        server = Service(begin("nats", program, "-a", "127.0.0.1", "-p", port, "-js", "-sd", store), port)
        engines = [start(f"engine{number}", "AudioEngine", "--media-root", media_root, *flags) for number in range(count)]
        router = start("router", "Router", "--state", bench.directory / f"state-{port}", *router_flags)
        harness.wait_until("the router's readiness", lambda: harness.is_ready(router.port))
        connected = f"antiphon_router_engines_connected {count}"
        harness.wait_until("all engines", lambda: connected in router.request("GET", "/metrics"))
        yield engines, router, server


class PauseWatch:
    """The control thread, in a process of its own."""

    def __init__(self, bench):
        self._process = subprocess.Popen([bench.program("pause-watch")], stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.communicate()

    def worst_us(self):
        """The longest pause of the machine since the last call."""
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return float(self._process.stdout.readline())


class Listener:
    """A WebSocket client of one session that waits in `recv`, so that it adds next to nothing."""

    def __init__(self, router, session):
        self._socket = socket.create_connection(("127.0.0.1", router.port), timeout=60)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = b""
        key = base64.b64encode(os.urandom(16)).decode()
        self._socket.sendall(
            f"GET /ws?session={session}&buffer_ms=0 HTTP/1.1\r\nHost: 127.0.0.1:{router.port}\r\n"
            f"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n"
            "\r\n".encode())
        while b"\r\n\r\n" not in self._buffer:
            self._receive()
        answer, _, self._buffer = self._buffer.partition(b"\r\n\r\n")
        if not answer.startswith(b"HTTP/1.1 101"):
            raise harness.Failure(f"not upgraded: {answer[:200]!r}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._socket.close()

    def send(self, kind, **fields):
        """Sends a command; when that was, in seconds."""
        text = json.dumps({"type": kind, **fields}).encode()
        size = bytes([0x80 | len(text)]) if len(text) < 126 else b"\xfe" + struct.pack(">H", len(text))
        asked = time.monotonic()
        self._socket.sendall(b"\x81" + size + b"\0\0\0\0" + text)  # a zero mask leaves the text as it is
        return asked

    def wait(self, kind):
        """(when it came, the event), or (when it came, None) for a kind of "packet"; what comes before is passed over."""
        while True:
            opcode, payload = self._frame()
            arrived = time.monotonic()
            if opcode == 2 and kind == "packet":
                return arrived, None
            event = json.loads(payload) if opcode == 1 else {}
            if event.get("type") == kind:
                return arrived, event
            if event.get("type") == "error":
                raise harness.Failure(f"instead of {kind}: {event}")

    def _frame(self):
        head = self._take(2)
        size = head[1] & 0x7F
        if size == 126:
            size = int.from_bytes(self._take(2), "big")
        elif size == 127:
            size = int.from_bytes(self._take(8), "big")
        return head[0] & 0x0F, self._take(size)

    def _take(self, count):
        while len(self._buffer) < count:
            self._receive()
        taken, self._buffer = self._buffer[:count], self._buffer[count:]
        return taken

    def _receive(self):
        received = self._socket.recv(65536)
        if not received:
            raise harness.Failure("the router closed the connection")
        self._buffer += received
