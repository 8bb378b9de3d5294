"""The real Discord bot, with the real discord.py, in a fake Discord, playing from the real Router and engine."""

import asyncio
import os
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
from antiphon_bot import health
from antiphon_client import SILENCE

from client import OPUS, listen
from discord_bot import GLIDES, OTHER, SONG, Stage, assert_plays, assert_rtp, sound, stages, until
from fake_discord import FakeDiscord, RtpPacket

pytestmark = pytest.mark.usefixtures("songs")


@pytest.mark.measures
async def test_packets_arrive_unaltered_and_in_time(antiphon, stage):
    async with listen(antiphon.router.url, stage.session, OPUS, buffer_ms=0) as listener:
        reply = await stage.ask("play", query=GLIDES.url)
        assert GLIDES.name in reply.text.replace("\\", "") and not reply.ephemeral, reply
        await stage.voice.wait_connected()
        begun = stage.voice.mark()
        packets = await stage.voice.wait_packets(250, since=begun)
        original = {packet.audio: place for place, packet in enumerate(listener.packets())}

    assert_rtp(packets, "of the song")
    music = sound(packets)
    assert all(packet.is_encrypted for packet in music), "some are not encrypted end to end"
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


async def test_people_come_and_go_while_music_plays(antiphon, stage):
    """Each time the keys of the end-to-end encryption change; nobody hears it, and who comes hears the same."""
    async with listen(antiphon.router.url, stage.session, OPUS, buffer_ms=0) as listener:
        await stage.ask("play", query=GLIDES.url)
        await stage.voice.wait_connected()
        begun, call = stage.voice.mark(), stage.voice.call
        before, listeners = call.unheard, []
        for channel in ("Music", None, "Music"):
            executed = call.executed
            stage.move("ben", channel)
            await stage.voice.wait(lambda: call.executed > executed, "other keys")
            if channel:
                listeners.append(call.listener(stage.member("ben").user))
            await stage.hear(50)
        packets = stage.voice.packets(begun)
        original = {packet.audio for packet in listener.packets()}
    assert_rtp(packets, "over the changes")
    assert call.unheard == before, "some were encrypted for others"
    music = sound(packets)
    assert all(packet.is_encrypted and packet.opus in original for packet in music)
    for listener in listeners:
        # Of the 50 packets some are silence where the machine stood still.
        heard = [opus for opus in listener.heard if opus != SILENCE][:25]
        assert len(heard) == 25 and heard in _runs(music, 25), "ben hears something else"


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


def _runs(packets: list[RtpPacket], count: int) -> list[list[bytes]]:
    """Every so many packets in a row."""
    opus = [packet.opus for packet in packets]
    return [opus[begin : begin + count] for begin in range(len(opus) - count + 1)]


async def _terminate(stage: Stage) -> tuple[int, float]:
    loop = asyncio.get_running_loop()
    begun = loop.time()
    return await asyncio.to_thread(stage.bot.terminate), loop.time() - begun
