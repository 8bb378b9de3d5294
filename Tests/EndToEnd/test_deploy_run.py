"""deploy/run, as a newcomer starts it (but for the building, which is done by now)."""

import asyncio
import os
import re
import signal
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from client import listen, request
from media import OGG_OPUS, tone_clip
from processes import BINARIES, ROOT, free_port

pytestmark = pytest.mark.skipif(BINARIES != ROOT / ".build" / "release", reason="deploy/run starts .build/release")


class Run:
    """A deploy/run and all that it has printed."""

    def __init__(self, process: asyncio.subprocess.Process, mark: str) -> None:
        self.process = process
        self.output = ""
        self._mark = mark
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        while line := await self.process.stdout.readline():
            self.output += line.decode(errors="replace")

    async def wait_for(self, text: str, seconds: float = 40) -> None:
        deadline = asyncio.get_running_loop().time() + seconds
        while text not in self.output:
            ended = self.process.returncode is not None and self._reading.done()
            assert not ended, f"deploy/run ended with {self.process.returncode} without {text!r}:\n{self.output}"
            assert asyncio.get_running_loop().time() < deadline, f"no {text!r} in {seconds} s:\n{self.output}"
            await asyncio.sleep(0.05)

    async def wait(self, seconds: float = 30) -> int:
        await asyncio.wait_for(asyncio.gather(self.process.wait(), self._reading), seconds)
        return self.process.returncode

    def processes(self) -> dict[int, str]:
        """Everything that this deploy/run has started, and itself."""
        found = {}
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if self._mark.encode() in (folder / "environ").read_bytes().split(b"\0"):
                    found[int(folder.name)] = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                pass
        return found


