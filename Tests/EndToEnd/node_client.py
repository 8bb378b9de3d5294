"""antiphon-client for Node, installed as npm would, and a bot made with it in a process of its own."""

import asyncio
import itertools
import json
import shutil
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from antiphon_client import AntiphonError

from hearing import Hearing
from inbox import PATIENCE_SECONDS, Event
from processes import ROOT

PACKAGE = ROOT / "deploy" / "clients" / "node"

#: Where Debian's node-ws is.
WS = Path("/usr/share/nodejs/ws")

#: A packet of 450 kbit/s in hexadecimal, or the longest event, is far below it.
LINE_LIMIT_BYTES = 4 * 1024 * 1024


def install(folder: Path) -> Path:
    """A folder in which `import 'antiphon-client'` works; the package's own folder is beside."""
    modules = folder / "node_modules"
    shutil.copytree(PACKAGE, modules / "antiphon-client", ignore=shutil.ignore_patterns("node_modules"))
    (modules / "ws").symlink_to(WS)
    shutil.copy(Path(__file__).with_name("node_bot.mjs"), folder)
    return folder


class NodeBot(Hearing):
    """The bot's process: its methods are asked by their names, and what it hears and is told is kept."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        super().__init__()
        self.events: list[Event] = []
        self.connections: list[Event] = []
        self.has_ended = False
        self._process = process
        self._numbers = itertools.count(1)
        self._answers: dict[int, asyncio.Future[Event]] = {}

    def begin(self, method: str, *parameters: Any) -> asyncio.Future[Event]:
        """Asks, and does not wait for the answer."""
        number = next(self._numbers)
        self._answers[number] = asyncio.get_running_loop().create_future()
        line = json.dumps({"id": number, "method": method, "parameters": parameters})
        self._process.stdin.write(line.encode() + b"\n")
        return self._answers[number]

    async def ask(self, method: str, *parameters: Any, seconds: float = 4 * PATIENCE_SECONDS) -> Any:
        """The answer; raises AntiphonError where it is an error."""
        return given(await asyncio.wait_for(self.begin(method, *parameters), seconds), method)

    async def state(self) -> Event:
        return await self.ask("state")

    async def wait_state(self, what: str, done, seconds: float = 4 * PATIENCE_SECONDS) -> Event:
        deadline = asyncio.get_running_loop().time() + seconds
        while not done(state := await self.state()):
            assert asyncio.get_running_loop().time() < deadline, f"no {what} in {seconds} s: {state}"
            await asyncio.sleep(0.02)
        return state

    async def read(self) -> None:
        while line := await self._process.stdout.readline():
            message = json.loads(line)
            if "frame" in message:
                self.heard.append(bytes.fromhex(message["frame"]))
            elif "id" in message:
                self._answers.pop(message["id"]).set_result(message)
            elif "connection" in message:
                self.connections.append(message["connection"])
            elif "event" in message:
                self.events.append(message["event"])
            else:
                self.has_ended = True
        for waiting in self._answers.values():
            waiting.set_exception(AssertionError("the bot's process has ended"))


def given(answer: Event, what: str) -> Any:
    if request_error := answer.get("requestError"):
        assert request_error["name"] == "AntiphonError", f"{what}: {request_error}"
        raise AntiphonError(request_error["code"], request_error["message"], request_error["hint"])
    return answer["result"]


@asynccontextmanager
async def node_bot(folder: Path, url: str, session: str, **options: Any):
    """Starts a bot; its session is not started yet."""
    process = await asyncio.create_subprocess_exec(
        "node",
        "node_bot.mjs",
        url,
        session,
        json.dumps(options),
        cwd=folder,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=LINE_LIMIT_BYTES,
    )
    bot = NodeBot(process)
    reading = asyncio.create_task(bot.read())
    try:
        yield bot
        assert process.returncode is None, f"the bot's process has ended with {process.returncode}"
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        await asyncio.gather(reading, return_exceptions=True)
