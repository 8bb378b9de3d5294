"""antiphon_client: either process killed, the network gone, and what was asked meanwhile done once."""

import asyncio
import os
import signal

import pytest
from antiphon_client import AntiphonError, Session

from analysis import dominant_frequency
from hearing import until
from media import OGG_OPUS, tone_clip
from opus import FRAME, decode
from relay import relay
from voice import voice

SONG = tone_clip(440, 120, OGG_OPUS)
OTHER = tone_clip(700, 120, OGG_OPUS)

#: A start on a busy machine takes its time.
PATIENT = 60.0


@pytest.fixture
async def session(mortal, media, new_session):
    media.make(SONG, OTHER)
    async with Session(mortal.router.url, new_session(), patience=PATIENT) as session:
        yield session


def assert_is_tone(packets: list[bytes], frequency: int) -> None:
    sound = decode(packets)[5 * FRAME :, 0]
    assert abs(dominant_frequency(sound) - frequency) < 1


async def kill_router(mortal, session: Session) -> None:
    mortal.router.kill()
    await until(lambda: not session.state.connected, "loss of the connection")


async def test_a_killed_router_is_found_again(mortal, session):
    events = session.events()
    async with voice(session) as ear:
        await session.play(SONG.url)
        await session.queue_add(url=OTHER.url, title="next")
        await ear.wait_run(50)
        await kill_router(mortal, session)
        assert session.state.error.code == "connection_lost" and mortal.router.url in session.state.error.message
        # The engine plays on, and so does what is known of it.
        assert session.state.playback == "streaming" and session.state.current.url == SONG.url
        position = session.state.position_ms
        await ear.wait_silence(10)
        assert session.packets.counters.starved > 0
        assert session.state.position_ms > position

        mark = ear.mark()
        await asyncio.to_thread(mortal.router.start)
        assert_is_tone(await ear.wait_run(100, mark, PATIENT), 440)
        assert session.state.connected and session.state.error is None
        assert session.state.position_ms > position and [entry.title for entry in session.state.queue] == ["next"]
    seen = []
    while not any(event.get("connected") for event in seen):
        seen.append(await anext(events))
    lost = next(event for event in seen if event["type"] == "connection" and not event["connected"])
    assert lost["error"]["code"] == "connection_lost", lost


async def test_what_is_asked_while_the_router_is_away_is_done_once(mortal, session):
    await session.play(SONG.url)
    await kill_router(mortal, session)
    asked = [asyncio.create_task(session.queue_add(url=OTHER.url, title=str(number))) for number in range(20)]
    asked.append(asyncio.create_task(session.seek(60_000)))
    await asyncio.sleep(0)
    await asyncio.to_thread(mortal.router.start)
    *added, seeked = await asyncio.gather(*asked)
    assert seeked["type"] == "seeked" and session.state.position_ms >= 60_000
    assert [entry.title for entry in session.state.queue] == [str(number) for number in range(20)], "the order is lost"
    assert [answer["queue"]["added"] for answer in added] == [[entry.id] for entry in session.state.queue]


async def test_what_was_in_flight_when_the_router_died_is_done_once(mortal, session):
    """It stands still, is sent a command, and is killed: nobody knows whether it was done."""
    await session.play(SONG.url)
    for number in range(5):
        os.kill(mortal.router.pid, signal.SIGSTOP)
        asked = asyncio.create_task(session.queue_add(url=OTHER.url, title=str(number)))
        await asyncio.sleep(0.05)
        if number % 2:
            # It may do it, and may say so, before it dies.
            os.kill(mortal.router.pid, signal.SIGCONT)
        await kill_router(mortal, session)
        await asyncio.to_thread(mortal.router.start)
        assert (await asked)["queue"]["added"]
    assert [entry.title for entry in session.state.queue] == [str(number) for number in range(5)]


async def test_a_repeated_answer_does_not_turn_the_state_back(mortal, session):
    """The first one's answer comes again, and others have gone on since."""
    await session.play(SONG.url)
    await until(lambda: session.state.playback == "streaming", "sound")
    await session.command("pause", idempotency_key="mine")
    await session.resume()
    seen: list[str] = []
    session.on("paused", lambda _: seen.append(session.state.playback))
    assert (await session.command("pause", idempotency_key="mine"))["type"] == "paused"
    assert seen == ["streaming"], "the old answer is believed for a moment"
    assert session.state.playback == "streaming"
    assert (await session.status())["session"]["state"] == "streaming"


async def test_nobody_waits_for_a_router_for_ever(mortal, media, new_session):
    async with Session(mortal.router.url, new_session(), patience=0.5) as session:
        await kill_router(mortal, session)
        for ask in (session.pause, session.queue):
            with pytest.raises(AntiphonError) as refused:
                await ask()
            assert refused.value.code == "connection_lost" and refused.value.hint, repr(refused.value)
        unreached = Session(mortal.router.url, "s", patience=0.5)
        with pytest.raises(AntiphonError) as refused:
            await unreached.start()
        assert refused.value.code == "connection_lost" and mortal.router.url in refused.value.message
        # It is tried on: a bot may be started before its Router.
        await asyncio.to_thread(mortal.router.start)
        await until(lambda: unreached.state.connected and session.state.connected, "connection")
        await unreached.start()
        await unreached.close()


async def test_a_killed_engine_is_found_again(mortal, session):
    async with voice(session) as ear:
        await session.play(SONG.url)
        await ear.wait_run(50)
        mortal.engine.kill()
        await until(lambda: not session.state.engine_connected, "news of the engine")
        assert session.state.connected
        position = session.state.position_ms
        await ear.wait_silence(10)
        assert session.state.position_ms == position, "the position moves without an engine"
        asked = asyncio.create_task(session.volume(0.5))
        mark = ear.mark()
        await asyncio.to_thread(mortal.engine.start)
        assert_is_tone(await ear.wait_run(100, mark, PATIENT), 440)
        assert (await asked)["type"] == "status" and session.state.volume == 0.5
        assert session.state.engine_connected and session.state.position_ms >= position - 1_000


async def test_nobody_waits_for_an_engine_for_ever(mortal, media, new_session):
    media.path(SONG)
    async with Session(mortal.router.url, new_session(), patience=0.5) as session:
        mortal.engine.kill()
        await until(lambda: not session.state.engine_connected, "news of the engine")
        with pytest.raises(AntiphonError) as refused:
            await session.play(SONG.url)
        assert refused.value.code == "engine_unavailable" and refused.value.message
        assert (await session.queue())["type"] == "queue"


async def test_a_network_that_goes_without_a_word_is_noticed(mortal, media, new_session):
    media.path(SONG)
    async with (
        relay(mortal.router.address) as network,
        Session(network.url, new_session(), patience=PATIENT) as session,
        voice(session) as ear,
    ):
        await session.play(SONG.url)
        await ear.wait_run(25)
        network.cut()
        loop = asyncio.get_running_loop()
        begun = loop.time()
        await until(lambda: not session.state.connected, "notice", seconds=30)
        assert 3 < loop.time() - begun < 25, "8 s of quiet and 4 s for an answer"
        mark = ear.mark()
        network.restore()
        await ear.wait_run(25, mark, PATIENT)


async def test_a_router_that_stops_says_goodbye_and_comes_back(mortal, session):
    closing = []
    session.on("closing", closing.append)
    await asyncio.to_thread(mortal.router.terminate)
    await until(lambda: not session.state.connected, "goodbye")
    assert closing and closing[0]["reconnect"] is not None
    await asyncio.to_thread(mortal.router.start)
    await until(lambda: session.state.connected, "connection", PATIENT)
