"""What the tests of greedy clients share: the processes, with tokens, and a stranger in a process of its own."""

import asyncio
import json
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from client import Answer, bearer, request

#: A stranger that has not ended by then is ended.
GRACE_SECONDS = 15.0


class Stranger:
    """A running greedy.py."""

    def __init__(self, act: str, process: asyncio.subprocess.Process) -> None:
        self._act = act
        self._process = process

    async def ready(self) -> int:
        """How much of it the stranger has in hand."""
        return (await self._line())["ready"]

    async def reached(self) -> dict[str, Any]:
        """What it has reached when it ends by itself."""
        what = await self._line()
        print(f"\n{self._act}: {what}")
        return what

    async def let_go(self) -> dict[str, Any]:
        """Ends one that holds something open; what it had reached."""
        self._process.stdin.close()
        return await self.reached()

    async def _line(self) -> dict[str, Any]:
        async with asyncio.timeout(GRACE_SECONDS + 60):
            line = await self._process.stdout.readline()
        assert line, f"the stranger's {self._act} ended without a word; see its errors above"
        return json.loads(line)


@asynccontextmanager
async def stranger(act: str, **arguments: Any):
    """Starts a greedy client (`greedy.py`), which ends with this at the latest."""
    script = Path(__file__).with_name("greedy.py")
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(script),
        act,
        json.dumps(arguments),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        yield Stranger(act, process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def run(act: str, **arguments: Any) -> dict[str, Any]:
    """Lets a greedy client act to its end; what it has reached."""
    async with stranger(act, **arguments) as acting:
        await acting.ready()
        return await acting.reached()


async def post(router: str, path: str, token: str, body: Any = None) -> Answer:
    """A stranger's single command, which may be refused."""
    return await request("POST", router + path, body or {}, headers=bearer(token))
