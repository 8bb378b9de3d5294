"""Somebody who hears a tone and asks small things while a stranger does their worst, and must notice none of it.

Everything is measured twice: alone, which is the baseline, and beside the stranger.
"""

import asyncio
import os
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import aiohttp

from analysis import assert_unbroken_tone
from client import Listener, bearer, listen
from figures import Figures, Footprint, Others
from inbox import assert_unbroken
from media import OGG_OPUS, MediaFolder, tone_clip
from opus import FRAME, decode
from processes import Antiphon
from signals import AMPLITUDE
from tokens import Mint

TONE = tone_clip(523, 120, OGG_OPUS)

#: What the bystander hears and asks in; the stranger's tokens are for `a-*`.
SESSION = "b-tone"

BASELINE_SECONDS = 0.7
#: How often the bystander asks for something on each of its ways.
ASKING_SECONDS = 0.2

#: The promises.
MORE_GAP_MILLISECONDS = 100
ANSWER_SECONDS = 1.0
ROUTER_MEBIBYTES = 150
ENGINE_MEBIBYTES = 400

#: Above the engine's pacer, so that no thread of the engine's is taken for a pause of the machine.
PRIORITY = 20

#: After this an answer no longer comes: it is counted as having taken so long.
LOST_SECONDS = 8.0


class Pauses:
    """When this process could not run: the machine stood still, which is nobody's fault and is taken off."""

    TICK_SECONDS = 0.005

    def __init__(self) -> None:
        self._pauses: list[tuple[float, float]] = []

    async def watch(self) -> None:
        while True:
            due = time.monotonic() + self.TICK_SECONDS
            await asyncio.sleep(self.TICK_SECONDS)
            if (now := time.monotonic()) - due > self.TICK_SECONDS:
                self._pauses.append((due, now))

    def within(self, begin: float, end: float) -> float:
        """The seconds of this span in which nothing could be measured."""
        return sum(max(0.0, min(end, last) - max(begin, first)) for first, last in self._pauses)


@dataclass(frozen=True)
class Asked:
    """One question: when it was asked and answered."""

    way: str
    begun: float
    ended: float
    is_answered: bool = True


