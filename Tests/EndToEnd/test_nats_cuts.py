"""An engine or a Router in a network of its own, which is cut off from the rest and comes back."""

import asyncio
import contextlib
import time
from contextlib import AsyncExitStack
from itertools import pairwise

import aiohttp
import pytest

from client import Listener, listen, request
from cluster import Cluster, assert_own_tone, gap_ms, play_all, sessions_of
from inbox import PATIENCE_SECONDS
from media import OGG_OPUS, tone_clip
from network import Network, network
from processes import Server

TONES = {f"tone{number}": 300 + 50 * number for number in range(6)}
CLIPS = {session: tone_clip(frequency, 60, OGG_OPUS) for session, frequency in TONES.items()}
#: After this long without a Router an engine stops its sessions (`ClusterTiming`).
ABANDONED_SECONDS = 15


@pytest.fixture
def apart():
    with network() as made:
        if made is None:
            pytest.skip("this machine allows no network namespaces")
        yield made


@pytest.fixture
def folder(tmp_path, media):
    media.make(*CLIPS.values())
    return tmp_path


def assert_own_sound(listeners: dict[str, Listener]) -> None:
    for name, listener in listeners.items():
        packets = listener.packets()
        assert_own_tone(listener, TONES[name], packets)
        assert all(before.position_ms < after.position_ms for before, after in pairwise(packets)), name


async def settled(engines: list[Server]) -> list[set[str]]:
    """Who plays what, once each session is played by one engine."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    placed: list[set[str]] = []
    while True:
        # One that was cut off may not be found at once.
        with contextlib.suppress(aiohttp.ClientConnectionError):
            placed = [await sessions_of(engine) for engine in engines]
        if sorted(name for names in placed for name in names) == sorted(TONES):
            return placed
        assert time.monotonic() < deadline, placed
        await asyncio.sleep(0.1)


def cluster_with(folder, media, apart: Network, kind: str) -> Cluster:
    """One whose last engine or Router is in a network of its own."""
    cluster = Cluster(folder, media.root, engines=2, routers=2)
    cluster.move(getattr(cluster, kind)[-1], apart)
    return cluster


@pytest.mark.parametrize("seconds", [4, ABANDONED_SECONDS + 3])
async def test_an_engine_that_is_cut_off_is_not_heard_again(folder, media, apart, seconds):
    with cluster_with(folder, media, apart, "engines") as cluster:
        async with AsyncExitStack() as stack:
            listeners = await play_all(cluster.router, CLIPS, stack)
            here, away = cluster.engines
            moved = await sessions_of(away)
            assert len(moved) == 3
            marks = {name: listener.mark() for name, listener in listeners.items()}
            apart.cut()
            await asyncio.sleep(seconds)
            assert await sessions_of(here) == set(TONES)
            apart.restore()
            assert await settled(cluster.engines) == [set(TONES), set()]
            back = {name: listener.mark() for name, listener in listeners.items()}
            await asyncio.gather(*(each.wait_packets(100, since=back[name]) for name, each in listeners.items()))
            for name in TONES:
                # One second without an answer, and a machine that does other things.
                assert gap_ms(listeners[name].packets(marks[name] - 1)) < (3_000 if name in moved else 500), name
            assert_own_sound(listeners)


async def test_a_router_that_is_cut_off_gives_its_sessions_up(folder, media, apart):
    with cluster_with(folder, media, apart, "routers") as cluster:
        here, away = cluster.routers
        async with AsyncExitStack() as stack:
            listeners = await play_all(away, CLIPS, stack)
            path = f"{away.url}/api/v1/sessions/tone0/queue"
            for title in ("one", "two"):
                answer = await request("POST", path, {"tracks": [{"url": CLIPS["tone1"].url, "title": title}]})
                assert answer.status == 200, answer
            apart.cut()
            async with AsyncExitStack() as others:
                again = {name: await others.enter_async_context(listen(here.url, name)) for name in TONES}
                await asyncio.gather(*(listener.wait_packets(50) for listener in again.values()))
                answer = await request("GET", f"{here.url}/api/v1/sessions/tone0/queue")
                assert [track["title"] for track in answer.body["tracks"]] == ["one", "two"]
                answer = await request("DELETE", f"{here.url}/api/v1/sessions/tone0/queue")
                assert answer.status == 200, answer
                apart.restore()
                # Those who were connected there are told to come again.
                deadline = time.monotonic() + PATIENCE_SECONDS
                while not all(listener.closed for listener in listeners.values()):
                    assert time.monotonic() < deadline, "they are still connected"
                    await asyncio.sleep(0.1)
                assert {listener.closed for listener in listeners.values()} == {"code 1012"}
                answer = await request("GET", f"{away.url}/api/v1/sessions/tone0/queue")
                assert answer.body["tracks"] == []
                assert await settled(cluster.engines)
                assert_own_sound(again)
