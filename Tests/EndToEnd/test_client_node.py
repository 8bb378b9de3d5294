"""antiphon-client for Node: what a player for discord.js hears, commands, errors, and whatever is killed then."""

import asyncio
import re
import subprocess

import pytest
from antiphon_client import SILENCE, AntiphonError

from analysis import assert_unbroken_tone, dominant_frequency
from client import listen
from hearing import assert_accounted_for, until
from media import OGG_OPUS, glides_clip, tone_clip
from node_client import PACKAGE, install, node_bot
from opus import FRAME, decode
from relay import relay
from signals import AMPLITUDE, Glides

TONE = tone_clip(440, 120, OGG_OPUS)
OTHER = tone_clip(700, 120, OGG_OPUS)
#: No packet of it is like another.
GLIDES = glides_clip("client-glides", Glides(30), OGG_OPUS)

#: A start on a busy machine takes its time.
PATIENT_MS = 60_000


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    return install(tmp_path_factory.mktemp("node"))


@pytest.fixture
async def bot(antiphon, media, installed, new_session):
    media.make(TONE, OTHER, GLIDES)
    async with node_bot(installed, antiphon.router.url, new_session()) as bot:
        await bot.ask("start")
        yield bot


@pytest.fixture
async def hardy(mortal, media, installed):
    """One whose processes are killed."""
    media.make(TONE, OTHER)
    async with node_bot(installed, mortal.router.url, "guild", patienceMs=PATIENT_MS) as bot:
        await bot.ask("start")
        yield bot


def test_its_own_tests(installed):
    """The jitter buffer, the stream and the state, by clocks that are computed."""
    done = subprocess.run(
        ["node", "--test"], cwd=installed / "node_modules" / "antiphon-client", capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"# pass (1\d|[2-9]\d)\n", done.stdout), f"too few tests have run: {done.stdout[-400:]}"


def test_every_command_is_typed():
    commands = (PACKAGE / "lib" / "commands.js").read_text()
    names = re.findall(r"^  (\w+)\(.*\) \{$", commands, re.MULTILINE)
    types = (PACKAGE / "index.d.ts").read_text()
    assert len(names) > 20 and not [name for name in names if f"  {name}(" not in types], names


async def test_a_tone_is_heard_without_a_break(bot):
    await bot.ask("hear")
    await bot.ask("play", TONE.url)
    for _ in range(5):
        # Where the machine stands still, the buffer loses packets, and says so.
        before, mark = await bot.ask("counters"), bot.mark()
        packets = await bot.wait_run(150, mark)
        counters = await bot.ask("counters")
        if counters["dropped"] == before["dropped"]:
            break
    sound = decode(packets)[5 * FRAME :, 0]
    assert abs(dominant_frequency(sound) - 440) < 0.5
    assert_unbroken_tone(sound, 440, AMPLITUDE, "the player in Node")
    assert counters["received"] - counters["played"] - counters["dropped"] <= 20, counters


async def test_the_packets_are_those_that_others_hear(antiphon, media, installed, new_session):
    media.path(GLIDES)
    name = new_session()
    async with listen(antiphon.router.url, name) as other, node_bot(installed, antiphon.router.url, name) as bot:
        await bot.ask("start")
        await bot.ask("hear")
        await bot.ask("play", GLIDES.url)
        await bot.wait_run(100)
        heard, dropped = list(bot.heard), (await bot.ask("counters"))["dropped"]
        last = next(packet for packet in reversed(heard) if packet != SILENCE)
        await other.wait(lambda: last in [packet.audio for packet in other.packets()], "the last packet")
        assert_accounted_for(heard, [packet.audio for packet in other.packets()], dropped)


async def test_a_pause_is_silence_and_goes_on(bot):
    await bot.ask("hear")
    await bot.ask("play", TONE.url)
    await bot.wait_run(25)
    assert (await bot.ask("pause"))["type"] == "paused"
    state = await bot.state()
    assert state["playback"] == "paused"
    mark = bot.mark()
    await bot.wait_silence(50, mark)
    assert (await bot.state())["positionMs"] == state["positionMs"]
    assert (await bot.ask("resume"))["type"] == "resumed"
    await bot.wait_run(25, mark)


