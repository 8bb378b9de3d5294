"""A real Icecast, and ffmpeg that feeds its mounts."""

import os
import shutil
import subprocess
import time
from http.client import HTTPException
from pathlib import Path
from urllib.parse import quote
from urllib.request import Request, urlopen

import aiohttp
from yarl import URL

from processes import ROOT, free_port

TOOLS = ROOT / ".build" / "tools"
PASSWORD = "hackme"
ADMIN = {"Authorization": aiohttp.encode_basic_auth("admin", PASSWORD)}
START_SECONDS = 10.0
#: What ffmpeg is told for each kind of stream, and the type that it says it has.
KINDS = {
    "mp3": ("audio/mpeg", ["-c:a", "libmp3lame", "-b:a", "128k", "-f", "mp3"]),
    "aac": ("audio/aac", ["-c:a", "aac", "-b:a", "128k", "-f", "adts"]),
    "opus": ("audio/ogg", ["-c:a", "libopus", "-b:a", "96k", "-page_duration", "20000", "-f", "ogg"]),
    "vorbis": ("audio/ogg", ["-c:a", "libvorbis", "-b:a", "112k", "-page_duration", "20000", "-f", "ogg"]),
}


class Icecast:
    """One server on a port of its own, which stays its own through restarts."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.port = free_port()
        share = TOOLS / "usr" / "share" / "icecast2"
        owner = "<changeowner><user>nobody</user><group>nogroup</group></changeowner>" if os.getuid() == 0 else ""
        self._configuration = folder / "icecast.xml"
        self._configuration.write_text(f"""<icecast>
          <limits><clients>200</clients><sources>20</sources><burst-size>65536</burst-size></limits>
          <authentication><source-password>{PASSWORD}</source-password>
            <admin-user>admin</admin-user><admin-password>{PASSWORD}</admin-password></authentication>
          <hostname>127.0.0.1</hostname>
          <listen-socket><port>{self.port}</port><bind-address>127.0.0.1</bind-address></listen-socket>
          <paths><logdir>/tmp</logdir><webroot>{share}/web</webroot><adminroot>{share}/admin</adminroot></paths>
          <logging><accesslog>-</accesslog><errorlog>-</errorlog><loglevel>2</loglevel></logging>
          <security><chroot>0</chroot>{owner}</security>
        </icecast>""")
        self._configuration.chmod(0o644)
        self._process: subprocess.Popen | None = None
        self._feeders: dict[str, subprocess.Popen] = {}
        self.url = f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Again where it crashes: it does when a connection comes before its statistics have begun."""
        end = time.monotonic() + START_SECONDS
        while True:
            if self._process is None or self._process.poll() is not None:
                self._run()
            if self._has_begun_statistics():
                return
            assert time.monotonic() < end, f"Icecast does not start: {self._folder}/icecast.log"
            time.sleep(0.05)

    def _run(self) -> None:
        program = shutil.which("icecast2") or TOOLS / "usr" / "bin" / "icecast2"
        with open(self._folder / "icecast.log", "a") as log:
            self._process = subprocess.Popen(
                [program, "-c", self._configuration], stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def _has_begun_statistics(self) -> bool:
        try:
            with urlopen(Request(f"{self.url}/admin/stats", headers=ADMIN), timeout=1) as answer:
                return b"<server_start_iso8601>" in answer.read()
        except (OSError, HTTPException):
            return False

    def kill(self) -> None:
        """With all who feed it, which end by themselves."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        for mount in list(self._feeders):
            self.silence(mount)

    def feed(self, mount: str, sound: Path, kind: str = "mp3", **more: str) -> None:
        """Plays a file round and round."""
        content_type, encoding = KINDS[kind]
        described = {"ice_name": "Test FM", "ice_genre": "Tones", "ice_public": "0"} | more
        self._feeders[mount] = subprocess.Popen(
            ["ffmpeg", "-hide_banner", "-loglevel", "error", "-re", "-stream_loop", "-1", "-i", sound]
            + ["-map", "0:a", "-map_metadata", "-1", *encoding, "-content_type", content_type]
            + [part for name, value in described.items() for part in (f"-{name}", value)]
            + [f"icecast://source:{PASSWORD}@127.0.0.1:{self.port}/{mount}"],
            stdin=subprocess.DEVNULL,
        )

    def silence(self, mount: str) -> None:
        """The source ends; the server stays, and knows the mount no more."""
        feeder = self._feeders.pop(mount)
        feeder.terminate()
        feeder.wait()

    async def announce(self, mount: str, title: str) -> None:
        """What plays now, as the mount's source client says."""
        await self._ask(f"metadata?mount=/{mount}&mode=updinfo&charset=UTF-8&song={quote(title)}")

    async def listeners(self, mount: str) -> int:
        """How many connections it has for a mount."""
        return (await self._ask(f"listclients?mount=/{mount}")).count("<ID>")

    async def _ask(self, path: str) -> str:
        address = URL(f"{self.url}/admin/{path}", encoded=True)
        async with aiohttp.ClientSession() as http, http.get(address, headers=ADMIN) as answer:
            assert answer.status == 200, await answer.text()
            return await answer.text()

    def __enter__(self) -> "Icecast":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        for mount in list(self._feeders):
            self.silence(mount)
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()
