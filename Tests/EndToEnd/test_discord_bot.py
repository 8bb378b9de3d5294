"""The real Discord bot, with the real discord.py, in a fake Discord, playing from the real Router and engine."""

import asyncio
import functools
import json
import os
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
from antiphon_bot import health
from antiphon_client import SILENCE

from analysis import dominant_frequency
from client import OPUS, listen, request
from discord_bot import Stage, heard, sound, stages, until
from extraction import COLD_SECONDS, search_options
from fake_discord import FakeDiscord, Permission, RtpPacket
from media import FLAC, OGG_OPUS, glides_clip, tone_clip
from page_server import PageServer
from processes import Antiphon
from signals import Glides
from tagged import make_picture, make_tagged

SONG = tone_clip(440, 120, OGG_OPUS)
OTHER = tone_clip(700, 120, OGG_OPUS)
THIRD = tone_clip(1_000, 30, FLAC)
#: No two of its packets are alike.
GLIDES = glides_clip("discord-glides", Glides(30), OGG_OPUS)


@pytest.fixture(scope="module", autouse=True)
def _files(media):
    media.make(SONG, OTHER, THIRD, GLIDES)


@pytest.fixture
async def stage(antiphon, tmp_path):
    """One guild; anna is in Music."""
    async with stages(antiphon, tmp_path, "one") as (only,):
        only.move("anna", "Music")
        yield only


def assert_rtp(packets: list[RtpPacket], what: str) -> None:
    """Each is the next one of its stream."""
    for before, after in pairwise(packets):
        assert after.sequence == (before.sequence + 1) % 2**16, f"{what}: {after.sequence} after {before.sequence}"
        assert after.timestamp == (before.timestamp + 960) % 2**32, (
            f"{what}: {after.timestamp} after {before.timestamp}"
        )
        assert after.ssrc == before.ssrc, f"{what}: another SSRC"


def assert_plays(packets: list[RtpPacket], frequency: float) -> None:
    found = dominant_frequency(heard(packets))
    assert abs(found - frequency) < 2, f"{found:.1f} Hz is heard, not {frequency}"


async def test_packets_arrive_unaltered_and_in_time(antiphon, stage):
    async with listen(antiphon.router.url, stage.session, OPUS, buffer_ms=0) as listener:
        reply = await stage.ask("play", query=GLIDES.url)
        assert GLIDES.name in reply.text.replace("\\", "") and not reply.ephemeral, reply
        await stage.voice.wait_connected()
        begun = stage.voice.mark()
        packets = await stage.voice.wait_packets(400, since=begun)
        original = {packet.audio: place for place, packet in enumerate(listener.packets())}

    assert_rtp(packets, "of the song")
    music = sound(packets)
    places = [original.get(packet.opus) for packet in music]
    assert None not in places, f"packet {places.index(None)} is none of the session's"
    steps = [after - before for before, after in pairwise(places)]
    # A machine that stands still may cost some; none is ever heard twice or out of order.
    assert min(steps) == 1 and steps.count(1) >= 0.95 * len(steps), steps
    assert len(music) >= 0.9 * len(packets), f"{len(packets) - len(music)} of {len(packets)} are silence"
    gaps = np.diff([packet.arrived_ns for packet in packets]) / 1e6
    assert 18 < np.median(gaps) < 22, f"{np.median(gaps):.1f} ms apart"
    assert 19.5 < np.mean(gaps) < 20.5, f"{np.mean(gaps):.2f} ms apart in the mean"
    assert np.percentile(gaps, 90) < 60, np.percentile(gaps, [50, 90, 99, 100])


async def test_two_guilds_hear_their_own(antiphon, tmp_path):
    async with stages(antiphon, tmp_path, "one", "two") as (one, two):
        for stage, clip in ((one, SONG), (two, OTHER)):
            stage.move("anna", "Music")
            await stage.ask("play", query=clip.url)
        low, high = await asyncio.gather(one.hear(150), two.hear(150))
        assert_plays(low, 440)
        assert_plays(high, 700)
        assert not {packet.opus for packet in low} & {packet.opus for packet in high}
        # What one does is nothing to the other.
        await one.ask("pause")
        await one.voice.wait_quiet()
        assert_plays(await two.hear(100), 700)


async def test_pause_and_resume(antiphon, stage):
    await stage.ask("play", query=SONG.url)
    await stage.hear(50)
    begun = stage.voice.mark()
    assert "Paused" in (await stage.ask("pause")).text
    await stage.voice.wait_quiet(1.0)
    end = stage.voice.packets(begun)
    assert [packet.opus for packet in end[-5:]] == [SILENCE] * 5, "no silence before nothing"
    assert not stage.voice.is_speaking
    await stage.refused("pause", "paused already")

    before, since = end[-1], stage.voice.mark()
    await stage.ask("resume")
    assert_plays(await stage.hear(100, since), 440)
    assert_rtp([before, *stage.voice.packets(since)], "over the pause")
    assert stage.voice.is_speaking
    await stage.refused("resume", "plays already")


