"""A machine with a real systemd as its first process: a container over a copy-on-write view of this one's files."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from processes import ROOT

#: How long it may take to start or to stop.
PATIENCE_SECONDS = 60.0
#: Where this checkout is in the machine; it is only read there.
SOURCE = "/antiphon"


class NoMachineError(Exception):
    """What is missing here, in words."""


class Machine:
    """Has a loopback of its own and no other network, and forgets everything at its end."""

    def __init__(self, *, binaries: Path) -> None:
        # On the disk, where an overlay can be; pytest's folder may be in memory.
        self._folder = Path(tempfile.mkdtemp(prefix="antiphon-machine-", dir="/var/tmp"))
        self._root = self._folder / "root"
        self._log = self._folder / "log"
        self._binds = {str(ROOT): SOURCE, str(binaries): "/binaries"}
        self._container: subprocess.Popen | None = None
        self._leader: int | None = None

    @property
    def root(self) -> Path:
        """Its files, seen from here."""
        return self._root

    def start(self) -> None:
        """Throws NoMachineError where this machine does not let one be made."""
        if os.geteuid() != 0:
            raise NoMachineError("it needs root")
        for program in ("systemd-nspawn", "nsenter"):
            if not shutil.which(program):
                raise NoMachineError(f"it needs {program} (Debian's systemd-container)")
        for name in ("root", "upper", "work"):
            (self._folder / name).mkdir()
        layers = f"lowerdir=/,upperdir={self._folder}/upper,workdir={self._folder}/work"
        mount = ["mount", "-t", "overlay", "overlay", "-o", layers, self._root]
        mounted = subprocess.run(mount, capture_output=True, text=True)
        if mounted.returncode != 0:
            raise NoMachineError(mounted.stderr.strip())
        # Nothing that the developer's machine has enabled is started.
        options = ["--quiet", "--register=no", "--keep-unit", "--link-journal=no", "--private-network"]
        options += [f"--bind-ro={here}:{there}" for here, there in self._binds.items()]
        # A real machine's kernel has Landlock, which this systemd-nspawn does not know yet.
        options += ["--system-call-filter=landlock_create_ruleset landlock_restrict_self"]
        # The machine's own number: the developer's belongs to another journal.
        (self._root / "etc/machine-id").write_text(os.urandom(16).hex() + "\n")
        with self._log.open("wb") as log:
            self._container = subprocess.Popen(
                ["systemd-nspawn", *options, f"--machine=antiphon-{os.getpid()}", f"--directory={self._root}", "--boot"]
                + ["--console=pipe", "systemd.unit=basic.target"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self.run("systemctl", "is-active", "basic.target", check=False).stdout.strip() != "active":
            assert self._container.poll() is None, f"the machine has ended:\n{self._log.read_text(errors='replace')}"
            assert time.monotonic() < deadline, f"the machine is not up after {PATIENCE_SECONDS} s"
            time.sleep(0.1)

    def run(
        self, *command: str, check: bool = True, text: bool = True, seconds: float = 120
    ) -> subprocess.CompletedProcess:
        """Runs a command in it as root."""
        enter = [
            "nsenter",
            f"--target={self._first_process()}",
            "--mount",
            "--uts",
            "--ipc",
            "--net",
            "--pid",
            "--cgroup",
        ]
        environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}
        done = subprocess.run(
            [*enter, *command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=text,
            timeout=seconds,
            env=environment,
        )
        if check:
            assert done.returncode == 0, f"{' '.join(command)}: status {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def show(self, unit: str, name: str) -> str:
        """A property of a unit."""
        return self.run("systemctl", "show", f"--property={name}", "--value", unit).stdout.strip()

    def journal(self) -> str:
        lines = self.run("journalctl", "--quiet", "--no-pager", "--lines=60", "--unit=antiphon-*", check=False)
        return lines.stdout + lines.stderr

    def close(self) -> None:
        if self._container:
            if self._leader:
                # systemd's own "power off".
                with suppress(ProcessLookupError):
                    os.kill(self._leader, signal.SIGRTMIN + 4)
            try:
                self._container.wait(PATIENCE_SECONDS)
            except subprocess.TimeoutExpired:
                self._container.kill()
                self._container.wait()
        subprocess.run(["umount", "--lazy", self._root], check=False, capture_output=True)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _first_process(self) -> int:
        """The number that its systemd has here."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self._leader is None:
            children = Path(f"/proc/{self._container.pid}/task/{self._container.pid}/children")
            with suppress(OSError):
                # Until it is systemd it is nspawn's own.
                programs = {int(pid): Path(f"/proc/{pid}/exe").readlink().name for pid in children.read_text().split()}
                self._leader = next((pid for pid, program in programs.items() if program == "systemd"), None)
            if self._container.poll() is not None:
                raise NoMachineError(self._log.read_text(errors="replace").strip())
            assert time.monotonic() < deadline, f"no first process after {PATIENCE_SECONDS} s"
            time.sleep(0.02)
        return self._leader
