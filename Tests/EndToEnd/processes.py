"""The two real processes, started and stopped as an operator would."""

import contextlib
import itertools
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BINARIES = Path(os.environ.get("ANTIPHON_BINARIES", ROOT / ".build" / "release"))

#: Of pytest-xdist; one that runs by itself is behind all of them.
_WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw11").removeprefix("gw"))
#: A thousand for each worker. Below those that the system gives clients' ends of connections, which could take a port
#: while its server is away.
_PORTS = itertools.cycle(range(20_000 + 1_000 * _WORKER, 21_000 + 1_000 * _WORKER))

#: How long a start or a stop may take on a machine that is busy with other things.
PATIENCE_SECONDS = 20.0


class Server:
    """One process with an HTTP address and a log; it can be killed and started again at the same place."""

    #: Every process that is in use now, for the report of a failed test.
    all: list["Server"] = []

    def __init__(self, name: str, arguments: list[str], log: Path, environment: dict[str, str] | None = None) -> None:
        self.name = name
        #: Where it listens, and what starts it: a program that becomes it.
        self.host, self.runner = "127.0.0.1", ()
        self.log = log
        #: Beside the tests' own.
        self.environment = environment or {}
        self.arguments = arguments
        self._process: subprocess.Popen | None = None
        #: Where `--listen` was bound; kept for the next start.
        self.address: str | None = None
        Server.all.append(self)

    @property
    def url(self) -> str:
        assert self.address, f"{self.name} was never started"
        return f"http://{self.address}"

    @property
    def pid(self) -> int:
        assert self._process
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Starts it and waits until it says where it listens."""
        assert not self.is_running
        binary = BINARIES / self.name
        assert binary.exists(), f"{binary} is missing: run `swift build -c release`, or deploy/test"
        begin = self.log.stat().st_size if self.log.exists() else 0
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*self.runner, str(binary), *self.arguments, "--listen", self.address or f"{self.host}:{free_port()}"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=os.environ | self.environment,
            )
        self.address = self._wait_for_address(begin)

    def terminate(self) -> int:
        """Asks it to stop, as Ctrl-C and systemd do; its exit status."""
        self.ask_to_stop()
        return self.wait_for_end()

    def ask_to_stop(self) -> None:
        assert self._process
        self._process.send_signal(signal.SIGTERM)

    def wait_for_end(self) -> int:
        """After it was asked to stop."""
        assert self._process
        try:
            return self._process.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"{self.name} still runs {PATIENCE_SECONDS} s after SIGTERM:\n{self.tail()}") from None

    def kill(self) -> None:
        """kill -9."""
        if self._process and self._process.poll() is None:
            self._process.kill()
        if self._process:
            self._process.wait()

    def tail(self, characters: int = 4_000) -> str:
        return self.log.read_text(errors="replace")[-characters:] if self.log.exists() else "(no log)"

    def _wait_for_address(self, begin: int) -> str:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            text = self.log.read_bytes()[begin:].decode(errors="replace")
            if found := re.search(r'listening on http://([^\s/"]+)', text):
                return found.group(1)
            if not self.is_running:
                status = self._process.returncode
                raise AssertionError(f"{self.name} ended with status {status} instead of starting:\n{self.tail()}")
            time.sleep(0.02)
        self.kill()
        raise AssertionError(f"{self.name} did not say 'listening on' in {PATIENCE_SECONDS} s:\n{self.tail()}")


class Antiphon:
    """An AudioEngine and a Router on a socket of their own, in a folder of their own."""

    def __init__(
        self,
        folder: Path,
        media: Path,
        *,
        allow: tuple[str, ...] = (),
        engine_options: tuple[str, ...] = (),
        router_options: tuple[str, ...] = (),
        router: bool = True,
    ) -> None:
        # Not below pytest's folder: a Unix socket's path has at most 107 characters.
        self._socket_folder = tempfile.mkdtemp(prefix="antiphon-")
        self.socket = f"{self._socket_folder}/engine.sock"
        allowed = [option for network in allow for option in ("--allow-network", network)]
        folder.mkdir(parents=True, exist_ok=True)
        self.engine = Server(
            "AudioEngine",
            # The tests' own virtual environment holds yt-dlp; an option given later takes its place.
            ["--socket", self.socket, "--media-root", str(media), "--yt-dlp-python", sys.executable]
            + [*allowed, *engine_options],
            folder / "engine.log",
        )
        state = ["--state", str(folder / "state")]
        router_arguments = ["--engine-socket", self.socket, *state, *router_options]
        self.router = Server("Router", router_arguments, folder / "router.log") if router else None

    def __enter__(self) -> "Antiphon":
        try:
            self.engine.start()
            if self.router:
                self.router.start()
                wait_ready(self.router)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Leaves nothing behind, whatever state it is in."""
        servers = [server for server in (self.router, self.engine) if server]
        # Both at once, as where a machine is shut down: each takes a quarter of a second.
        stopping = [server for server in servers if server.is_running]
        for server in stopping:
            server.ask_to_stop()
        for server in servers:
            try:
                if server in stopping:
                    server.wait_for_end()
            finally:
                server.kill()
                Server.all.remove(server)
        shutil.rmtree(self._socket_folder, ignore_errors=True)


def free_port() -> int:
    """A port for a server that is to keep it through restarts."""
    while True:
        with socket.socket() as free, contextlib.suppress(OSError):
            free.bind(("127.0.0.1", next(_PORTS)))
            return free.getsockname()[1]


def wait_ready(server: Server) -> None:
    """Waits until /ready is 200."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    answer = "nothing"
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(f"{server.url}/ready", timeout=5) as response:
                assert response.status == 200
                return
        except urllib.error.HTTPError as error:
            answer = f"{error.code} {error.read().decode(errors='replace')}"
        except OSError as error:
            answer = repr(error)
        time.sleep(0.02)
    raise AssertionError(f"{server.name} is not ready after {PATIENCE_SECONDS} s; last: {answer}\n{server.tail()}")