class Bystander:
    """A session that plays, and somebody who listens to it, asks for its state and reads its queue."""

    def __init__(self, antiphon: Antiphon, token: str, listener: Listener, http: aiohttp.ClientSession) -> None:
        self.antiphon = antiphon
        self.token = token
        self.listener = listener
        self.figures = Figures()
        self.router = Footprint(antiphon.router.pid)
        self.engine = Footprint(antiphon.engine.pid)
        self._http = http
        self._pauses = Pauses()
        self._asked: list[Asked] = []
        self._asking: set[asyncio.Task] = set()
        #: The seconds that an answer may take, where they are others than all others'.
        self._bounds: dict[str, float] = {}
        self._others = Others(antiphon)
        #: When each of the stranger's acts began, oldest first.
        self._acts: list[tuple[float, str]] = []
        self._begun = self._since = self._until = 0.0
        self._slowness = 1.0

    # MARK: What it does all the time

    async def watch(self) -> None:
        await self._pauses.watch()

    async def ask_on_and_on(self) -> None:
        """Asks at fixed times, whether or not the last answer has come."""
        while True:
            for way, ask in (("status", self._status), ("queue over REST", self._queue)):
                self._begin(self._timed(way, ask))
            await asyncio.sleep(ASKING_SECONDS)

    def _begin(self, work: Coroutine) -> None:
        task = asyncio.create_task(work)
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)

    async def _status(self) -> None:
        await self.listener.command("status")

    async def _queue(self) -> None:
        await self.get(f"/api/v1/sessions/{SESSION}/queue")

    async def get(self, path: str) -> Any:
        """A GET of the Router's with the bystander's token, over a connection that is kept."""
        return await self._request("GET", path, None)

    async def post(self, path: str, body: Any) -> Any:
        return await self._request("POST", path, body)

    async def _request(self, method: str, path: str, body: Any) -> Any:
        url = self.antiphon.router.url + path
        async with self._http.request(method, url, json=body, headers=bearer(self.token)) as response:
            answer = await response.json()
            assert response.status in (200, 202), f"{method} {path}: {response.status} {answer}"
            return answer

    async def _timed(self, way: str, ask: Callable[[], Coroutine]) -> Asked:
        begun = time.monotonic()
        is_answered = True
        try:
            async with asyncio.timeout(LOST_SECONDS):
                await ask()
        except (TimeoutError, AssertionError, aiohttp.ClientError):
            # The bystander's own end cancels what it still waits for, which is no answer that was lost.
            is_answered = False
        asked = Asked(way, begun, time.monotonic(), is_answered)
        self._asked.append(asked)
        return asked

    # MARK: Measuring

    async def take(self, way: str, ask: Callable[[], Coroutine], at_most: float = ANSWER_SECONDS) -> None:
        """Asks once more for something, which is held to its time."""
        self._bounds[way] = at_most
        await self._timed(way, ask)

    async def baseline(self) -> None:
        """Hears itself alone for a while."""
        self._begun = time.monotonic()
        await asyncio.sleep(BASELINE_SECONDS)
        self._since = time.monotonic()
        self.router.reset()
        self.engine.reset()
        self._others.reset()

    def beside(self, act: str) -> None:
        """From now on the stranger does this: what is worst is told with what it was beside."""
        self._acts.append((time.monotonic(), act))

    def _act_at(self, moment: float) -> str:
        return next((f" (beside {act})" for begun, act in reversed(self._acts) if begun <= moment), "")

    async def settle(self) -> None:
        """Listens on for a moment: what goes wrong at the last is heard a moment later."""
        await asyncio.sleep(0.3)
        self._until = time.monotonic()
        self._slowness = self._others.slowness()
        while self._asking and time.monotonic() - self._until < LOST_SECONDS:
            await asyncio.sleep(0.02)

    def _seconds(self, asked: Asked) -> float:
        return asked.ended - asked.begun - self._pauses.within(asked.begun, asked.ended)

    def _largest_gap(self, begin: float, end: float) -> tuple[float, float]:
        """In milliseconds, without the machine's own pauses, and when it ended. The end counts as a packet: silence is
        a gap too."""
        packets = [packet.arrived_ns / 1e9 for packet in self.listener.packets()]
        times = [begin, *(moment for moment in packets if begin <= moment <= end), end]
        return max((1_000 * (last - first - self._pauses.within(first, last)), last) for first, last in pairwise(times))

    def hold_promises(self) -> None:
        """What it has heard, and what it was answered in what time."""
        hold = self.figures.hold
        alone, _ = self._largest_gap(self._begun, self._since)
        hold("largest gap alone, ms", alone)
        beside, when = self._largest_gap(self._since, self._until)
        hold("the machine was slower by others, times", self._slowness)
        more = MORE_GAP_MILLISECONDS * self._slowness
        hold(f"largest gap beside the stranger, ms{self._act_at(when)}", beside, at_most=alone + more)
        for way in sorted({asked.way for asked in self._asked}):
            during = [asked for asked in self._asked if asked.way == way and asked.ended >= self._since]
            bound = self._bounds.get(way, ANSWER_SECONDS)
            slowest, when = max(((self._seconds(asked), asked.begun) for asked in during), default=(0, 0))
            hold(f"{way}: slowest answer, s{self._act_at(when)}", slowest, at_most=bound)
            hold(f"{way}: refused or lost, of {len(during)}", sum(not each.is_answered for each in during), at_most=0)
        hold("Router's memory, MiB", self.router.peak_mebibytes(), at_most=ROUTER_MEBIBYTES)
        hold("engine's memory, MiB", self.engine.peak_mebibytes(), at_most=ENGINE_MEBIBYTES)
        hold("machine's pauses, ms", 1_000 * self._pauses.within(self._since, self._until))
        self._hold_sound()

    def _hold_sound(self) -> None:
        packets = self.listener.packets()
        with self.figures.check("packets"):
            assert_unbroken(packets, "the bystander")
        with self.figures.check("events"):
            for kind in ("dropped", "buffering", "ended", "error"):
                assert not self.listener.events(kind), f"the bystander got {self.listener.events(kind)[:3]}"
            assert self.listener.closed is None, f"the bystander was closed: {self.listener.closed}"
        with self.figures.check("tone"):
            sound = decode(packet.audio for packet in packets)[:, 0]
            assert_unbroken_tone(sound[5 * FRAME :], 523, AMPLITUDE, "the bystander")


@contextmanager
def undelayed() -> Iterator[None]:
    """Measures ahead of all ordinary work where that is allowed: a client that is late itself measures itself."""
    try:
        os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(PRIORITY))
    except OSError:
        yield
        return
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


@asynccontextmanager
async def beside(antiphon: Antiphon, mint: Mint, media: MediaFolder, *, is_judged: bool = True):
    """The bystander, whose baseline is taken; at the end all that was measured is judged, here or by the test."""
    media.path(TONE)
    token = mint.token("b-*", "control", sub="bystander")
    async with AsyncExitStack() as stack:
        stack.enter_context(undelayed())
        http = await stack.enter_async_context(aiohttp.ClientSession())
        listener = await stack.enter_async_context(listen(antiphon.router.url, SESSION, token=token))
        bystander = Bystander(antiphon, token, listener, http)
        await listener.play(TONE.url)
        await listener.wait_packets(10)
        tasks = [asyncio.create_task(work()) for work in (bystander.watch, bystander.ask_on_and_on)]
        try:
            await bystander.baseline()
            yield bystander
            tasks[1].cancel()
            await bystander.settle()
        finally:
            for task in tasks:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
    bystander.hold_promises()
    if is_judged:
        bystander.figures.judge()
