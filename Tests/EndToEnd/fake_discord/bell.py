"""Waiting in the tests for what the bot does, without sleeping."""

import asyncio
from collections.abc import Callable
from typing import Any

from inbox import PATIENCE_SECONDS


class Bell:
    """Rung at every change; anyone who waits then looks whether what it waits for is there."""

    def __init__(self) -> None:
        self._waiters: set[asyncio.Event] = set()

    def ring(self) -> None:
        for waiter in self._waiters:
            waiter.set()

    async def wait(
        self, done: Callable[[], Any], what: str | Callable[[], str], seconds: float = PATIENCE_SECONDS
    ) -> Any:
        """Waits until `done` gives something true, and gives that. `what` says in words what was waited for."""
        rung = asyncio.Event()
        self._waiters.add(rung)
        try:
            async with asyncio.timeout(seconds):
                while not (result := done()):
                    await rung.wait()
                    rung.clear()
                return result
        except TimeoutError:
            raise AssertionError(f"no {what if isinstance(what, str) else what()} in {seconds} s") from None
        finally:
            self._waiters.discard(rung)
