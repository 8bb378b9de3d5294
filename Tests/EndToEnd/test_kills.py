"""Each process is killed at seeded random moments while queues change, five times: what needs more is simulated
(`swift test`), and here the processes, the disk and the sockets are real."""

import asyncio
import random
import time
from dataclasses import dataclass, field, replace

import aiohttp
import pytest

from client import listen, request
from inbox import assert_unbroken
from media import OGG_OPUS, tone_clip
from processes import Antiphon, wait_ready

LONG = tone_clip(440, 300, OGG_OPUS)
KILLS = 5
SEED = 20_261_122


@pytest.fixture
def mortal(tmp_path, media):
    media.path(LONG)
    with Antiphon(tmp_path, media.root) as running:
        yield running


@dataclass
class Model:
    """A queue as it has to be. An entry is known by its title, which no other has."""

    current: str | None = None
    waiting: list[str] = field(default_factory=list)
    history: list[str] = field(default_factory=list)
    loop: str = "off"
    #: Only the set of those that wait is known.
    is_shuffled: bool = False

    def matches(self, queue: dict) -> bool:
        waiting = [entry["title"] for entry in queue["tracks"]]
        same = sorted(waiting) == sorted(self.waiting) if self.is_shuffled else waiting == self.waiting
        current = queue.get("current", {}).get("title")
        return same and (current, queue["loop"], queue["history_total"]) == (
            self.current,
            self.loop,
            len(self.history),
        )

    def leave(self) -> None:
        if self.current:
            self.history = [*self.history, self.current][-100:]
            if self.loop == "queue":
                self.waiting.append(self.current)
        self.current = None

    def after(self, kind: str, title: str, position: int) -> "Model":
        """The queue after a command on one that waits, or with a new one of that title."""
        model = replace(self, waiting=list(self.waiting), history=list(self.history), is_shuffled=False)
        match kind:
            case "add":
                model.waiting.insert(min(position, len(model.waiting)), title)
                if model.current is None:
                    model.current = model.waiting.pop(0)
            case "move":
                model.waiting.remove(title)
                model.waiting.insert(position, title)
            case "remove":
                model.waiting.remove(title)
            case "clear":
                model.waiting.clear()
            case "shuffle":
                model.is_shuffled = True
            case "loop":
                model.loop = title
            case "skip":
                model.leave()
                model.current = model.waiting.pop(0)
            case "skip_to":
                model.waiting.remove(title)
                model.leave()
                model.current = title
            case "previous":
                title = model.history.pop()
                if title in model.waiting:
                    model.waiting.remove(title)
                if model.current and model.current != title:
                    model.waiting.insert(0, model.current)
                model.current = title
        return model


class Changer:
    """Changes one session's queue over REST until the Router is gone."""

    def __init__(self, base: str, session: str, rng: random.Random) -> None:
        self.url = f"{base}/{session}"
        self.session = session
        self.rng = rng
        self.model = Model()
        self.ids: dict[str, str] = {}
        self.count = 0
        #: What the queue may be while a command has not been answered.
        self.unanswered: Model | None = None
        self.answered = 0
        self.is_done = False

    async def change(self) -> None:
        kind, title, position = self._choose()
        self.unanswered = self.model.after(kind, title, position)
        entry = self.ids.get(title, "")
        method, path, body = {
            "add": ("POST", "queue", {"url": LONG.url, "title": title, "position": position}),
            "move": ("POST", f"queue/{entry}/move", {"position": position}),
            "remove": ("DELETE", f"queue/{entry}", None),
            "clear": ("DELETE", "queue", None),
            "shuffle": ("POST", "queue/shuffle", {}),
            "loop": ("POST", "queue/loop", {"mode": title}),
            "skip": ("POST", "skip", {}),
            "skip_to": ("POST", "skip_to", {"id": entry}),
            "previous": ("POST", "previous", {}),
        }[kind]
        answer = await request(method, f"{self.url}/{path}", body)
        assert answer.status == 200, (kind, title, position, answer, self.model)
        assert self.unanswered.matches(answer.body), (kind, title, position, answer.body, self.model, self.unanswered)
        self._take(self.unanswered, answer.body)
        self.answered += 1

    async def change_until_gone(self) -> None:
        try:
            while not self.is_done:
                await self.change()
        except (aiohttp.ClientError, ConnectionError):
            pass

    async def check(self) -> None:
        """The queue is as before the command that was not answered, or as after it."""
        queue = (await request("GET", f"{self.url}/queue")).body
        found = next((model for model in (self.unanswered, self.model) if model and model.matches(queue)), None)
        assert found, f"{self.session} has {queue}, and was {self.model} or {self.unanswered}"
        self._take(found, queue)

    def _take(self, model: Model, queue: dict) -> None:
        entries = [*queue["tracks"], *([queue["current"]] if "current" in queue else [])]
        self.ids |= {entry["title"]: entry["id"] for entry in entries}
        waiting = [entry["title"] for entry in queue["tracks"]]
        self.model, self.unanswered = replace(model, waiting=waiting, is_shuffled=False), None

    def _choose(self) -> tuple[str, str, int]:
        model, rng = self.model, self.rng
        kinds = ["loop", "shuffle"] + (["add"] * 6 if len(model.waiting) < 30 else ["clear"])
        if model.waiting:
            kinds += ["move", "move", "remove", "skip", "skip_to"]
        if model.history:
            kinds.append("previous")
        kind = rng.choice(kinds)
        position = rng.randrange(len(model.waiting) + 1)
        if kind == "add":
            self.count += 1
            return kind, f"{self.session}-{self.count}", position
        if kind == "loop":
            return kind, rng.choice(("off", "track", "queue")), 0
        if kind in ("move", "remove", "skip_to"):
            return kind, rng.choice(model.waiting), min(position, len(model.waiting) - 1)
        return kind, "", 0


