"""Work in the background whose faults are logged, and end nothing else."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from antiphon_client import AntiphonError

_log = logging.getLogger(__name__)


async def guarded(owner: str, work: Coroutine[Any, Any, None]) -> None:
    """Does it; what goes wrong is logged as the owner's."""
    try:
        await work
    except AntiphonError as error:
        _log.warning("%s: %s", owner, error)
    except Exception:
        _log.exception("%s: a fault of the bot's", owner)


class Tasks:
    """What one owner has begun and nobody waits for."""

    def __init__(self, owner: str) -> None:
        """The owner is named in the log."""
        self._owner = owner
        self._running: set[asyncio.Task[None]] = set()

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(guarded(self._owner, work))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    def cancel(self) -> None:
        for task in list(self._running):
            task.cancel()
