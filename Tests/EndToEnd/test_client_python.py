"""antiphon_client: a session's sound in discord.py's own voice thread, its commands, its state and its end."""

import asyncio

import pytest
from antiphon_client import SILENCE, AntiphonError, EventStream, Session
from antiphon_client.subscriptions import EVENT_LIMIT

from analysis import assert_unbroken_tone, dominant_frequency
from client import listen
from hearing import assert_accounted_for, until
from media import OGG_OPUS, glides_clip, tone_clip
from opus import FRAME, decode
from signals import AMPLITUDE, Glides
from voice import voice

TONE = tone_clip(440, 120, OGG_OPUS)
#: No packet of it is like another.
GLIDES = glides_clip("client-glides", Glides(30), OGG_OPUS)


@pytest.fixture
async def session(antiphon, media, new_session):
    media.make(TONE, GLIDES)
    async with Session(antiphon.router.url, new_session()) as session:
        yield session


async def test_a_tone_is_heard_without_a_break(session):
    async with voice(session) as ear:
        await session.play(TONE.url)
        for _ in range(5):
            # Where the machine stands still, the buffer loses packets, and says so.
            dropped, mark = session.packets.counters.dropped, ear.mark()
            packets = await ear.wait_run(150, mark)
            if session.packets.counters.dropped == dropped:
                break
    sound = decode(packets)[5 * FRAME :, 0]
    assert abs(dominant_frequency(sound) - 440) < 0.5
    assert_unbroken_tone(sound, 440, AMPLITUDE, "discord.py's voice thread")
    counters = session.packets.counters
    assert counters.received == counters.played + counters.dropped + len(session.packets), counters
    assert counters.played >= 150, counters


async def test_the_packets_are_those_that_others_hear(antiphon, session):
    async with listen(antiphon.router.url, session.session_id) as other, voice(session) as ear:
        await session.play(GLIDES.url)
        await ear.wait_run(100)
        heard = list(ear.heard)
        last = next(packet for packet in reversed(heard) if packet != SILENCE)
        await other.wait(lambda: last in [packet.audio for packet in other.packets()], "the last packet")
        assert_accounted_for(heard, [packet.audio for packet in other.packets()], session.packets.counters.dropped)


async def test_who_joins_late_is_heard_at_once(antiphon, media, new_session):
    """The Router sends the last 100 ms on joining, which fill the buffer."""
    media.path(GLIDES)
    name = new_session()
    async with listen(antiphon.router.url, name) as other:
        await other.play(GLIDES.url)
        await other.wait_packets(25)
        async with Session(antiphon.router.url, name) as late:
            await until(lambda: len(late.packets) > 0, "packet")
            assert len(late.packets) >= late.packets.target, (
                "the buffer is not filled by what the Router sends at first"
            )
            assert late.packets.take() != SILENCE
            assert late.state.playback == "streaming" and late.state.current.url == GLIDES.url, late.state.current
            assert late.state.position_ms >= 400, late.state.position_ms


async def test_a_pause_is_silence_and_goes_on_where_it_was(antiphon, session):
    async with listen(antiphon.router.url, session.session_id) as other, voice(session) as ear:
        await session.play(GLIDES.url)
        await ear.wait_run(25)
        assert (await session.pause())["type"] == "paused"
        assert session.state.playback == "paused"
        paused_at = session.state.position_ms
        await ear.wait_silence(25)
        starved = session.packets.counters.starved
        mark = ear.mark()
        await ear.wait_silence(25, mark)
        assert set(ear.heard[mark : mark + 25]) == {SILENCE}
        assert session.state.position_ms == paused_at, "the position moves in a pause"
        assert session.packets.counters.starved == starved, "a pause counts as starving"

        assert (await session.resume())["type"] == "resumed"
        await ear.wait_run(25, mark)
        assert session.state.position_ms > paused_at and session.state.playback == "streaming"
        heard = list(ear.heard)
        last = next(packet for packet in reversed(heard) if packet != SILENCE)
        await other.wait(lambda: last in [packet.audio for packet in other.packets()], "the last packet")
        assert_accounted_for(heard, [packet.audio for packet in other.packets()], session.packets.counters.dropped)


