"""What breaks below the Discord bot, and people who come and go: the sound goes on without a word from anybody."""

import asyncio
import os
import signal

import pytest
from antiphon_client import SILENCE

from client import OPUS, listen
from discord_bot import OTHER, SONG, assert_plays, assert_rtp, stages, until

pytestmark = pytest.mark.usefixtures("songs")


@pytest.mark.parametrize("who", ["router", "engine"])
async def test_a_process_is_killed_in_the_middle_of_a_song(mortal, tmp_path, who):
    async with stages(mortal, tmp_path, "one") as (stage,):
        stage.move("anna", "Music")
        await stage.ask("play", query=SONG.url)
        await stage.hear(50)
        server = getattr(mortal, who)
        server.kill()
        begun = stage.voice.mark()
        await stage.voice.wait(lambda: SILENCE in [p.opus for p in stage.voice.packets(begun)], "silence meanwhile")
        since = stage.voice.mark()
        await asyncio.to_thread(server.start)
        assert_plays((await stage.hear(150, since))[50:], 440)
        assert stage.voice.handshakes == 1, "the bot has left the channel meanwhile"
        assert_rtp(stage.voice.packets(), "over the whole time")


async def test_the_router_is_away(mortal, tmp_path):
    """Anyone who asks for something meanwhile is told, and what is asked later works."""
    async with stages(mortal, tmp_path, "one") as (stage,):
        stage.move("anna", "Music")
        mortal.router.kill()
        assert await stage.typed("play", "query", "tone") == {}
        await stage.refused("play", "cannot reach the music server", query=SONG.url)
        mortal.router.start()
        await stage.ask("play", query=SONG.url)
        assert_plays(await stage.hear(100), 440)


async def test_the_router_is_slow(mortal, tmp_path):
    """Who asks sees that the bot is at it, and then an answer like any other: without previews of its links."""
    async with stages(mortal, tmp_path, "one") as (stage,):
        stage.move("anna", "Music")
        await stage.ask("play", query=SONG.url)
        for command, options in (("pause", {}), ("queue", {})):
            os.kill(mortal.router.pid, signal.SIGSTOP)
            asked = asyncio.create_task(stage.fake.invoke(stage.guild, stage.member("anna"), command, options))

            async def is_deferred() -> bool:
                return list(stage.fake.interactions.by_token.values())[-1].reply.kind == "deferred"

            try:
                await until(is_deferred, "word meanwhile")
            finally:
                os.kill(mortal.router.pid, signal.SIGCONT)
            reply = await asked
            await reply.wait(lambda reply: reply.text, "words")
            assert reply.ephemeral == (command == "queue") and not reply.followups, reply
            assert reply.message.without_previews, reply


async def test_the_voice_connection_breaks(antiphon, tmp_path):
    """For four reasons, in as many guilds."""
    reasons = (4006, 4009, 4015, 1006)

    async def check(stage, code: int) -> None:
        stage.move("anna", "Music")
        await stage.ask("play", query=SONG.url)
        await stage.hear(50)
        since = stage.voice.mark()
        stage.fake.drop_voice(stage.guild, code)
        await stage.voice.wait(lambda: stage.voice.handshakes + stage.voice.resumes >= 2, f"another after {code}", 40)
        assert_plays((await stage.hear(150, since + 10))[50:], 440)

    async with stages(antiphon, tmp_path, *map(str, reasons)) as guilds:
        await asyncio.gather(*map(check, guilds, reasons))


async def test_a_handshake_that_is_lost(antiphon, stage, monkeypatch):
    """Discord answers the first time only half; anyone who asked is not left waiting."""
    server, lost = stage.fake.voice_server, [stage.guild]
    admit = server._admit
    monkeypatch.setattr(server, "_admit", lambda guild: lost.pop() if lost else admit(guild))
    await stage.ask("play", query=SONG.url)
    assert not lost
    assert_plays(await stage.hear(75), 440)


async def test_the_voice_server_changes(antiphon, stage):
    await stage.ask("play", query=SONG.url)
    await stage.hear(50)
    stage.fake.change_voice_server(stage.guild)
    # discord.py sometimes waits for its own time-out first, and is then helped.
    await stage.voice.wait(lambda: stage.voice.connected and stage.voice.handshakes >= 2, "another connection", 40)
    assert_plays(await stage.hear(100), 440)


async def test_paused_in_the_middle_of_a_handshake(antiphon, stage):
    """What the bot says of its speaking names the SSRC of the connection that it is said on, or it is not said."""
    stage.move("ben", "Other")
    await stage.ask("play", query=SONG.url)
    await stage.hear(25)
    answers = stage.fake.voice_server.answers
    answers.clear()
    stage.fake.move_user(stage.guild, stage.guild.bot, stage.guild.channel("Other"))
    await stage.voice.wait(lambda: stage.voice.session and stage.voice.session.socket, "half a handshake")
    # Longer than the silence that is sent after a pause.
    await stage.ask("pause", by="ben")
    await asyncio.sleep(1)
    await stage.ask("resume", by="ben")
    answers.set()
    assert_plays(await stage.hear(75), 440)


@pytest.mark.parametrize("resume", [True, False])
async def test_the_gateway_breaks(antiphon, stage, resume):
    await stage.ask("play", query=SONG.url)
    await stage.hear(50)
    stage.fake.drop_gateway(resume=resume)
    await (stage.fake.wait_resumed() if resume else stage.fake.wait_ready(2))
    if not resume:
        # With the session Discord forgets that the bot was in the channel.
        await stage.voice.wait_connected(2)
    assert_plays(await stage.hear(100), 440)
    await stage.ask("pause")