async def test_the_queue_by_commands(antiphon, stage):
    await stage.ask("play", query=SONG.url)
    added = await stage.ask("play", query=OTHER.url)
    assert "number 1 in the queue" in added.text, added
    await stage.ask("play", query=THIRD.url)
    assert "number 1 in the queue" in (await stage.ask("play", query=GLIDES.url, next=True)).text
    queue = await stage.ask("queue")
    assert queue.ephemeral and "3 tracks waiting" in queue.text, queue
    names = [clip.name for clip in (SONG, GLIDES, OTHER, THIRD)]
    places = [queue.text.find(name) for name in names]
    assert -1 not in places and places == sorted(places), queue.text

    offered = await stage.typed("remove", "track", "700")
    assert len(offered) == 1 and next(iter(offered)).startswith(f"2. {OTHER.name}"), offered
    gone = next(iter(offered.values()))
    assert OTHER.name in (await stage.ask("remove", track=gone)).text
    await stage.refused("remove", "not in the queue any more", track=gone)
    await stage.refused("remove", "no number 9", track="9")
    await stage.refused("remove", "No such track", track="what is not there")
    assert THIRD.name in (await stage.ask("remove", track="2")).text
    await stage.refused("shuffle", "fewer than two")
    for _ in range(2):
        await stage.ask("play", query=OTHER.url)
    assert "3 tracks shuffled" in (await stage.ask("shuffle")).text

    await stage.ask("play", query=THIRD.url, next=True)
    begun = stage.voice.mark()
    skipped = await stage.ask("skip")
    assert THIRD.name in skipped.text, skipped
    assert_plays((await stage.hear(150, begun))[50:], 1_000)
    begun = stage.voice.mark()
    assert SONG.name in (await stage.ask("previous")).text
    assert_plays((await stage.hear(150, begun))[50:], 440)

    assert "queue" in (await stage.ask("loop", mode="queue")).text
    assert "loop: queue" in (await stage.ask("queue")).text
    assert "Stopped" in (await stage.ask("stop")).text
    await stage.voice.wait_disconnected()
    assert "Nothing is playing" in (await stage.ask("queue")).text
    for command in ("pause", "skip", "seek", "nowplaying", "stop"):
        options = {"position": "0"} if command == "seek" else {}
        await stage.refused(command, "Nothing is playing", **options)


async def test_the_queue_has_pages(antiphon, stage):
    tracks = [{"url": SONG.url, "title": f"Song {number}"} for number in range(1, 24)]
    await request("POST", f"{antiphon.router.url}/api/v1/sessions/{stage.session}/queue", {"tracks": tracks})
    reply = await stage.ask("queue")
    assert "Song 11" in reply.text and "Song 12" not in reply.text and "page 1 of 3" in reply.text, reply
    anna = stage.member("anna")
    for page, label, first in ((2, "▶", 12), (3, "▶", 22), (2, "◀", 12)):
        await stage.fake.press(anna, reply, label)
        await reply.wait(lambda reply: f"page {page} of 3" in reply.text, f"page {page}")
        assert f"**Song {first}**" in reply.text, reply
    await request("DELETE", f"{antiphon.router.url}/api/v1/sessions/{stage.session}/queue")
    await stage.fake.press(anna, reply, "▶")
    await reply.wait(lambda reply: "0 tracks waiting" in reply.text, "the page that there is")


async def test_places_and_volume(antiphon, stage):
    await stage.ask("play", query=SONG.url)
    await stage.hear(20)
    for position, low, high in (("1:00", 60, 64), ("+10", 70, 90), ("-40", 25, 60)):
        await stage.ask("seek", position=position)
        state = await request("GET", f"{antiphon.router.url}/api/v1/sessions/{stage.session}")
        assert low <= state.body["position_ms"] / 1_000 <= high, (position, state)
    await stage.refused("seek", "only 2:00 long", position="2:01")
    await stage.refused("seek", "no time", position="later")
    assert "50 %" in (await stage.ask("volume", percent=50)).text
    state = await request("GET", f"{antiphon.router.url}/api/v1/sessions/{stage.session}")
    assert state.body["volume"] == 0.5, state

    shown = await stage.ask("nowplaying")
    (embed,) = shown.embeds
    assert shown.ephemeral and embed["title"].replace("\\", "") == SONG.name and "🔘" in embed["description"], embed
    assert "/ 2:00" in embed["description"], embed
    assert "for anna" in embed["footer"]["text"] and "volume 50%" in embed["footer"]["text"], embed
    await stage.ask("volume", percent=0)
    why = await stage.ask("why")
    assert why.ephemeral and "volume is 0 %" in why.text, why.text