async def test_the_router_is_killed_at_any_moment(mortal, new_session):
    rng = random.Random(SEED)
    base = f"{mortal.router.url}/api/v1/sessions"
    changers = [Changer(base, new_session(), random.Random(rng.random())) for _ in range(3)]
    for kill in range(KILLS):
        changing = [asyncio.create_task(changer.change_until_gone()) for changer in changers]
        await asyncio.sleep(rng.uniform(0, 0.15))
        mortal.router.kill()
        await asyncio.gather(*changing)
        await asyncio.to_thread(mortal.router.start)
        await asyncio.to_thread(wait_ready, mortal.router)
        for changer in changers:
            await changer.check()
            state = (await request("GET", changer.url)).body
            engine = (await request("GET", f"{mortal.engine.url}/session/{changer.session}")).body
            if changer.model.current is None:
                assert state["state"] == "idle", (kill, state)
                continue
            # What was to play and did not reach the engine is opened now.
            if engine["state"] == state["state"] == "streaming":
                apart = abs(state["position_ms"] - engine["position_ms"])
                assert apart < 1_000, f"kill {kill}: {apart} ms apart: {state} {engine}"
    assert sum(changer.answered for changer in changers) > KILLS, "next to nothing was changed"
    for changer in changers:
        if changer.model.current:
            async with listen(mortal.router.url, changer.session) as listener:
                assert_unbroken(await listener.wait_packets(10), "after all")


async def test_the_engine_is_killed_at_any_moment(mortal, new_session):
    """What plays goes on where it was within 2 s of the engine's return, and what is paused stays so."""
    rng = random.Random(SEED + 1)
    base = f"{mortal.router.url}/api/v1/sessions"
    changer = Changer(base, new_session(), random.Random(rng.random()))
    paused, steady = new_session(), new_session()
    async with (
        listen(mortal.router.url, steady, buffer_ms=0) as player,
        listen(mortal.router.url, paused, buffer_ms=0) as pauser,
    ):
        await player.play(LONG.url, loop=True)
        await pauser.play(LONG.url, start_ms=60_000)
        await pauser.wait_packets(3)
        stood = (await pauser.command("pause"))["position_ms"]
        for kill in range(KILLS):
            await player.wait_packets(2, since=player.mark())
            changer.is_done = False
            changing = asyncio.create_task(changer.change_until_gone())
            await asyncio.sleep(rng.uniform(0, 0.15))
            mortal.engine.kill()
            await player.wait_event("engine", since=player.mark() - 1)
            last, since = player.packets()[-1].position_ms, player.mark()
            await asyncio.to_thread(mortal.engine.start)
            back = time.monotonic_ns()
            first = (await player.wait_packets(1, since=since))[0]
            seconds = (first.arrived_ns - back) / 1e9
            assert seconds <= 2, f"kill {kill}: heard {seconds:.2f} s after the engine's return"
            apart = first.position_ms - last
            assert abs(apart) <= 1_000, f"kill {kill}: it went on {apart} ms from where it was"
            changer.is_done = True
            await changing
            await changer.check()
            state = (await request("GET", f"{base}/{paused}")).body
            assert state["position_ms"] == stood and state["state"] in ("paused", "extracting"), (kill, state)
    assert changer.answered > KILLS, "next to nothing was changed"