async def test_thrown_out(antiphon, stage):
    """It does not come back uninvited; the music waits; the next /play goes on."""
    await stage.ask("play", query=SONG.url)
    await stage.hear(50)
    stage.fake.kick_voice(stage.guild)
    await stage.voice.wait_disconnected()
    async with listen(antiphon.router.url, stage.session, OPUS) as listener:
        await listener.wait(lambda: _state(listener) == "paused" or listener.events("paused"), "pause")
        await stage.refused("resume", "no voice channel")
        assert stage.voice.channel is None and stage.voice.handshakes == 1
        since = stage.voice.mark()
        await stage.ask("play", query=OTHER.url)
        await stage.voice.wait_connected(2)
        assert_plays(await stage.hear(100, since), 440)


async def test_thrown_out_while_voice_reconnects(antiphon, stage):
    """discord.py would come back by itself, and nobody could send the bot away."""
    await stage.ask("play", query=SONG.url)
    await stage.hear(50)
    stage.fake.drop_voice(stage.guild, 1006)

    async def reconnects() -> bool:
        return "Reconnecting in" in stage.bot.tail()

    await until(reconnects, "attempt to reconnect")
    stage.fake.kick_voice(stage.guild)
    # Longer than discord.py waits before it reconnects.
    await asyncio.sleep(3)
    assert stage.voice.channel is None, "it is back uninvited"
    await stage.ask("play", query=OTHER.url)
    assert_plays(await stage.hear(100), 440)


async def test_stopped_while_voice_reconnects(antiphon, stage, monkeypatch):
    """It is sent away in the middle of a handshake that Discord answers only half, and can be called again."""
    server = stage.fake.voice_server
    admit, lost = server._admit, asyncio.Event()
    await stage.ask("play", query=SONG.url)
    await stage.hear(50)
    with monkeypatch.context() as patch:
        patch.setattr(server, "_admit", lambda guild: lost.set())
        stage.fake.drop_voice(stage.guild, 1000)
        await asyncio.wait_for(lost.wait(), 60)
        await stage.ask("stop")
        await stage.voice.wait_disconnected()
    assert server._admit == admit
    await asyncio.sleep(3)
    assert stage.voice.channel is None, "it is back uninvited"
    await stage.ask("play", query=OTHER.url)
    assert_plays(await stage.hear(100), 700)


async def test_in_a_channel_uninvited(antiphon, stage):
    """Whatever has brought it there: it leaves."""
    await stage.ask("play", query=SONG.url)
    await stage.ask("stop")
    await stage.voice.wait_disconnected()
    stage.fake.voice_server.place(stage.guild, stage.guild.bot, stage.guild.channel("Other"))
    await stage.voice.wait(lambda: stage.voice.channel is None, "leaving")
    await stage.ask("play", query=OTHER.url)
    assert_plays(await stage.hear(100), 700)


async def test_left_alone(antiphon, tmp_path):
    async with stages(antiphon, tmp_path, "one", options=["--leave-after", "3"]) as (stage,):
        stage.move("anna", "Music")
        await stage.ask("play", query=SONG.url)
        await stage.hear(25)
        async with listen(antiphon.router.url, stage.session, OPUS) as listener:
            stage.move("anna", None)
            await listener.wait_event("paused")
            # Somebody comes back in time.
            stage.move("ben", "Music")
            since = listener.index(await listener.wait_event("resumed"))
            assert_plays(await stage.hear(75), 440)
            stage.move("ben", None)
            await listener.wait_event("paused", since)
            await stage.voice.wait_disconnected()
            since = listener.mark()
            stage.move("anna", "Other")
            await stage.ask("play", query=OTHER.url)
            await listener.wait_event("resumed", since)
        assert stage.voice.channel is stage.guild.channel("Other")
        assert_plays(await stage.hear(75), 440)


async def test_it_follows(antiphon, stage):
    await stage.ask("play", query=SONG.url)
    stage.move("ben", "Music")
    await stage.hear(25)
    stage.move("anna", "Other")
    # It stays with who listens, and goes with the last one.
    await stage.refused("play", "playing for 1 listener", query=OTHER.url)
    assert stage.voice.channel is stage.guild.channel("Music")
    stage.move("ben", None)
    other = stage.guild.channel("Other")
    await stage.voice.wait(lambda: stage.voice.channel is other and stage.voice.connected, "following to anna")
    assert_plays(await stage.hear(75), 440)
    stage.move("anna", "Music")
    music = stage.guild.channel("Music")
    await stage.voice.wait(lambda: stage.voice.channel is music and stage.voice.connected, "following back")
    assert_plays(await stage.hear(75), 440)
    # Nobody is left: who calls it from elsewhere gets it, and what was paused for want of listeners goes on.
    stage.move("anna", None)
    await stage.voice.wait_quiet()
    stage.move("ben", "Other")
    await stage.ask("play", by="ben", query=OTHER.url)
    assert stage.voice.channel is other
    assert_plays(await stage.hear(75), 440)


async def test_moved_by_a_moderator(antiphon, stage):
    stage.move("ben", "Other")
    await stage.ask("play", query=SONG.url)
    await stage.hear(25)
    stage.fake.move_user(stage.guild, stage.guild.bot, stage.guild.channel("Other"))
    await stage.voice.wait_connected(2)
    assert_plays(await stage.hear(75), 440)
    await stage.ask("pause", by="ben")


def _state(listener) -> str | None:
    sessions = listener.events("session")
    return sessions[-1]["session"]["state"] if sessions else None
