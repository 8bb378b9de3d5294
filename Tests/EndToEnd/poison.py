"""A file that kills the engine, and who starts the engine again: what a service manager and a broken codec would do."""

import ctypes
import os
import select
import signal
import threading
import time
from contextlib import contextmanager, suppress

from processes import Antiphon, Server

IN_OPEN = 0x20


class Poison:
    """Kills whatever engine opens one of the files, at the moment it does so."""

    def __init__(self, engine: Server, paths: list[os.PathLike]) -> None:
        self._engine = engine
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._events = self._libc.inotify_init1(os.O_NONBLOCK)
        assert self._events >= 0
        self._names: dict[int, str] = {}
        for path in paths:
            watch = self._libc.inotify_add_watch(self._events, os.fsencode(path), IN_OPEN)
            assert watch >= 0, os.strerror(ctypes.get_errno())
            self._names[watch] = os.path.basename(path)
        #: How many engines have opened each file.
        self.deaths = {name: 0 for name in self._names.values()}
        #: When each engine died, by `time.monotonic_ns`.
        self.moments: list[int] = []

    def watch(self, stop: threading.Event) -> None:
        last = None
        while not stop.is_set():
            if not select.select([self._events], [], [], 0.05)[0]:
                continue
            pid = self._engine.pid
            os.kill(pid, signal.SIGKILL)
            data, names = os.read(self._events, 65_536), set()
            while data:
                watch, _, _, length = (int.from_bytes(data[at : at + 4], "little") for at in (0, 4, 8, 12))
                names.add(self._names[watch])
                data = data[16 + length :]
            # What the dying engine still opens is not another death.
            if pid != last:
                self.moments.append(time.monotonic_ns())
            for name in names if pid != last else ():
                self.deaths[name] += 1
            last = pid

    def close(self) -> None:
        os.close(self._events)


def supervise(engine: Server, stop: threading.Event) -> None:
    """Starts the engine again whenever it is gone."""
    while not stop.wait(0.02):
        # One that is killed before it says that it listens is another to be started.
        with suppress(AssertionError):
            if not engine.is_running:
                engine.start()


@contextmanager
def poisoned(antiphon: Antiphon, *paths: os.PathLike):
    """While the files kill the engine."""
    stop, poison = threading.Event(), Poison(antiphon.engine, list(paths))
    threads = [
        threading.Thread(target=poison.watch, args=(stop,)),
        threading.Thread(target=supervise, args=(antiphon.engine, stop)),
    ]
    for thread in threads:
        thread.start()
    try:
        yield poison
    finally:
        stop.set()
        for thread in threads:
            thread.join()
        poison.close()
