"""Either process may die; the other goes on, and what comes back finds its place."""

import asyncio
import time

import aiohttp
import pytest

from analysis import dominant_frequency
from client import connect_to_engine, listen, request
from inbox import Packet, assert_unbroken
from media import OGG_OPUS, tone_clip
from opus import FRAME, decode
from processes import Antiphon, wait_ready

SONG = tone_clip(440, 120, OGG_OPUS)

#: The playground's longest wait between two attempts.
RETRY_SECONDS = 0.5


async def wait_until_listening(address: str) -> float:
    """When the first connection could be made, by `time.monotonic`."""
    host, port = address.split(":")
    while True:
        try:
            _, writer = await asyncio.open_connection(host, int(port))
        except ConnectionError:
            await asyncio.sleep(0.002)
            continue
        up = time.monotonic()
        writer.close()
        return up


@pytest.fixture
def antiphon(tmp_path, media):
    """One of its own for every test: it is killed here."""
    media.path(SONG)
    with Antiphon(tmp_path, media.root) as running:
        yield running


async def test_the_router_is_killed_and_comes_back(antiphon, new_session):
    session = new_session()
    state = f"{antiphon.engine.url}/session/{session}"
    async with listen(antiphon.router.url, session) as listener:
        await listener.play(SONG.url)
        await listener.wait_packets(25)
        antiphon.router.kill()
        await listener.wait(lambda: listener.closed, "close")

    before = (await request("GET", state)).body
    async with connect_to_engine(antiphon.socket) as watcher:
        hello = await watcher.wait_event("hello")
        assert [each["session_id"] for each in hello["sessions"]] == [session], hello
        packets = await watcher.wait_packets(50)
        assert {packet.session for packet in packets} == {session}
    after = (await request("GET", state)).body
    moved = after["position_ms"] - before["position_ms"]
    assert after["state"] == "streaming" and moved >= 980, f"the position moved by {moved} ms in a second: {after}"

    starting = asyncio.create_task(asyncio.to_thread(antiphon.router.start))
    listening = asyncio.create_task(wait_until_listening(antiphon.router.address))
    # A client that tries again and again, as the playground does.
    while True:
        try:
            async with listen(antiphon.router.url, session) as listener:
                first = (await listener.wait_packets(1))[0]
                seconds = first.arrived_ns / 1e9 - await listening
                assert seconds <= 1, f"the session is heard {seconds:.2f} s after the Router listens"
                packets = await listener.wait_packets(100)
                assert_unbroken(packets, "after the Router came back")
                assert packets[0].position_ms > after["position_ms"] - 1_000, (packets[0].position_ms, after)
                assert not listener.events("extracting"), "the track was started anew"
                break
        except (aiohttp.ClientConnectionError, ConnectionError):
            assert not starting.done() or antiphon.router.is_running, "the Router did not start"
            await asyncio.sleep(RETRY_SECONDS)
    await starting


async def test_the_engine_goes_and_comes_back(antiphon, new_session):
    session = new_session()
    router = antiphon.router.url
    async with listen(router, session) as listener:
        await listener.play(SONG.url)
        await listener.wait_packets(10)

        status = antiphon.engine.terminate()
        assert status == 0, f"the engine ended with {status} on SIGTERM:\n{antiphon.engine.tail()}"
        event = await listener.wait_event("engine")
        assert event["engine"]["connected"] is False and event["engine"].get("message"), event
        ready = await request("GET", f"{router}/ready")
        assert ready.status == 503 and ready.body["ready"] is False and ready.body["reasons"], ready
        assert (await request("GET", f"{router}/health")).status == 200, "a Router without an engine is alive"
        refused = await request("POST", f"{router}/api/v1/sessions/{session}/play", {"url": SONG.url})
        assert refused.status == 503 and refused.code == "engine_unavailable", refused
        answer = await listener.ask("pause")
        assert answer["type"] == "error" and answer["code"] == "engine_unavailable", answer

        since = listener.mark()
        antiphon.engine.start()
        event = await listener.wait_event("engine", since)
        assert event["engine"]["connected"] is True, event
        wait_ready(antiphon.router)


