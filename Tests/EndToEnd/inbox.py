"""What a connection has received, in the order it came, and waiting for what is still to come."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

#: How long anything that must happen may take. Generous: what promises a time is measured, not waited for, and a
#: machine that others share can be many times slower for a minute.
PATIENCE_SECONDS = 60.0

Event = dict[str, Any]

#: What tells a listener that sound came late.
DELAYS = ("rebased", "buffering")

#: Where much comes, what is waited for is looked for this often at the most.
LOOK_SECONDS = 0.01


@dataclass(frozen=True)
class Packet:
    """One Opus packet as it arrived. The fields that an endpoint does not give are None."""

    audio: bytes
    session: str | None = None
    sequence: int | None = None
    due_ns: int | None = None
    position_ms: int | None = None
    arrived_ns: int = field(default_factory=time.monotonic_ns)


class Inbox:
    """Everything received on one connection: packets and events in one list, in their order."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.received: list[Packet | Event] = []
        self.closed: str | None = None
        self._news = asyncio.Event()

    async def put(self, items: list[Packet | Event]) -> None:
        self.received += items
        self._news.set()

    async def close(self, why: str) -> None:
        self.closed = self.closed or why
        self._news.set()

    def mark(self) -> int:
        """A place in the list: what is received from now on."""
        return len(self.received)

    def packets(self, since: int = 0, until: int | None = None, session: str | None = None) -> list[Packet]:
        return [
            item
            for item in self.received[since:until]
            if isinstance(item, Packet) and (session is None or item.session == session)
        ]

    def events(self, kind: str | None = None, since: int = 0, until: int | None = None) -> list[Event]:
        return [
            item
            for item in self.received[since:until]
            if isinstance(item, dict) and (kind is None or item.get("type") == kind)
        ]

    def delays(self) -> list[Event]:
        """What told it of sound that came late, as it may on a busy machine; to come late untold is a defect."""
        return [event for event in self.events() if event["type"] in DELAYS]

    def stalls(self) -> list[Event]:
        """Where its sound stopped for want of packets. In its first second a busy machine is reason enough for that."""
        return [event for event in self.events("buffering") if event["position_ms"] >= 1_000]

    def course(self, since: int = 0, session: str | None = None) -> list[str]:
        """What its track went through: the kinds of its events, without those that any moment may bring."""
        events = [event for event in self.events(since=since) if session is None or event.get("session_id") == session]
        return [event["type"] for event in events if event["type"] not in ("session", "queue", "dropped", *DELAYS)]

    def follow(self, since: int = 0) -> Callable[[], list[Packet | Event]]:
        """A function that gives what has come since it was last asked: a long list is gone through once."""
        place = since

        def news() -> list[Packet | Event]:
            nonlocal place
            items = self.received[place:]
            place += len(items)
            return items

        return news

    def index(self, event: Event) -> int:
        """Where in the list an event is."""
        return next(index for index, item in enumerate(self.received) if item is event)

    async def wait(self, done: Callable[[], Any], what: str, seconds: float = PATIENCE_SECONDS) -> Any:
        """Waits until `done` gives something true, and gives that."""

        clock = asyncio.get_running_loop().time
        looked = 0.0
        try:
            # Not `wait_for`, which in Python 3.11 forgets a cancellation that comes as it ends.
            async with asyncio.timeout(seconds):
                while not (result := done()):
                    if self.closed is not None:
                        raise AssertionError(f"{self.name} was closed ({self.closed}) while waiting for {what}; {self}")
                    self._news.clear()
                    await self._news.wait()
                    if (rest := looked + LOOK_SECONDS - clock()) > 0:
                        await asyncio.sleep(rest)
                    looked = clock()
                return result
        except TimeoutError:
            raise AssertionError(f"{self.name}: no {what} in {seconds} s; {self}") from None

    async def wait_event(self, kind: str, since: int = 0, seconds: float = PATIENCE_SECONDS, **fields: Any) -> Event:
        """The first event of a type with the given fields."""

        news, wanted = self.follow(since), {"type": kind, **fields}

        def find() -> Event | None:
            for item in news():
                if isinstance(item, dict) and all(item.get(name) == value for name, value in wanted.items()):
                    return item
            return None

        return await self.wait(find, f"event {kind} {fields or ''}", seconds)

    async def wait_packets(
        self, count: int, since: int = 0, session: str | None = None, seconds: float | None = None
    ) -> list[Packet]:
        """The first `count` packets."""

        news, found = self.follow(since), []

        def find() -> list[Packet] | None:
            found.extend(item for item in news() if isinstance(item, Packet) and session in (None, item.session))
            return found[:count] if len(found) >= count else None

        return await self.wait(find, f"{count} packets", seconds or PATIENCE_SECONDS + count * 0.02)

    def __str__(self) -> str:
        events = [
            {name: value for name, value in event.items() if name not in ("timings_ms", "session", "queue", "entries")}
            for event in self.events()[-8:]
        ]
        return f"received {len(self.packets())} packets; last events: {events}"


@asynccontextmanager
async def reading(read: Coroutine[Any, Any, None]):
    """Reads in the background until the end; what went wrong in that is raised there."""
    task = asyncio.create_task(read)
    try:
        yield
    finally:
        task.cancel()
        (result,) = await asyncio.gather(task, return_exceptions=True)
        if isinstance(result, Exception):
            raise result


def assert_unbroken(packets: list[Packet], what: str, *, across_rebase: bool = True) -> None:
    """No packet is missing, doubled or out of order: by sequence, position and due time.

    The due time may jump where the machine stood still and the engine restarted its schedule; the sound may not.
    """
    assert packets, f"{what}: no packets at all"
    for before, after in pairwise(packets):
        at = f"{what}: after packet {before.sequence} at {before.position_ms} ms"
        assert after.sequence == (before.sequence + 1) % 2**32, f"{at} came packet {after.sequence}"
        assert after.position_ms - before.position_ms == 20, f"{at} came one at {after.position_ms} ms"
        step = (after.due_ns - before.due_ns) / 1e6
        assert step >= 19.999, f"{at} came one due {step} ms later"
        if not across_rebase:
            assert step <= 20.001, f"{at} came one due {step} ms later"