async def test_the_stream_ends_with_the_session(bot):
    await bot.ask("hear")
    await bot.ask("play", TONE.url)
    await bot.wait_run(25)
    waiting = bot.begin("resolve", "media:")
    await bot.ask("close")
    assert (await waiting)["requestError"]["code"] == "closed"
    await until(lambda: bot.has_ended, "end of the stream")
    assert bot.heard[-1] != SILENCE, "what waited is not played"
    for method in ("pause", "start"):
        with pytest.raises(AntiphonError) as refused:
            await bot.ask(method)
        assert refused.value.code == "closed"


async def test_every_command(bot):
    """Each by its method, and what the state makes of it."""
    assert (await bot.ask("play", TONE.url, {"volume": 0.5, "start_ms": 10_000}))["type"] == "ready"
    state = await bot.wait_state("sound", lambda state: state["playback"] == "streaming")
    assert state["volume"] == 0.5 and state["positionMs"] >= 10_000 and state["current"]["title"] == TONE.name, state
    assert (await bot.ask("seek", 50_000))["type"] == "seeked"
    assert (await bot.state())["positionMs"] >= 50_000
    assert (await bot.ask("volume", 2))["type"] == "status"
    one, two = (await bot.ask("queueAdd", {"tracks": [{"url": OTHER.url, "title": "b"}, {"url": TONE.url}]}))["queue"][
        "added"
    ]
    (three,) = (await bot.ask("queueAdd", {"query": OTHER.url, "next": True}))["queue"]["added"]
    await bot.ask("queueMove", three, 2)
    await bot.ask("queueRemove", two)
    await bot.ask("queueLoop", "queue")
    state = await bot.state()
    assert [entry["id"] for entry in state["queue"]] == [one, three] and state["total"] == 2, state
    assert (state["loop"], state["volume"], state["queue"][0]["title"]) == ("queue", 2, "b"), state
    await bot.ask("queueLoop", "off")
    await bot.ask("queueShuffle")
    await bot.ask("quality", 64)
    await bot.ask("quality", None)
    await bot.ask("skipTo", one)
    await bot.wait_state("the next", lambda state: state["current"]["id"] == one and state["playback"] == "streaming")
    await bot.ask("previous")
    await bot.ask("skip")
    await bot.ask("queueClear")
    assert (await bot.ask("queue", 0, 1))["queue"]["total"] == 0
    assert (await bot.ask("history", 1))["total"] >= 1
    assert (await bot.ask("why"))["summary"]
    assert (await bot.ask("status"))["session"]["session_id"]
    assert (await bot.ask("resolve", TONE.url, 1))["entries"][0]["url"] == TONE.url
    assert TONE.url in [entry.get("url") for entry in (await bot.ask("media"))["entries"]]
    assert (await bot.ask("stop"))["type"] == "ended"
    await bot.wait_state("an end", lambda state: state["playback"] == "idle" and state["current"] is None)


@pytest.mark.parametrize(
    "method, parameters, code",
    [
        ("seek", [1], "no_such_session"),
        ("play", ["media:none.opus"], "source_not_found"),
        ("queueRemove", ["none"], "not_found"),
        ("volume", [11], "invalid_command"),
        ("queueAdd", [{"tracks": [{"url": TONE.url, "title": "x" * 200}] * 400}], "line_too_long"),
    ],
)
async def test_an_error_has_a_code_and_a_hint(bot, method, parameters, code):
    with pytest.raises(AntiphonError) as refused:
        await bot.ask(method, *parameters)
    assert refused.value.code == code and refused.value.message and refused.value.hint, repr(refused.value)
    assert (await bot.ask("status"))["type"] == "status" and len(bot.connections) == 1


async def test_a_killed_router_is_found_again(mortal, hardy):
    await hardy.ask("hear")
    await hardy.ask("play", TONE.url)
    await hardy.wait_run(50)
    mortal.router.kill()
    state = await hardy.wait_state("loss", lambda state: not state["connected"])
    assert state["error"]["code"] == "connection_lost" and state["current"]["url"] == TONE.url, state
    asked = [hardy.begin("queueAdd", {"url": OTHER.url, "title": str(number)}) for number in range(10)]
    await hardy.wait_silence(10)
    mark = hardy.mark()
    await asyncio.to_thread(mortal.router.start)
    packets = await hardy.wait_run(100, mark, PATIENT_MS / 1_000)
    assert abs(dominant_frequency(decode(packets)[5 * FRAME :, 0]) - 440) < 1
    answers = await asyncio.gather(*asked)
    assert not [answer for answer in answers if "requestError" in answer], answers
    state = await hardy.state()
    assert [entry["title"] for entry in state["queue"]] == [str(number) for number in range(10)], state["queue"]
    assert state["connected"] and state["error"] is None and state["playback"] == "streaming", state
    assert [change["connected"] for change in hardy.connections] == [True, False, True], hardy.connections