async def test_what_is_suggested(antiphon, stage):
    offered = await stage.typed("play", "query", "tone 440 120")
    assert offered == {f"🎵 {SONG.file}": SONG.url}, offered
    assert len(await stage.typed("play", "query", "")) >= 4
    assert await stage.typed("play", "query", "https://music.example/x") == {
        "https://music.example/x": "https://music.example/x"
    }
    assert await stage.typed("play", "query", "zz") == {}
    long = "https://music.example/" + "x" * 200
    (value,) = (await stage.typed("play", "query", long)).values()
    # What stands behind it is the whole address again.
    await stage.refused("play", "music.example", query=value)


async def test_a_search(tmp_path, media):
    """Words are looked for while somebody types; a hit's name is shown as it is, and its whole address is played."""
    with PageServer() as site:
        address = f"{site.url}/song.opus?{'x' * 150}"
        site.add("/song.opus", lambda asked: asked.media(media.bytes(SONG)))
        hits = [{"url": address, "title": "**A** <@1> @everyone", "by": "A band", "seconds": 120}]
        site.add("/search", lambda asked: asked.answer(200, json.dumps(hits).encode(), "application/json"))
        options = search_options(tmp_path / "plugins", f"{site.url}/search")
        with Antiphon(tmp_path, media.root, allow=("127.0.0.1/32",), engine_options=options) as antiphon:
            async with stages(antiphon, tmp_path, "one") as (stage,):
                stage.move("anna", "Music")
                # yt-dlp takes a while to start: what comes too late for one letter is there at another.
                find = functools.partial(stage.typed, "play", "query", "some words")
                offered = await until(find, "suggestion", COLD_SECONDS)
                (value,) = offered.values()
                assert list(offered) == ["A band – **A** <@1> @everyone (2:00)"] and len(value) <= 100, offered
                reply = await stage.ask("play", query=value)
                # Invisible characters keep mentions from being ones.
                shown = reply.text.replace("\u200b", "")
                assert shown.startswith(r"▶ **A band – \*\*A\*\* \<@1> @everyone** `2:00` · anna"), shown
                assert_plays(await stage.hear(100), 440)
                assert "number 1" in (await stage.ask("play", query="other words")).text
                hits.clear()
                await stage.refused("play", "Nothing was found", query="what nobody has")


async def test_a_cover(antiphon, stage, media, tmp_path):
    """The Router's own pictures go along as files: Discord could not fetch them."""
    url = make_tagged(media, "discord.flac", {"title": "A title", "artist": "A band"}, cover=make_picture(tmp_path))
    await stage.ask("play", query=url)
    (embed,) = (await stage.ask("nowplaying")).embeds
    assert embed["thumbnail"]["url"] == "attachment://cover.jpg", embed
    assert embed["title"] == "A title" and embed["author"]["name"] == "A band", embed


async def test_what_is_refused(antiphon, stage):
    await stage.refused("play", "Join a voice channel", by="ben", query=SONG.url)
    await stage.refused("play", "nothing-there.mp3", query="media:nothing-there.mp3")
    await stage.voice.wait_disconnected()
    await stage.refused("play", "queue is empty")
    await stage.refused("previous", "no track before")
    await stage.refused("resume", "no voice channel")
    await stage.ask("play", query=SONG.url)
    await stage.voice.wait_connected()
    for command in ("pause", "resume", "skip", "previous", "stop", "shuffle"):
        await stage.refused(command, "Join a voice channel", by="ben")
    stage.move("ben", "Other")
    await stage.refused("play", "playing for 1 listener", by="ben", query=OTHER.url)
    await stage.refused("volume", "Come to", by="ben", percent=10)
    # Who only looks need not be there.
    assert SONG.name in (await stage.ask("queue", by="ben")).text


async def test_the_dj_role(antiphon, tmp_path):
    async with stages(antiphon, tmp_path, "one", options=["--dj-role", "dj"]) as (stage,):
        stage.move("ben", "Music")
        await stage.ask("play", by="ben", query=SONG.url)
        stage.move("anna", "Music")
        for command in ("pause", "skip", "stop"):
            await stage.refused(command, "role “DJ”", by="ben")
        await stage.refused("play", "role “DJ”", by="ben", query=OTHER.url)
        stage.move("dj", "Music")
        await stage.ask("pause", by="dj")
        # The owner manages the server, from wherever.
        await stage.ask("resume", by="owner")
        stage.move("dj", None)
        stage.move("anna", None)
        await stage.ask("pause", by="ben")


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
    """Whoever asks for something meanwhile is told, and what is asked later works."""
    async with stages(mortal, tmp_path, "one") as (stage,):
        stage.move("anna", "Music")
        mortal.router.kill()
        assert await stage.typed("play", "query", "tone") == {}
        await stage.refused("play", "cannot reach the music server", query=SONG.url)
        mortal.router.start()
        await stage.ask("play", query=SONG.url)
        assert_plays(await stage.hear(100), 440)