async def test_a_voice_connection_that_was_away_has_no_delay_to_lose(session):
    """While discord.py has no connection it takes nothing; what waited is not heard late."""
    async with voice(session) as ear:
        await session.play(TONE.url)
        await ear.wait_run(25)
        ear.disconnect()
        received = session.packets.counters.received
        await until(lambda: session.packets.counters.received > received + 100, "hundred packets more")
        assert len(session.packets) <= session.packets.target
        mark = ear.mark()
        ear.reconnect()
        await ear.wait_run(25, mark)


async def test_the_end_is_told_to_discord(session):
    async with voice(session) as ear:
        await session.play(TONE.url)
        await ear.wait_run(25)
        stream = session.events()
        waiting = asyncio.create_task(session.resolve("media:"))
        await asyncio.sleep(0)
        await session.close()
        with pytest.raises(AntiphonError) as refused:
            await waiting
        assert refused.value.code == "closed"
        async for _ in stream:
            """It ends, too."""
        await until(lambda: not ear.player.is_alive(), "end of the voice thread")
        # What waited, and discord.py's own five.
        assert ear.heard[-5:] == [SILENCE] * 5 and ear.heard[-6] != SILENCE and len(session.packets) == 0
    with pytest.raises(AntiphonError, match="closed"):
        await session.pause()
    with pytest.raises(AntiphonError, match="closed"):
        await session.start()


async def test_the_session_plays_on_without_the_client(antiphon, session):
    await session.play(TONE.url)
    await session.close()
    async with Session(antiphon.router.url, session.session_id) as again:
        assert again.state.playback == "streaming" and again.state.current.title == TONE.name


async def test_events_come_to_streams_and_callbacks(session):
    stream = session.events()
    seen: list[tuple[str, str]] = []

    def fails(event):
        seen.append(("fails", event["type"]))
        raise RuntimeError("a bot's own fault")

    session.on(None, fails)
    unsubscribe = session.on("paused", lambda event: seen.append(("paused", session.state.playback)))
    await session.play(TONE.url)
    await until(lambda: session.state.playback == "streaming", "sound")
    await session.pause()
    await session.resume()
    unsubscribe()
    unsubscribe()
    await session.pause()
    assert seen.count(("paused", "paused")) == 1, "the callback came not once, or before the state"
    kinds = [kind for who, kind in seen if who == "fails"]
    assert {"extracting", "ready", "playing", "paused", "resumed", "queue"} <= set(kinds), kinds
    came = [(await asyncio.wait_for(anext(stream), 1))["type"] for _ in kinds]
    assert came == kinds and stream.dropped == 0


async def test_a_slow_reader_loses_the_oldest_events(session):
    stream = session.events()
    count = EVENT_LIMIT + 10
    for mode in ["queue", "off"] * (count // 2):
        await session.queue_loop(mode)
    assert stream.dropped == 10
    last = [await anext(stream) for _ in range(EVENT_LIMIT)][-1]
    assert last["queue"]["loop"] == "off"
    # One that was left is not kept.
    del stream
    assert len(session._subscriptions._streams) == 0
    assert EventStream(limit=3).dropped == 0


async def test_a_command_that_is_too_long_does_not_cost_the_connection(session):
    lost = session.events()
    with pytest.raises(AntiphonError) as refused:
        await session.queue_add(tracks=[{"url": TONE.url, "title": "x" * 200}] * 400)
    assert refused.value.code == "line_too_long" and refused.value.hint
    await session.queue()
    assert "connection" not in [(await anext(lost))["type"]]


async def test_too_many_commands_at_once_are_refused(session):
    answers = await asyncio.gather(*(session.history() for _ in range(300)), return_exceptions=True)
    refused = [answer for answer in answers if isinstance(answer, AntiphonError)]
    assert {error.code for error in refused} == {"overloaded"} and len(refused) == 44, refused
    assert (await session.history())["type"] == "history"
