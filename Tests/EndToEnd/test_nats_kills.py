"""As many kills of engines, Routers and NATS servers, and stops and freezes of engines, as `ANTIPHON_CLUSTER_KILLS`
says, at seeded moments: nothing is played twice, no queue loses or doubles an entry, and everyone hears its own tone
again."""

import asyncio
import contextlib
import os
import random
import signal
import statistics
import time
from bisect import bisect_left
from itertools import pairwise

import aiohttp
import pytest

from client import Listener, listen, request
from cluster import Cluster, NATSServer, assert_own_tone, sessions_of
from inbox import PATIENCE_SECONDS, Packet
from media import OGG_OPUS, tone_clip
from processes import Server

KILLS = int(os.environ.get("ANTIPHON_CLUSTER_KILLS", "0"))
SEED = int(os.environ.get("ANTIPHON_SEED", "1"))
pytestmark = [
    pytest.mark.measures,
    pytest.mark.skipif(not KILLS, reason="ANTIPHON_CLUSTER_KILLS says how many"),
    pytest.mark.timeout(300 + 30 * KILLS),
]

SESSIONS = int(os.environ.get("ANTIPHON_CLUSTER_SESSIONS", "60"))
NATS_SERVERS = int(os.environ.get("ANTIPHON_NATS_SERVERS", "1"))
#: What happens, and how often of a hundred times.
KINDS = {"engine": 35, "drained": 10, "router": 35, "nats": 10, "frozen": 10}
#: Each session's own tone, in a queue of three tracks that goes round.
TONES = {f"tone{number}": 300 + 50 * number for number in range(SESSIONS)}
CLIPS = {session: tone_clip(frequency, 30, OGG_OPUS) for session, frequency in TONES.items()}
TRACKS = 3


class Follower:
    """Who listens to a session at any Router that lets it in."""

    def __init__(self, cluster: Cluster, session: str, chance: random.Random) -> None:
        self.cluster, self.session, self._chance = cluster, session, chance
        #: When each packet came.
        self._arrivals: list[int] = []
        #: What each connection has heard, until that is checked.
        self._unchecked: list[tuple[Listener, list[Packet]]] = []

    async def follow(self) -> None:
        while True:
            router = self._chance.choice(self.cluster.routers)
            # One that is refused, or broken off, comes again.
            with contextlib.suppress(aiohttp.ClientError, AssertionError, OSError):
                async with listen(router.url, self.session) as listener:
                    await self._hear(listener)
            await asyncio.sleep(0.05)

    async def _hear(self, listener: Listener) -> None:
        packets: list[Packet] = []
        mark = 0
        try:
            while not listener.closed:
                with contextlib.suppress(AssertionError):
                    await listener.wait_packets(1, since=listener.mark(), seconds=0.5)
                heard, mark = listener.packets(since=mark), listener.mark()
                packets += heard
                self._arrivals += [packet.arrived_ns for packet in heard]
                # One who hears nothing connects anew, as clients do.
                if not heard:
                    break
        finally:
            if len(packets) > 25:
                self._unchecked.append((listener, packets))

    def assert_own_tones(self) -> None:
        """Whatever was heard is the session's own. To decode it takes long: what is measured would be the decoding."""
        while self._unchecked:
            listener, packets = self._unchecked.pop()
            assert_own_tone(listener, TONES[self.session], packets)

    def silence_ms(self, since: int) -> float:
        """The longest silence from a moment on."""
        times = [since, *self._arrivals[bisect_left(self._arrivals, since) :], time.monotonic_ns()]
        return max(after - before for before, after in pairwise(times)) / 1e6


