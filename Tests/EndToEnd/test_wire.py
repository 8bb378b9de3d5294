"""The engine's socket: hello, several routers, and one that does not read."""

import asyncio
import os
import stat

import numpy as np
import pytest

from client import EngineConnection, connect_to_engine, request
from inbox import Packet
from media import OGG_OPUS, OGG_OPUS_LOUD, Clip, tone_clip
from processes import Antiphon


@pytest.fixture
def antiphon(tmp_path, media):
    """An engine alone: the tests are its routers."""
    with Antiphon(tmp_path, media.root, router=False) as running:
        yield running


async def test_hello_tells_what_plays(antiphon, media):
    clip = tone_clip(440, 20, OGG_OPUS)
    media.path(clip)
    mode = os.stat(antiphon.socket).st_mode
    assert stat.S_ISSOCK(mode) and stat.S_IMODE(mode) == 0o600, f"the socket's mode is {stat.filemode(mode)}"
    async with connect_to_engine(antiphon.socket) as one:
        hello = await one.wait_event("hello")
        assert one.received[0] is hello and hello["protocol"] == 1 and hello["sessions"] == [], hello
        assert {"engine_version", "started_at_ms", "now_ns", "limits"} <= hello.keys(), hello
        assert hello["limits"] == {"max_workers": 60, "max_sessions": 10_000, "read_ahead_ms": 15_000}, hello
        await one.command(type="play", session_id="1234567890123456789", url=clip.url)
        await one.command(type="play", session_id="123456789012345678901234", url=clip.url, paused=True)
        await one.wait_packets(10)
        async with connect_to_engine(antiphon.socket) as two:
            hello = await two.wait_event("hello")
            assert two.received[0] is hello, two.received[0]
            sessions = {each["session_id"]: each for each in hello["sessions"]}
            playing, paused = sessions["1234567890123456789"], sessions["123456789012345678901234"]
            assert playing["state"] == "streaming" and playing["url"] == clip.url and playing["due_ns"] > 0, playing
            assert playing["position_ms"] >= 200 and abs(playing["duration_ms"] - 20_000) <= 20, playing
            assert playing["passthrough"] is True and playing["volume"] == 1 and playing["loop"] is False, playing
            assert paused["state"] == "paused" and "due_ns" not in paused and paused["position_ms"] == 0, paused
            # The position in hello is the next packet's: the one whose index is position / 20.
            first = (await two.wait_packets(1, session="1234567890123456789"))[0]
            mine = await one.wait_packets(playing["position_ms"] // 20 + 1, session="1234567890123456789")
            assert first.audio == mine[-1].audio, "the first packet after hello is not the one hello told of"


async def test_two_routers_get_everything(antiphon, media):
    clip = tone_clip(440, 2, OGG_OPUS)
    media.path(clip)
    async with connect_to_engine(antiphon.socket, "one") as one, connect_to_engine(antiphon.socket, "two") as two:
        await asyncio.gather(one.wait_event("hello"), two.wait_event("hello"))
        await asyncio.gather(
            one.command(type="play", session_id="a", url=clip.url),
            two.command(type="play", session_id="b", url=clip.url),
        )
        for connection in (one, two):
            for session in "ab":
                await connection.wait_event("ended", session_id=session)
        for session in "ab":
            kinds = [connection.course(session=session) for connection in (one, two)]
            assert kinds[0] == kinds[1] == ["extracting", "ready", "playing", "ended"], kinds
            packets = [[packet.audio for packet in connection.packets(session=session)] for connection in (one, two)]
            assert packets[0] == packets[1] and len(packets[0]) in (100, 101), [len(each) for each in packets]
    health = await request("GET", f"{antiphon.engine.url}/health")
    assert health.status == 200, health


def assert_accounted_for(slow: EngineConnection, quick: EngineConnection, session: str) -> int:
    """Every packet of the quick connection either came on the slow one too, or was counted in `dropped`."""
    reference = [packet.audio for packet in quick.packets(session=session)]
    place = lost = 0
    for item in slow.received:
        if isinstance(item, Packet):
            if item.session == session:
                assert place < len(reference), f"{session}: a packet too many"
                assert item.audio == reference[place], (
                    f"{session}: not packet {place} of the reference; {lost} lost so far"
                )
                place += 1
        elif item["type"] == "dropped" and item["session_id"] == session:
            place += item["count"]
            lost += item["count"]
    assert len(reference) - place <= 2, (
        f"{session}: {place} of {len(reference)} packets accounted for, {lost} of them lost"
    )
    return lost


async def test_a_router_that_does_not_read_loses_its_own_audio_only(antiphon, media):
    # Packets all unlike each other, so that a wrong count is seen.
    clip = Clip("noise-20s", OGG_OPUS_LOUD, _noise)
    media.path(clip)
    sessions = [f"n{number}" for number in range(16)]
    async with (
        connect_to_engine(antiphon.socket, "quick") as quick,
        connect_to_engine(antiphon.socket, "slow", receive_buffer=2**14) as slow,
    ):
        await asyncio.gather(quick.wait_event("hello"), slow.wait_event("hello"))
        for session in sessions:
            await quick.command(type="play", session_id=session, url=clip.url)
        await slow.wait_packets(100)
        slow.reads.clear()
        # The quick connection's packets are the clock: 6 s of them.
        await quick.wait_packets(300, since=quick.mark(), session=sessions[0])
        await quick.command(type="pause", session_id=sessions[1])
        slow.reads.set()
        since = quick.mark()
        await quick.wait_packets(100, since=since, session=sessions[0])
        for session in sessions:
            await quick.command(type="stop", session_id=session)
        for session in sessions:
            await asyncio.gather(*(connection.wait_event("ended", session_id=session) for connection in (quick, slow)))

        assert not quick.events("dropped"), f"the connection that reads lost packets: {quick.events('dropped')[:3]}"
        # Events are never dropped, however long nobody reads.
        for session in sessions:
            kinds = [
                [
                    e["type"]
                    for e in c.events()
                    if e.get("session_id") == session and e["type"] not in ("dropped", "rebased")
                ]
                for c in (quick, slow)
            ]
            assert kinds[0] == kinds[1], (session, kinds)
        lost = [assert_accounted_for(slow, quick, session) for session in sessions]
        assert min(lost[:1] + lost[2:]) > 50, f"6 s without reading, and only {lost} packets of each session were lost"


def _noise(rate: int):
    return np.random.default_rng(11).uniform(-0.5, 0.5, 20 * rate)
