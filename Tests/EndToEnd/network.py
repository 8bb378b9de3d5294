"""A network of a process's own, which can be cut off from the rest: a namespace and a pair of virtual links."""

import ctypes
import itertools
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

_NUMBERS = itertools.count()
_LIBC = ctypes.CDLL(None, use_errno=True)
_CLONE_NEWNET = 0x4000_0000


def _ip(*arguments: str) -> bool:
    return subprocess.run(["ip", *arguments], capture_output=True, text=True).returncode == 0


class Network:
    """While it is cut, nothing comes and nobody is told, as where a cable is pulled."""

    def __init__(self) -> None:
        number = next(_NUMBERS)
        # Several workers have networks at the same time.
        worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw31").removeprefix("gw"))
        self._name = f"antiphon-{worker}-{number}"
        self._link = f"an{worker}-{number}"
        #: Our address in it, and that of what runs there.
        self.gateway, self.host = (f"10.213.{worker}.{4 * number + last}" for last in (1, 2))

    @property
    def runner(self) -> tuple[str, ...]:
        """Starts a program there."""
        return ("ip", "netns", "exec", self._name)

    def cut(self) -> None:
        assert _ip("-n", self._name, "link", "set", "eth0", "down")

    def restore(self) -> None:
        assert _ip("-n", self._name, "link", "set", "eth0", "up")

    def change_address(self) -> None:
        """Takes this machine's address in it away, and gives it back."""
        for change in ("delete", "add"):
            assert _ip("address", change, f"{self.gateway}/30", "dev", self._link)

    def make(self) -> bool:
        """Whether the machine allows it."""
        inside = ("-n", self._name)
        return (
            _ip("netns", "add", self._name)
            and _ip("link", "add", self._link, "type", "veth", "peer", "name", "eth0", "netns", self._name)
            and _ip("address", "add", f"{self.gateway}/30", "dev", self._link)
            and _ip(*inside, "address", "add", f"{self.host}/30", "dev", "eth0")
            and all(_ip(*inside, "link", "set", link, "up") for link in ("lo", "eth0"))
            and _ip("link", "set", self._link, "up")
        )

    def remove(self) -> None:
        _ip("link", "delete", self._link)
        _ip("netns", "delete", self._name)


@contextmanager
def network() -> Iterator[Network | None]:
    """None where the machine does not allow it.

    It is beside a network that this thread, and what it starts, has for itself meanwhile: browsers that other tests have end
    whatever they load when the machine's own addresses change.
    """
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    try:
        if _LIBC.unshare(_CLONE_NEWNET):
            yield None
            return
        made = Network()
        try:
            yield made if _ip("link", "set", "lo", "up") and made.make() else None
        finally:
            made.remove()
            assert _LIBC.setns(home, _CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())
    finally:
        os.close(home)