@asynccontextmanager
async def deploy_run(*arguments: str, **environment: str):
    # What it starts inherits the mark; nothing else has it.
    mark = f"ANTIPHON_DEPLOY_RUN={os.getpid()}-{os.urandom(4).hex()}"
    process = await asyncio.create_subprocess_exec(
        str(ROOT / "deploy" / "run"),
        "--no-build",
        *arguments,
        cwd="/",
        start_new_session=True,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env=os.environ | environment | dict([mark.split("=")]),
        # A shell cannot trap what is ignored as it starts, as Ctrl-C is where the tests run in the background.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    run = Run(process, mark)
    try:
        yield run
    finally:
        for pid in run.processes():
            os.kill(pid, signal.SIGKILL)
        await run.wait()


@pytest.mark.parametrize("how", ["ctrl-c", "sigterm"])
async def test_it_plays_the_samples_and_stops_clean(tmp_path, how):
    port, engine_port = free_port(), free_port()
    folders = {
        "XDG_DATA_HOME": str(tmp_path / "data"),
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "XDG_RUNTIME_DIR": str(tmp_path),
    }
    async with deploy_run("--port", str(port), "--engine-port", str(engine_port), **folders) as run:
        url = f"http://127.0.0.1:{port}"
        await run.wait_for(f"Antiphon plays at {url}/")
        page = await request("GET", url + "/")
        assert page.status == 200 and "<html" in str(page.body), page
        assert (await request("GET", url + "/ready")).body["ready"] is True
        assert (await request("GET", f"http://127.0.0.1:{engine_port}/ready")).status == 200

        samples = await request("GET", url + "/api/v1/media?path=samples")
        assert samples.status == 200 and samples.body["entries"], samples
        async with listen(url, "newcomer") as listener:
            for entry in samples.body["entries"]:
                await listener.play(entry["url"])
                await listener.wait_packets(10, since=listener.mark())

        assert len(run.processes()) >= 3, run.processes()
        if how == "ctrl-c":
            os.killpg(run.process.pid, signal.SIGINT)
        else:
            run.process.terminate()
        status = await run.wait()
        assert status in ((130, 0) if how == "ctrl-c" else (143, 0)), f"status {status}:\n{run.output}"
        assert not run.processes(), f"left behind: {run.processes()}\n{run.output}"
        for prefix in ("engine | ", "router | "):
            assert any(line.startswith(prefix) for line in run.output.splitlines()), (
                f"no line of {prefix}:\n{run.output}"
            )
        assert "\x1b" not in run.output, "colours where there is no terminal"


async def test_it_plays_a_folder_and_writes_nothing_there(tmp_path, media):
    clip = tone_clip(440, 2, OGG_OPUS)
    folder = tmp_path / "my music"
    folder.mkdir()
    (folder / "song.opus").write_bytes(media.bytes(clip))
    port, engine_port = free_port(), free_port()
    arguments = ("--media", str(folder), "--port", str(port), "--engine-port", str(engine_port))
    async with deploy_run(
        *arguments, XDG_DATA_HOME=str(tmp_path / "data"), XDG_STATE_HOME=str(tmp_path / "state")
    ) as run:
        url = f"http://127.0.0.1:{port}"
        await run.wait_for(f"Antiphon plays at {url}/")
        entries = (await request("GET", url + "/api/v1/media")).body["entries"]
        assert [entry["url"] for entry in entries] == ["media:song.opus"], entries
        assert os.listdir(folder) == ["song.opus"] and not (tmp_path / "data").exists()

        # A second one on the same port says so, and leaves the first alone.
        async with deploy_run(*arguments) as second:
            assert await second.wait() != 0
            assert f"port {port} is taken" in second.output and "--port" in second.output, second.output
        assert (await request("GET", url + "/health")).status == 200
        assert second.output.count("\n") < 6, second.output


@pytest.mark.parametrize("name", ["AudioEngine", "Router"])
async def test_when_one_dies_the_other_is_stopped(tmp_path, name):
    port, engine_port = free_port(), free_port()
    arguments = ("--media", str(tmp_path), "--port", str(port), "--engine-port", str(engine_port))
    async with deploy_run(*arguments) as run:
        await run.wait_for("Antiphon plays at")
        victim = [pid for pid, command in run.processes().items() if f"release/{name} " in command]
        assert len(victim) == 1, run.processes()
        os.kill(victim[0], signal.SIGKILL)
        status = await run.wait()
        assert status == 1, f"status {status}:\n{run.output}"
        label = {"AudioEngine": "engine", "Router": "router"}[name]
        assert f"the {label} ended by itself" in run.output, run.output
        assert not run.processes(), f"left behind: {run.processes()}"


@pytest.mark.parametrize(
    "arguments", [["--port", "0"], ["--port", "x"], ["--media", "/nonexistent"], ["--nonsense"], ["--port"]]
)
async def test_a_wrong_option_is_named(arguments):
    async with deploy_run(*arguments) as run:
        assert await run.wait() == 1
        assert arguments[0] in run.output and len(run.output.splitlines()) <= 3, run.output


async def test_help():
    async with deploy_run("--help") as run:
        assert await run.wait() == 0
        for option in ("--media DIR", "--port N", "--nats "):
            assert option in run.output, run.output


# MARK: Two of each at a nats-server


@asynccontextmanager
async def two_of_each(folder: Path):
    """Its addresses are the two Routers'; with how it was told to run."""
    first, engine, nats = free_ports(2), free_ports(2), free_port()
    arguments = ("--nats", "--port", str(first), "--engine-port", str(engine), "--nats-port", str(nats))
    folders = {"XDG_DATA_HOME": str(folder / "data"), "XDG_STATE_HOME": str(folder / "state")}
    async with deploy_run(*arguments, **folders) as run:
        urls = [f"http://127.0.0.1:{first + number}" for number in range(2)]
        await run.wait_for(f"Antiphon plays at {urls[0]}/ and {urls[1]}/", seconds=90)
        yield run, urls, arguments


def free_ports(count: int) -> int:
    """The first of so many that follow each other."""
    while True:
        ports = [free_port() for _ in range(count)]
        if ports == list(range(ports[0], ports[0] + count)):
            return ports[0]


def processes_of(run: Run, program: str) -> list[int]:
    """Its own, without their decoder processes."""
    return sorted(pid for pid, command in run.processes().items() if re.match(rf"\S*/{program} -", command))


@pytest.mark.parametrize("how", ["ctrl-c", "sigterm"])
async def test_with_nats_two_of_each_run_and_stop_clean(tmp_path, how):
    async with two_of_each(tmp_path) as (run, urls, arguments):
        for url in urls:
            assert (await request("GET", url + "/ready")).body["ready"] is True
            metrics = (await request("GET", url + "/metrics")).body
            assert "antiphon_router_engines_connected 2\n" in metrics, metrics
        samples = (await request("GET", urls[0] + "/api/v1/media?path=samples")).body["entries"]
        async with listen(urls[0], "newcomer") as listener:
            await listener.play(samples[0]["url"])
            await listener.wait_packets(10)
        # One machine's own queues are as they were.
        assert os.listdir(tmp_path / "state") == [f"antiphon-nats-{arguments[2]}"]

        async with deploy_run(*arguments) as second:
            assert await second.wait() == 1
            assert f"port {arguments[2]} is taken" in second.output, second.output

        if how == "ctrl-c":
            os.killpg(run.process.pid, signal.SIGINT)
        else:
            run.process.terminate()
        status = await run.wait()
        assert status == (130 if how == "ctrl-c" else 143), f"status {status}:\n{run.output}"
        assert not run.processes(), f"left behind: {run.processes()}\n{run.output}"
        for name in ("nats", "engine-1", "engine-2", "router-1", "router-2"):
            assert f"\n{name} | " in "\n" + run.output, f"no line of {name}:\n{run.output}"


async def test_with_nats_one_that_is_killed_stops_nobody_else(tmp_path):
    async with two_of_each(tmp_path) as (run, urls, _):
        engine, routers = processes_of(run, "AudioEngine")[0], processes_of(run, "Router")
        assert len(routers) == 2, run.processes()
        # At the same moment: neither is overlooked.
        os.kill(engine, signal.SIGKILL)
        os.kill(routers[0], signal.SIGKILL)
        await run.wait_for("the engine-1 ended by itself (status 137); the others play on")
        await run.wait_for("the router-1 ended by itself (status 137); the others play on")
        assert (await request("GET", urls[1] + "/health")).status == 200
        os.kill(routers[1], signal.SIGKILL)
        assert await run.wait() == 1
        assert "no Router is left" in run.output, run.output
        assert not run.processes(), f"left behind: {run.processes()}"


async def test_ports_that_are_the_same_are_named():
    async with deploy_run("--nats", "--port", "20500", "--engine-port", "20501") as run:
        assert await run.wait() == 1
        assert "--engine-port and --port are both 20501" in run.output, run.output