@pytest.mark.parametrize("code", [4006, 4009, 4015, 1006])
async def test_the_voice_connection_breaks(antiphon, stage, code):
    await stage.ask("play", query=SONG.url)
    await stage.hear(50)
    since = stage.voice.mark()
    stage.fake.drop_voice(stage.guild, code)
    await stage.voice.wait(lambda: stage.voice.handshakes + stage.voice.resumes >= 2, "another connection", 40)
    assert_plays((await stage.hear(150, since + 10))[50:], 440)


async def test_a_handshake_that_is_lost(antiphon, stage, monkeypatch):
    """Discord answers the first time only half; whoever asked is not left waiting."""
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


async def test_a_channel_it_may_not_enter(antiphon, stage):
    closed = stage.guild.channel("Other")
    closed.denied = Permission.CONNECT
    stage.fake.drop_gateway(resume=False)
    await stage.fake.wait_ready(2)
    stage.move("ben", "Other")
    await stage.refused("play", "“Connect”", by="ben", query=SONG.url)


async def test_the_end_of_the_bot(antiphon, stage):
    """It says goodbye to Discord in time; who listens elsewhere hears the music go on."""
    async with listen(antiphon.router.url, stage.session, OPUS) as listener:
        await stage.ask("play", query=SONG.url)
        await stage.hear(50)
        status, seconds = await _terminate(stage)
        assert status == 0 and seconds < 5, f"status {status} after {seconds:.1f} s"
        await stage.voice.wait_disconnected()
        await listener.wait_packets(100, since=listener.mark())
        assert not listener.events("paused") and not listener.events("ended")


async def test_a_broken_file(antiphon, stage, media):
    """It is found only when it is opened: the asker is told all the same, and the bot does not stay for it."""
    url = media.write("discord-broken.mp3", b"this is no music" * 1_000)
    await stage.refused("play", "no audio file", query=url)
    await stage.voice.wait_disconnected()
    await stage.ask("play", query=SONG.url)
    assert_plays(await stage.hear(75), 440)


async def test_a_token_that_discord_does_not_take(antiphon, tmp_path):
    async with FakeDiscord() as fake:
        good, fake.token = fake.token, "another"
        environment = os.environ | fake.environment | {"DISCORD_TOKEN": good}
        environment["PYTHONPATH"] = os.pathsep.join([*sys.path, environment["PYTHONPATH"]])
        ended = await asyncio.to_thread(
            subprocess.run, fake.command_line("antiphon_bot"), env=environment, capture_output=True, text=True
        )
        assert ended.returncode == 64 and "Reset Token" in ended.stderr and "Traceback" not in ended.stderr, ended


async def test_health(antiphon, tmp_path):
    file = tmp_path / "health"
    check = [sys.executable, "-m", "antiphon_bot.health", str(file)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    before = subprocess.run(check, env=environment, capture_output=True, text=True)
    assert before.returncode == 1 and "has not said" in before.stderr, before
    async with stages(antiphon, tmp_path, "one", options=["--health-file", str(file)]):

        async def well() -> bool:
            return health.problem(file) is None

        await until(well, "word that it is well")
        assert (await asyncio.to_thread(subprocess.run, check, env=environment)).returncode == 0


async def test_announcements(antiphon, tmp_path):
    async with stages(antiphon, tmp_path, "one", options=["--announce"]) as (stage,):
        stage.move("anna", "Music")
        await stage.ask("play", query=SONG.url)
        await stage.ask("play", query=OTHER.url)
        await stage.ask("skip")
        await stage.fake.wait_message(stage.guild.text, lambda message: OTHER.name in message.text, "announcement")


async def test_a_token_for_the_router(guarded, tmp_path, mint):
    """Read from its file at each connection: a bot with a bad one is well again when the file has a good one."""
    file = tmp_path / "token"
    file.write_text("not.a.token")
    options = ["--antiphon-token-file", str(file)]
    async with stages(guarded, tmp_path, "one", options=options) as (stage,):
        stage.move("anna", "Music")
        await stage.refused("play", "does not accept my token", query=SONG.url)
        file.write_text(mint.token("*", "control"))
        await stage.ask("play", query=SONG.url)
        assert_plays(await stage.hear(75), 440)


async def _terminate(stage: Stage) -> tuple[int, float]:
    loop = asyncio.get_running_loop()
    begun = loop.time()
    return await asyncio.to_thread(stage.bot.terminate), loop.time() - begun


def _state(listener) -> str | None:
    sessions = listener.events("session")
    return sessions[-1]["session"]["state"] if sessions else None