async def test_a_killed_engine_is_found_again(mortal, hardy):
    await hardy.ask("hear")
    await hardy.ask("play", TONE.url)
    await hardy.wait_run(50)
    mortal.engine.kill()
    position = (await hardy.wait_state("news", lambda state: not state["engineConnected"]))["positionMs"]
    await hardy.wait_silence(10)
    assert (await hardy.state())["positionMs"] == position
    asked = hardy.begin("volume", 0.5)
    mark = hardy.mark()
    await asyncio.to_thread(mortal.engine.start)
    packets = await hardy.wait_run(100, mark, PATIENT_MS / 1_000)
    assert abs(dominant_frequency(decode(packets)[5 * FRAME :, 0]) - 440) < 1
    assert (await asked).get("result"), await asked
    assert (await hardy.state())["volume"] == 0.5


async def test_a_repeated_answer_does_not_turn_the_state_back(bot):
    """The first one's answer comes again, and others have gone on since."""
    await bot.ask("play", TONE.url)
    await bot.wait_state("sound", lambda state: state["playback"] == "streaming")
    await bot.ask("command", "pause", {"idempotency_key": "mine"})
    await bot.ask("resume")
    assert (await bot.ask("command", "pause", {"idempotency_key": "mine"}))["type"] == "paused"
    assert (await bot.state())["playback"] == "streaming"


async def test_nobody_waits_for_ever(mortal, media, installed):
    async with node_bot(installed, mortal.router.url, "guild", patienceMs=3_000) as bot:
        await bot.ask("start")
        mortal.engine.kill()
        await bot.wait_state("news", lambda state: not state["engineConnected"])
        with pytest.raises(AntiphonError, match="engine_unavailable"):
            await bot.ask("play", TONE.url)
        mortal.router.kill()
        await bot.wait_state("loss", lambda state: not state["connected"])
        with pytest.raises(AntiphonError, match="connection_lost"):
            await bot.ask("pause")
        async with node_bot(installed, mortal.router.url, "guild", patienceMs=500) as late:
            with pytest.raises(AntiphonError, match="connection_lost"):
                await late.ask("start")
            await asyncio.to_thread(mortal.router.start)
            await late.wait_state("connection", lambda state: state["connected"])


async def test_a_network_that_goes_without_a_word_is_noticed(mortal, media, installed):
    media.path(TONE)
    async with (
        relay(mortal.router.address) as network,
        node_bot(installed, network.url, "guild", patienceMs=PATIENT_MS) as bot,
    ):
        await bot.ask("start")
        await bot.ask("hear")
        await bot.ask("play", TONE.url)
        await bot.wait_run(25)
        network.cut()
        await bot.wait_state("notice", lambda state: not state["connected"], 30)
        mark = bot.mark()
        network.restore()
        await bot.wait_run(25, mark, PATIENT_MS / 1_000)


async def test_an_error_at_the_handshake(guarded, mint, installed):
    for tokens, session, code in (
        ([None], "guild-1", "unauthorized"),
        ([mint.token(seconds=-5)], "guild-1", "unauthorized"),
        ([mint.token(session="guild-2")], "guild-1", "forbidden"),
        ([mint.token()], "no good/id", "invalid_session_id"),
    ):
        async with node_bot(installed, guarded.router.url, session, tokens=tokens) as bot:
            with pytest.raises(AntiphonError) as refused:
                await bot.ask("start")
            assert refused.value.code == code and refused.value.message, repr(refused.value)


async def test_an_expired_token_is_replaced_and_the_sound_goes_on(guarded, mint, media, installed):
    media.path(TONE)
    tokens = [mint.token(seconds=4), mint.token()]
    async with node_bot(installed, guarded.router.url, "guild-9", tokens=tokens, patienceMs=PATIENT_MS) as bot:
        await bot.ask("start")
        await bot.ask("hear")
        await bot.ask("play", TONE.url)
        await bot.wait_state("another token", lambda state: state["tokensAsked"] >= 2 and state["connected"])
        mark = bot.mark()
        await bot.wait_run(50, mark)
    assert [change["error"]["code"] for change in bot.connections if change["error"]] == ["unauthorized"]
