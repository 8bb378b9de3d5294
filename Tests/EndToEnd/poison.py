"""A file that kills the engine, and who starts the engine again: what a broken codec and a service manager would do."""

import subprocess
import threading
from contextlib import contextmanager, suppress
from pathlib import Path

from processes import Antiphon, Server


class Poison:
    """Files that kill whatever engine opens them, in the call in which it does so (poison.c)."""

    def __init__(self, folder: Path) -> None:
        library = folder / "poison.so"
        source = Path(__file__).with_name("poison.c")
        # Clang comes with Swift.
        subprocess.run(["clang", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", source, "-o", library], check=True)
        self._marks = folder / "marks"
        self._marks.mkdir()
        #: What an engine is to be started with.
        self.environment = {"LD_PRELOAD": str(library), "POISON_FOLDER": str(self._marks)}

    @contextmanager
    def in_files(self, antiphon: Antiphon, *paths: Path):
        """While they are poisoned, and it is known what they did. An engine that is gone is started again."""
        for path in paths:
            (self._marks / path.name).touch()
        stop = threading.Event()
        supervisor = threading.Thread(target=_supervise, args=(antiphon.engine, stop))
        supervisor.start()
        try:
            yield Deaths([self._marks / path.name for path in paths])
        finally:
            stop.set()
            supervisor.join()
            for path in paths:
                (self._marks / path.name).unlink()


class Deaths:
    """What the poisoned files have done."""

    def __init__(self, marks: list[Path]) -> None:
        self._marks = marks

    @property
    def counts(self) -> dict[str, int]:
        """How many engines have opened each file."""
        return {mark.name: len(_engines(mark)) for mark in self._marks}

    @property
    def moments(self) -> list[int]:
        """When each engine died, by `time.monotonic_ns`. Two of its threads may open a poisoned file at once."""
        engines: dict[str, int] = {}
        for mark in self._marks:
            for engine, moment in _engines(mark).items():
                engines[engine] = min(moment, engines.get(engine, moment))
        return sorted(engines.values())


def _engines(mark: Path) -> dict[str, int]:
    """The engines that a file has killed, by process, and when."""
    return {engine: int(moment) for engine, moment in map(str.split, mark.read_text().splitlines())}


def _supervise(engine: Server, stop: threading.Event) -> None:
    while not stop.wait(0.02):
        # One that is killed before it says that it listens is another to be started.
        with suppress(AssertionError):
            if not engine.is_running:
                engine.start()