@pytest.mark.parametrize("ending", ["terminate", "kill"])
async def test_every_session_goes_on_after_the_engine_came_back(antiphon, new_session, ending):
    """By itself, and each where it was: what was playing plays, what was paused stays so."""
    router = antiphon.router.url
    playing, paused, idle = new_session(), new_session(), new_session()
    async with (
        listen(router, playing, buffer_ms=0) as player,
        listen(router, paused, buffer_ms=0) as pauser,
        listen(router, idle, buffer_ms=0) as idler,
    ):
        await player.play(SONG.url, start_ms=20_000)
        await pauser.play(SONG.url, start_ms=60_000)
        await pauser.wait_packets(25)
        stood = (await pauser.command("pause"))["position_ms"]
        await player.wait_packets(50)

        # With or without a goodbye: after a kill the socket's file is left behind, and the next engine takes it.
        getattr(antiphon.engine, ending)()
        assert (await player.wait_event("engine"))["engine"]["connected"] is False
        last = player.packets()[-1].position_ms
        since, pauser_since = player.mark(), pauser.mark()
        antiphon.engine.start()
        assert (await player.wait_event("engine", since))["engine"]["connected"] is True

        await player.wait_event("playing", since)
        packets = await player.wait_packets(100, since=since)
        assert_unbroken(packets, "after the engine came back")
        first = packets[0].position_ms
        assert abs(first - last) <= 200, f"it went on at {first} ms; the last heard was {last} ms"
        assert_plays_song(packets)

        event = await pauser.wait_event("paused", pauser_since)
        assert event["position_ms"] == stood, f"it was paused at {stood} ms; {event}"
        for session, state, position in ((paused, "paused", stood), (idle, "idle", None)):
            answer = await request("GET", f"{router}/api/v1/sessions/{session}")
            assert (answer.body["state"], answer.body.get("position_ms")) == (state, position), answer
        assert not pauser.packets(pauser_since), "a paused session was heard"
        since = pauser.mark()
        await pauser.command("resume")
        packets = await pauser.wait_packets(50, since=since)
        assert_unbroken(packets, "resumed after the engine came back")
        assert packets[0].position_ms == stood, (packets[0], stood)
        assert_plays_song(packets)
        assert not idler.packets(), "a session that never played is heard"
        for listener in (player, pauser, idler):
            assert not listener.events("error"), listener


def assert_plays_song(packets: list[Packet]) -> None:
    sound = decode(packet.audio for packet in packets)[:, 0]
    measured = dominant_frequency(sound[5 * FRAME :])
    assert abs(measured - 440) < 5, f"{measured:.1f} Hz is heard"


async def test_a_second_engine_does_not_take_the_socket(antiphon, new_session):
    import subprocess

    from processes import BINARIES

    arguments = [
        BINARIES / "AudioEngine",
        "--socket",
        antiphon.socket,
        "--listen",
        "127.0.0.1:0",
        "--media-root",
        "/tmp",
    ]
    second = await asyncio.to_thread(subprocess.run, arguments, capture_output=True, timeout=15)
    assert second.returncode != 0, "a second engine on the same socket did not end with an error"
    assert antiphon.socket.encode() in second.stdout + second.stderr, f"no word about the socket: {second}"
    async with listen(antiphon.router.url, new_session()) as listener:
        await listener.play(SONG.url)
        await listener.wait_packets(5)


async def test_the_router_waits_for_an_engine_that_starts_later(tmp_path, media, new_session):
    media.make(SONG)
    running = Antiphon(tmp_path / "late", media.root)
    try:
        running.router.start()
        ready = await request("GET", f"{running.router.url}/ready")
        assert ready.status == 503 and "cannot reach the engine" in ready.body["reasons"][0], ready
        async with listen(running.router.url, new_session()) as listener:
            first = await listener.wait_event("session")
            assert first["engine"]["connected"] is False, first
            running.engine.start()
            assert (await listener.wait_event("engine"))["engine"]["connected"] is True
            await listener.play(SONG.url)
            await listener.wait_packets(5)
    finally:
        running.close()
