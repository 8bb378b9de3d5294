"""Which threads go before others: the pacer alone in real time, and what reads commands, renders fades and hands
packets on by its niceness. Whatever those start is ordinary."""

import asyncio
import os
import random
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from client import connect_to_engine, listen
from media import FLAC, MP3_VBR, tone_clip
from processes import Server

SONGS = (tone_clip(440, 60, FLAC), tone_clip(660, 60, MP3_VBR))
SESSIONS = 12
ROUNDS = 25
ROUND_ROBIN = 2
AHEAD = -11
#: What libdispatch gives by itself for the class of a queue's work.
DISPATCHED = range(-4, 20)

needs_priority = pytest.mark.skipif(
    subprocess.run(["chrt", "--rr", "10", "nice", "-n", "-11", "true"], capture_output=True).returncode != 0,
    reason="real-time threads are not allowed here",
)


@dataclass(frozen=True)
class Thread:
    name: str
    policy: int
    niceness: int


def threads(server: Server) -> list[Thread]:
    """Those there are now. One that is started has its starter's name until it gives itself another (prctl(2))."""
    found = []
    for task in Path(f"/proc/{server.pid}/task").iterdir():
        try:
            head, _, tail = (task / "stat").read_text().rpartition(")")
        except OSError:  # it has ended
            continue
        fields = tail.split()
        found.append(Thread(head.partition("(")[2], policy=int(fields[38]), niceness=int(fields[16])))
    return found


def are_ahead(all_threads: list[Thread]) -> list[Thread]:
    """Those of a better niceness than others of their kind."""
    better = [thread for thread in all_threads if thread.niceness < 0]
    return [thread for thread in better if "-qos" not in thread.name or thread.niceness not in DISPATCHED]


def assert_few_go_first(antiphon, routers: int) -> None:
    engine = threads(antiphon.engine)
    assert [thread.name for thread in engine if thread.policy == ROUND_ROBIN] == ["pacer"], engine
    ahead = are_ahead(engine)
    expected = ["router-reader"] * routers + ["splicer"] * os.cpu_count()
    assert sorted(thread.name for thread in ahead) == expected, engine
    assert {thread.niceness for thread in ahead} == {AHEAD}, engine
    router = threads(antiphon.router)
    assert not [thread for thread in router if thread.policy == ROUND_ROBIN], router
    ahead = are_ahead(router)
    assert [thread.niceness for thread in ahead] == [AHEAD] and ahead[0].name.startswith("NIO-ELT"), router


@needs_priority
async def test_only_the_pacer_runs_in_real_time(antiphon, media):
    media.make(*SONGS)
    dice = random.Random(22)
    names = set()
    async with listen(antiphon.router.url, "t0"), connect_to_engine(antiphon.socket) as connection:
        await connection.wait_event("hello")
        for number in range(SESSIONS):
            await connection.command(
                type="play", session_id=f"t{number}", url=SONGS[number % 2].url, start_ms=number * 1_000, loop=True
            )
        assert_few_go_first(antiphon, routers=2)
        # What follows is all begun on the pacer's thread: fades, moves to other timelines, and letting go of them.
        for _ in range(ROUNDS):
            commands = []
            for number in range(SESSIONS):
                commands.append(
                    dice.choice(
                        (
                            {"type": "seek", "position_ms": dice.randrange(58_000)},
                            {"type": "volume", "level": dice.randrange(1, 8) / 4},
                            {"type": "play", "url": dice.choice(SONGS).url, "start_ms": dice.randrange(50_000)},
                            {"type": "pause"},
                            {"type": "resume"},
                        )
                    )
                    | {"session_id": f"t{number}"}
                )
            requests = [await connection.send(**command) for command in commands]
            for _ in range(4):
                await asyncio.sleep(0.02)
                assert_few_go_first(antiphon, routers=2)
                names |= {thread.name for thread in threads(antiphon.engine)}
            for request in requests:
                await connection.wait_answer(request)
    assert names >= {"AudioEngine", "accept", "pacer", "router-reader", "splicer", "worker"}, names
    # libdispatch's: for what is let go of.
    assert [name for name in names if "qos" in name], names
