"""sd_notify: both tell a service manager when they serve, that they are alive while what matters in them is, and that
they stop. The manager is a socket of the test's; test_units.py has the real systemd."""

import socket
import time
import urllib.request
from pathlib import Path

import pytest

from frozen import frozen
from processes import PATIENCE_SECONDS, Antiphon

#: What the manager waits; it is told at half of it.
WATCHDOG_SECONDS = 1.0
ALIVE, STOPPING = "WATCHDOG=1", "STOPPING=1\nSTATUS=stopping"


class Manager:
    """A service manager's ear."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(path))
        self.environment = {"NOTIFY_SOCKET": str(path), "WATCHDOG_USEC": str(int(WATCHDOG_SECONDS * 1_000_000))}

    def hear(self, seconds: float = PATIENCE_SECONDS) -> str | None:
        """What is said next; nothing where nothing is said for so long."""
        self._socket.settimeout(max(seconds, 0.001))
        try:
            return self._socket.recv(4_096).decode()
        except TimeoutError:
            return None

    def wait_for(self, message: str) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (heard := self.hear(deadline - time.monotonic())) != message:
            assert heard is not None, f"{message!r} was not said"

    def heard_in(self, seconds: float) -> list[str]:
        """Everything that is said in that time."""
        deadline = time.monotonic() + seconds
        heard = []
        while (left := deadline - time.monotonic()) > 0:
            if message := self.hear(left):
                heard.append(message)
        return heard

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def managed(tmp_path_factory, tmp_path, media):
    """Both processes, and a manager of each."""
    folder = tmp_path_factory.mktemp("notify")
    running = Antiphon(tmp_path, media.root)
    managers = {server.name: Manager(folder / server.name) for server in (running.engine, running.router)}
    for server in (running.engine, running.router):
        server.environment = managers[server.name].environment
    with running:
        yield running, managers
    for manager in managers.values():
        manager.close()


def first_words(manager: Manager) -> str:
    """READY and where; the first sign of life may come before."""
    while (heard := manager.hear()) == ALIVE:
        pass
    return heard


def get(url: str) -> int:
    with urllib.request.urlopen(url, timeout=10) as response:
        return response.status


def test_ready_alive_and_stopping(managed):
    antiphon, managers = managed
    for server, address in ((antiphon.router, f"{antiphon.router.url}/"), (antiphon.engine, antiphon.engine.url)):
        manager = managers[server.name]
        assert first_words(manager) == f"READY=1\nSTATUS=listening on {address}"
        # What was said while nobody listened is behind it; from here on it is said at half the time, and never sooner.
        while manager.hear(0):
            pass
        times = []
        for _ in range(4):
            assert manager.hear() == ALIVE
            times.append(time.monotonic())
        assert times[-1] - times[0] > 3 * WATCHDOG_SECONDS / 2 * 0.8, times
        assert server.terminate() == 0
        manager.wait_for(STOPPING)


def test_an_engine_whose_pacer_hangs_is_not_alive(managed):
    antiphon, managers = managed
    manager = managers["AudioEngine"]
    manager.wait_for(ALIVE)
    with frozen(antiphon.engine.pid, "pacer"):
        # One that was on its way.
        manager.heard_in(WATCHDOG_SECONDS)
        assert manager.heard_in(3 * WATCHDOG_SECONDS) == []
        # Everything else in it works.
        assert get(f"{antiphon.engine.url}/health") == 200
    manager.wait_for(ALIVE)


def test_a_router_whose_loop_hangs_is_not_alive(managed):
    antiphon, managers = managed
    manager = managers["Router"]
    manager.wait_for(ALIVE)
    with frozen(antiphon.router.pid, "NIO-ELT-"):
        manager.heard_in(WATCHDOG_SECONDS)
        assert manager.heard_in(3 * WATCHDOG_SECONDS) == []
    manager.wait_for(ALIVE)
    assert get(f"{antiphon.router.url}/health") == 200


def test_a_manager_that_is_gone_disturbs_nobody(tmp_path, tmp_path_factory, media):
    running = Antiphon(tmp_path, media.root)
    gone = tmp_path_factory.mktemp("gone") / "nobody"
    for server in (running.engine, running.router):
        server.environment = {"NOTIFY_SOCKET": str(gone), "WATCHDOG_USEC": "20000"}
    with running:
        assert get(f"{running.router.url}/ready") == 200
        assert running.router.terminate() == 0 and running.engine.terminate() == 0
