"""What a Linux desktop sees of a playing page: its media controls, over D-Bus (MPRIS, org.mpris.MediaPlayer2)."""

import re
import subprocess
import time

from inbox import PATIENCE_SECONDS

PLAYER = "org.mpris.MediaPlayer2.Player"


class Desktop:
    """A session bus of its own, on which Chromium offers its media controls as it does on every Linux desktop."""

    def __enter__(self) -> "Desktop":
        command = ["dbus-daemon", "--session", "--nofork", "--print-address"]
        self._bus = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.environment = {"DBUS_SESSION_BUS_ADDRESS": self._bus.stdout.readline().strip()}
        return self

    def __exit__(self, *_: object) -> None:
        self._bus.kill()
        self._bus.wait()

    def players(self) -> list[str]:
        """Who offers media controls."""
        names = self._send("org.freedesktop.DBus", "/", "org.freedesktop.DBus.ListNames")
        return re.findall(r'"(org\.mpris\.MediaPlayer2\.[^"]+)"', names)

    def press(self, player: str, method: str) -> None:
        """`PlayPause`, `Next`, `Previous`, `Stop`."""
        self._send(player, "/org/mpris/MediaPlayer2", f"{PLAYER}.{method}")

    def wait_for(self, player: str, name: str, *words: str) -> None:
        """Until a property of the player holds all these words."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            what = ("org.freedesktop.DBus.Properties.Get", f"string:{PLAYER}", f"string:{name}")
            held = self._send(player, "/org/mpris/MediaPlayer2", *what)
            if all(word in held for word in words):
                return
            assert time.monotonic() < deadline, f"{name} has not all of {words}: {held}"
            time.sleep(0.1)

    def _send(self, destination: str, path: str, *call: str) -> str:
        command = ["dbus-send", "--session", "--print-reply", f"--dest={destination}", path, *call]
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, check=True).stdout
