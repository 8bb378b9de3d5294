"""Several engines and Routers that meet at a real nats-server."""

import asyncio
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterable
from contextlib import AsyncExitStack
from itertools import pairwise
from pathlib import Path

import numpy as np

from client import Listener, listen, request
from inbox import Packet
from media import Clip
from network import Network
from opus import decode
from processes import PATIENCE_SECONDS, Server, free_port


#: PyPI's nats-server, which keeps replicas equal. Debian 12's does not.
CLUSTER_PROGRAM = str(Path(sys.executable).parent / "nats-server")


class NATSServer:
    """One nats-server on this machine, which can be killed and started again at the same port."""

    def __init__(self, folder: Path, *, jetstream: bool = True, name: str = "nats") -> None:
        self.host = "127.0.0.1"
        self.port, self._route_port = free_port(), free_port()
        self._name = name
        self._store = folder / f"{name}-jetstream"
        self._options = ["-js", "-sd", str(self._store)] if jetstream else []
        self._program = shutil.which("nats-server")
        self.log = folder / f"{name}.log"
        self._process: subprocess.Popen | None = None

    @property
    def _route(self) -> str:
        return f"nats://127.0.0.1:{self._route_port}"

    @staticmethod
    def cluster(folder: Path, count: int) -> "list[NATSServer]":
        """Servers that are one cluster, each with JetStream."""
        nodes = [NATSServer(folder, name=f"nats-{number}") for number in range(count)]
        routes = ",".join(node._route for node in nodes)
        for node in nodes:
            node._program = CLUSTER_PROGRAM
            node._options += ["-n", node._name, "--cluster_name", "antiphon", "--cluster", node._route]
            node._options += ["--routes", routes]
        return nodes

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    def start(self) -> None:
        assert self._program, "nats-server is missing: deploy/test unpacks it"
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [self._program, "-a", self.host, "-p", str(self.port), *self._options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.02)
        raise AssertionError(f"nats-server does not listen:\n{self.log.read_text()}")

    def lose(self) -> None:
        """Takes away what JetStream has, while it is stopped."""
        shutil.rmtree(self._store)

    def kill(self) -> None:
        if self._process:
            self._process.kill()
            self._process.wait()
            self._process = None


class Cluster:
    """NATS servers, engines and Routers, in a folder of their own."""

    def __init__(
        self,
        folder: Path,
        media: Path,
        *,
        engines: int = 3,
        routers: int = 1,
        nats: int = 1,
        jetstream: bool = True,
        engine_options: tuple[str, ...] = (),
        router_options: tuple[str, ...] = (),
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.nodes = NATSServer.cluster(folder, nats) if nats > 1 else [NATSServer(folder, jetstream=jetstream)]
        meeting = ["--nats", ",".join(node.url for node in self.nodes)]
        playing = ["--media-root", str(media), "--yt-dlp-python", sys.executable, *engine_options]
        self.engines = [
            Server("AudioEngine", [*meeting, *playing], folder / f"engine{number}.log") for number in range(engines)
        ]
        self.routers = [
            Server(
                "Router",
                [*meeting, "--state", str(folder / f"state{number}"), *router_options],
                folder / f"router{number}.log",
            )
            for number in range(routers)
        ]

    @property
    def nats(self) -> NATSServer:
        """The first NATS server."""
        return self.nodes[0]

    @property
    def router(self) -> Server:
        """The first Router."""
        return self.routers[0]

    def move(self, server: Server, apart: Network) -> None:
        """Has an engine or a Router run in a network of its own, before it is started."""
        server.host, server.runner = apart.host, apart.runner
        server.arguments = [text.replace("//127.0.0.1:", f"//{apart.gateway}:") for text in server.arguments]
        for node in self.nodes:
            node.host = "0.0.0.0"
        for router in self.routers:
            router.host = router.host if router is server else apart.gateway
        for each in {server, *self.routers}:
            each.arguments.append("--anonymous")

    def __enter__(self) -> "Cluster":
        try:
            for node in self.nodes:
                node.start()
            for server in [*self.engines, *self.routers]:
                server.start()
            for router in self.routers:
                self.wait_attached(router)
        except BaseException:
            self.close()
            raise
        return self

    def wait_attached(self, router: Server | None = None) -> None:
        """Waits until a Router, or the first, has all engines."""
        router = router or self.router
        wait_metric(router, "antiphon_router_engines_connected", len(self.engines))

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        for server in [*self.routers, *self.engines]:
            server.kill()
            Server.all.remove(server)
        for node in self.nodes:
            node.kill()


async def sessions_of(engine: Server) -> set[str]:
    """What an engine plays."""
    answer = await request("GET", f"{engine.url}/sessions")
    return {session["session_id"] for session in answer.body["sessions"]}


async def play_all(
    router: Server, clips: dict[str, Clip], stack: AsyncExitStack, packets: int = 25
) -> dict[str, Listener]:
    """Plays each session its clip, until its listener has had so many packets."""
    listeners = {name: await stack.enter_async_context(listen(router.url, name)) for name in clips}
    await asyncio.gather(*(listener.play(clips[name].url) for name, listener in listeners.items()))
    await asyncio.gather(*(listener.wait_packets(packets) for listener in listeners.values()))
    return listeners


def metric(router: Server, name: str) -> float:
    """What a Router's metrics say."""
    with urllib.request.urlopen(f"{router.url}/metrics", timeout=5) as response:
        lines = response.read().decode().splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith(f"{name} "))


def wait_metric(router: Server, name: str, value: float) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    found = None
    while time.monotonic() < deadline:
        if (found := metric(router, name)) == value:
            return
        time.sleep(0.02)
    raise AssertionError(f"{name} is {found}, not {value}:\n{router.tail()}")


def gap_ms(packets: list[Packet]) -> float:
    """The longest silence between two packets that arrived one after the other."""
    return max(after.arrived_ns - before.arrived_ns for before, after in pairwise(packets)) / 1e6


def assert_own_tone(listener: Listener, frequency: float, packets: Iterable[Packet]) -> None:
    """All that was heard, in pieces of 200 ms, is the session's own tone, or silence where it broke off."""
    sound = decode(packet.audio for packet in packets)[:, 0]
    piece = 9_600
    window = np.hanning(piece)
    spectra = [np.abs(np.fft.rfft(sound[at : at + piece] * window)) for at in range(piece, len(sound) - piece, piece)]
    heard = [float(np.argmax(spectrum)) * 48_000 / piece for spectrum in spectra if np.max(spectrum) > 1]
    wrong = [at for at in heard if abs(at - frequency) > 10]
    assert heard and not wrong, f"{listener.session} hears {wrong[:5]} Hz, and its own is {frequency} Hz"
