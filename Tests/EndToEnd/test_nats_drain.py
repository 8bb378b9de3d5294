"""An engine that is stopped hands its sessions over to others while they are heard: nobody hears it."""

import asyncio
from contextlib import AsyncExitStack
from itertools import pairwise

import pytest

from analysis import assert_unbroken_tone, dominant_frequency
from client import Listener, listen
from cluster import Cluster, metric, play_all, sessions_of
from icecast import Icecast
from media import FLAC, OGG_OPUS, tone_clip
from opus import sound_of
from processes import Server
from signals import AMPLITUDE, RATE

#: No whole number of periods in a packet: one that is skipped or repeated turns the phase.
TONES = {f"tone{number}": 313 + 60 * number for number in range(8)}
#: Passed through, and encoded by each engine by itself.
CLIPS = {
    session: tone_clip(frequency, 60, (OGG_OPUS, FLAC)[number // 2 % 2])
    for number, (session, frequency) in enumerate(TONES.items())
}
#: Longer than any handover takes, so that an engine which waits for it is noticed.
DRAIN_SECONDS = 40


@pytest.fixture
def cluster(tmp_path, media):
    media.make(*CLIPS.values())
    options = ("--drain-seconds", str(DRAIN_SECONDS))
    with Cluster(tmp_path, media.root, engines=2, engine_options=options) as running:
        yield running


async def stop(engine: Server) -> None:
    """Stops an engine, which has nothing to wait for but its sessions' moves."""
    engine.ask_to_stop()
    assert await asyncio.wait_for(asyncio.to_thread(engine.wait_for_end), DRAIN_SECONDS / 2) == 0, engine.tail()


def assert_unbroken(listener: Listener, session: str) -> None:
    """Each packet follows the one before it, in the track and in time, and the sound is one piece."""
    packets = listener.packets()
    for before, after in pairwise(packets):
        place = f"{session} at {before.position_ms} ms"
        assert after.position_ms == before.position_ms + 20, place
        assert after.sequence == before.sequence + 1, place
        assert abs(after.due_ns - before.due_ns - 20_000_000) <= 2_000_000, place
    # Behind the first packets, in which the sound begins.
    sound = sound_of(packets)[RATE // 2 :]
    assert_unbroken_tone(sound, TONES[session], AMPLITUDE, session)


async def test_nobody_hears_that_an_engine_is_stopped(cluster):
    async with AsyncExitStack() as stack:
        listeners = await play_all(cluster.router, CLIPS, stack, packets=50)
        stopped, other = cluster.engines
        before = await sessions_of(stopped)
        assert len(before) == 4
        await stop(stopped)
        marks = {name: listener.mark() for name, listener in listeners.items()}
        assert await sessions_of(other) == set(TONES)
        assert metric(cluster.router, "antiphon_router_sessions_handed_over_total") == 4
        assert metric(cluster.router, "antiphon_router_sessions_moved_total") == 0
        await asyncio.gather(*(listener.wait_packets(50, since=marks[name]) for name, listener in listeners.items()))
        for name, listener in listeners.items():
            assert_unbroken(listener, name)
            assert not listener.events("error") and not listener.events("ended") and not listener.events("buffering")


async def test_a_station_goes_on_where_it_is(tmp_path, media):
    """It has no places: the other engine joins it, and the two are some seconds of it apart."""
    sound = media.path(tone_clip(440, 20, FLAC))
    options = ("--drain-seconds", str(DRAIN_SECONDS), "--allow-network", "127.0.0.1/32")
    with (
        Icecast(tmp_path) as icecast,
        Cluster(tmp_path / "cluster", media.root, engines=2, engine_options=options) as cluster,
    ):
        icecast.feed("station", sound)
        async with listen(cluster.router.url, "station") as listener:
            while (answer := await listener.ask("play", url=f"{icecast.url}/station"))["type"] == "error":
                await asyncio.sleep(0.2)
            assert answer["live"], answer
            begun = listener.mark()
            await listener.wait_packets(100)
            (stopped,) = [engine for engine in cluster.engines if await sessions_of(engine)]
            await stop(stopped)
            mark = listener.mark()
            await listener.wait_packets(100, since=mark)
            assert metric(cluster.router, "antiphon_router_sessions_handed_over_total") == 1
            packets = listener.packets()
            rhythm = [after.due_ns - before.due_ns for before, after in pairwise(packets)]
            assert all(abs(nanoseconds - 20_000_000) <= 2_000_000 for nanoseconds in rhythm), rhythm
            assert not listener.events("ended", begun) and not listener.events("buffering", begun)
            assert abs(dominant_frequency(sound_of(listener.packets(mark))) - 440) < 3


async def test_what_is_asked_for_meanwhile_is_done(cluster):
    async with AsyncExitStack() as stack:
        listeners = await play_all(cluster.router, CLIPS, stack, packets=50)
        stopped = cluster.engines[0]
        ending = asyncio.create_task(stop(stopped))
        while not ending.done():
            for listener in listeners.values():
                paused = await listener.command("pause")
                resumed = await listener.command("resume")
                assert (paused["type"], resumed["type"]) == ("paused", "resumed")
        await ending
        marks = {name: listener.mark() for name, listener in listeners.items()}
        await asyncio.gather(*(listener.wait_packets(25, since=marks[name]) for name, listener in listeners.items()))
        assert await sessions_of(cluster.engines[1]) == set(TONES)
        for name, listener in listeners.items():
            places = [packet.position_ms for packet in listener.packets()]
            assert all(after - before == 20 for before, after in pairwise(places)), name


async def test_a_paused_session_stays_where_it_is_and_a_queue_goes_on(cluster):
    async with listen(cluster.router.url, "paused") as paused, listen(cluster.router.url, "queue") as queue:
        await paused.play(CLIPS["tone0"].url)
        await paused.wait_packets(25)
        place = (await paused.command("pause"))["position_ms"]
        await queue.command("queue_add", tracks=[{"url": CLIPS[name].url} for name in ("tone1", "tone2")])
        await queue.wait_packets(25)
        # What comes next is prepared by the engine that is to stop.
        await queue.command("seek", position_ms=50_000)
        sought = queue.mark()
        first, second = cluster.engines
        await stop(first)
        assert await sessions_of(second) == {"paused", "queue"}
        first.start()
        cluster.wait_attached()
        await stop(second)
        assert await sessions_of(first) == {"paused", "queue"}
        resumed = paused.mark()
        assert (await paused.command("resume"))["position_ms"] == place
        await paused.wait_packets(5, since=resumed)
        assert paused.packets(resumed)[0].position_ms == place
        ended = await queue.wait_event("ended", since=sought)
        assert ended["reason"] == "finished"
        await queue.wait_packets(25, since=queue.mark())
        places = [packet.position_ms for packet in queue.packets(sought)]
        assert [after for before, after in pairwise(places) if after - before != 20] == [0], places