async def test_kills_at_seeded_moments(tmp_path, media):
    media.make(*CLIPS.values())
    chance = random.Random(SEED)
    silences: dict[str, list[float]] = {kind: [] for kind in KINDS}
    replicas = ("--nats-replicas", str(NATS_SERVERS))
    with Cluster(
        tmp_path, media.root, engines=3, routers=3, nats=NATS_SERVERS, router_options=replicas
    ) as cluster:
        async with asyncio.TaskGroup() as tasks:
            followers = [Follower(cluster, session, chance) for session in TONES]
            following = [tasks.create_task(follower.follow()) for follower in followers]
            await asyncio.gather(*(fill(cluster, session) for session in TONES))
            await settled(cluster)
            for number in range(KILLS):
                await asyncio.sleep(chance.uniform(0, 2))
                kind = chance.choices(list(KINDS), list(KINDS.values()))[0]
                victim = chance.choice(victims(cluster, kind))
                # A Router's listeners are anywhere.
                struck = await sessions_of(victim) if victim in cluster.engines else set(TONES)
                since = time.monotonic_ns()
                await strike(victim, kind, chance)
                await settled(cluster)
                heard = [follower.silence_ms(since) for follower in followers if follower.session in struck]
                silences[kind] += heard
                print(f"kill {number + 1}, {kind}: longest silence {max(heard, default=0):.0f} ms", flush=True)
                for follower in followers:
                    await asyncio.to_thread(follower.assert_own_tones)
            for task in following:
                task.cancel()
        for follower in followers:
            follower.assert_own_tones()
    for kind, found in silences.items():
        if len(found) > 1:
            quantiles = statistics.quantiles(found, n=100)
            print(f"seed {SEED}, {kind}: {len(found)} silences, p50 {quantiles[49]:.0f} ms, p99 {quantiles[98]:.0f} ms")


async def fill(cluster: Cluster, session: str) -> None:
    """Gives a session its queue, and has it go round."""
    path = f"{cluster.router.url}/api/v1/sessions/{session}"
    tracks = [{"url": CLIPS[session].url, "title": f"{session} {number}"} for number in range(TRACKS)]
    for part, body in (("queue", {"tracks": tracks}), ("queue/loop", {"mode": "queue"})):
        answer = await request("POST", f"{path}/{part}", body)
        while answer.status == 429:
            await asyncio.sleep(0.5)
            answer = await request("POST", f"{path}/{part}", body)
        assert answer.status == 200, answer


def victims(cluster: Cluster, kind: str) -> list[Server] | list[NATSServer]:
    return {"router": cluster.routers, "nats": cluster.nodes}.get(kind, cluster.engines)


async def strike(victim: Server | NATSServer, kind: str, chance: random.Random) -> None:
    """Kills or stops one and starts it again after a while, or freezes it for so long."""
    pause = chance.uniform(0.1, 1.5)
    if kind == "frozen":
        os.kill(victim.pid, signal.SIGSTOP)
        await asyncio.sleep(2 * pause)
        os.kill(victim.pid, signal.SIGCONT)
        return
    if kind == "drained":
        assert await asyncio.to_thread(victim.terminate) == 0, victim.tail()
    else:
        await asyncio.to_thread(victim.kill)
    await asyncio.sleep(pause)
    await asyncio.to_thread(victim.start)


async def settled(cluster: Cluster) -> None:
    """Each session is played by one engine, has one home and its whole queue, and stays so for a moment."""
    deadline = time.monotonic() + 3 * PATIENCE_SECONDS
    since = None
    while since is None or time.monotonic() - since < 1:
        found = await faults(cluster)
        since = None if found else since or time.monotonic()
        assert time.monotonic() < deadline, found
        await asyncio.sleep(0.2)


async def faults(cluster: Cluster) -> list[str]:
    players: dict[str, int] = dict.fromkeys(TONES, 0)
    found = []
    try:
        for engine in cluster.engines:
            for session in await sessions_of(engine):
                players[session] += 1
        router = cluster.routers[0]
        for session in TONES:
            answer = await request("GET", f"{router.url}/api/v1/sessions/{session}/queue")
            if answer.status != 200:
                found.append(f"{session}: {answer}")
                continue
            titles = [track["title"] for track in answer.body["tracks"]]
            titles.append((answer.body.get("current") or {}).get("title"))
            if sorted(map(str, titles)) != [f"{session} {number}" for number in range(TRACKS)]:
                found.append(f"{session} has {titles}")
    except (aiohttp.ClientError, OSError) as error:
        return [str(error)]
    return found + [f"{session} is played by {count} engines" for session, count in players.items() if count != 1]
