"""What a test has measured, each with its bound: shown whole, whatever of it holds."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from processes import Antiphon

_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Figure:
    name: str
    value: float
    at_most: float | None
    at_least: float | None

    @property
    def holds(self) -> bool:
        is_low_enough = self.at_most is None or self.value <= self.at_most
        return is_low_enough and (self.at_least is None or self.value >= self.at_least)

    def __str__(self) -> str:
        bounds = [f"at most {self.at_most:g}"] if self.at_most is not None else []
        bounds += [f"at least {self.at_least:g}"] if self.at_least is not None else []
        return f"{' ' if self.holds else '✗'} {self.name}: {self.value:.4g} {', '.join(bounds)}".rstrip()


class Figures:
    """Collects figures and what else went wrong, and judges them together."""

    def __init__(self) -> None:
        self._figures: list[Figure] = []
        self._wrong: list[str] = []

    def hold(self, name: str, value: float, *, at_most: float | None = None, at_least: float | None = None) -> None:
        self._figures.append(Figure(name, value, at_most, at_least))

    @contextmanager
    def check(self, what: str) -> Iterator[None]:
        """Keeps a failed assertion for the end."""
        try:
            yield
        except AssertionError as error:
            self._wrong.append(f"✗ {what}: {str(error)[:600]}")

    def judge(self) -> None:
        print(self)
        assert all(figure.holds for figure in self._figures) and not self._wrong, f"\n{self}"

    def __str__(self) -> str:
        return "\n".join([*map(str, self._figures), *self._wrong])


class Footprint:
    """The memory that a process has had in use at once."""

    def __init__(self, pid: int) -> None:
        self._folder = Path(f"/proc/{pid}")

    def reset(self) -> None:
        """Forgets the peak: what was needed until now is not counted."""
        (self._folder / "clear_refs").write_text("5")

    def peak_mebibytes(self) -> float:
        return self._mebibytes("VmHWM")

    def mebibytes(self) -> float:
        return self._mebibytes("VmRSS")

    def cpu_seconds(self) -> float:
        """Of all its threads, since its start."""
        fields = (self._folder / "stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def _mebibytes(self, name: str) -> float:
        lines = (self._folder / "status").read_text().splitlines()
        # A process that is being taken apart has none any more.
        return next((int(line.split()[1]) / 1_024 for line in lines if line.startswith(name)), 0.0)


class Others:
    """What programs that have nothing to do with the test take of the machine meanwhile."""

    #: Where others take more than three quarters, nothing can be promised, and nothing more is allowed.
    MOST = 4.0

    def __init__(self, antiphon: Antiphon) -> None:
        self._ours = [antiphon.router.pid, antiphon.engine.pid]
        self.reset()

    def slowness(self) -> float:
        """By how much the machine has been slower than alone: twice where others had half of it."""
        cores = len(os.sched_getaffinity(0))
        return min(self.MOST, cores / max(cores - self.cores(), 0.01))

    def reset(self) -> None:
        self._begun, self._used = time.monotonic(), self._seconds()

    def cores(self) -> float:
        """How many they have kept busy since."""
        return max(0.0, (self._seconds() - self._used) / (time.monotonic() - self._begun))

    def _seconds(self) -> float:
        # user, nice, system, then idle and waiting, then interrupts.
        fields = [int(field) for field in Path("/proc/stat").read_text().split("\n")[0].split()[1:]]
        busy = (sum(fields[:3]) + sum(fields[5:7])) / _TICKS
        # This process and those that it has waited for: the stranger's.
        return busy - sum(map(_seconds_of_tree, self._ours)) - sum(os.times()[:4])


def _seconds_of_tree(pid: int) -> float:
    """The CPU time of a process, of those that it has waited for, and of those that it has."""
    folder = Path(f"/proc/{pid}")
    try:
        fields = (folder / "stat").read_text().rpartition(")")[2].split()
        children = [each for task in (folder / "task").iterdir() for each in (task / "children").read_text().split()]
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / _TICKS + sum(_seconds_of_tree(int(child)) for child in children)
