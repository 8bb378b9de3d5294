"""Threads of another process, held still one by one while the rest of it runs: what a hang looks like from outside."""

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

# ptrace(2), which Python has not.
_SEIZE, _INTERRUPT, _DETACH = 0x4206, 0x4207, 17
_WALL = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
_libc.ptrace.restype = ctypes.c_long


def _ptrace(request: int, thread: int) -> None:
    if _libc.ptrace(request, thread, None, None) != 0:
        raise OSError(ctypes.get_errno(), f"ptrace of {thread}: {os.strerror(ctypes.get_errno())}")


def threads(pid: int, name: str) -> list[int]:
    """The process's threads whose name begins so."""
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        # One that has just ended has no name.
        with suppress(OSError):
            if (task / "comm").read_text().startswith(name):
                found.append(int(task.name))
    return found


@contextmanager
def frozen(pid: int, name: str) -> Iterator[None]:
    """Holds the threads of that name. The process must be a child of this one, or this one be root."""
    held = []
    try:
        for thread in threads(pid, name):
            try:
                _ptrace(_SEIZE, thread)
            except PermissionError as error:
                pytest.skip(f"no other process's threads may be held here: {error}")
            held.append(thread)
            _ptrace(_INTERRUPT, thread)
            os.waitpid(thread, _WALL)
        assert held, f"process {pid} has no thread {name}"
        yield
    finally:
        for thread in held:
            _ptrace(_DETACH, thread)
