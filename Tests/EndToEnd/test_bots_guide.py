"""docs/bots.md: its programs are run as they are printed there."""

import asyncio
import contextlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from analysis import dominant_frequency
from documents import program
from fake_discord import FakeDiscord
from hearing import SILENCE, until
from media import OGG_OPUS, tone_clip
from node_client import install
from opus import FRAME, decode
from processes import ROOT

GUIDE = (ROOT / "docs" / "bots.md").read_text()
README = (ROOT / "deploy" / "clients" / "python" / "README.md").read_text()
NODE_README = (ROOT / "deploy" / "clients" / "node" / "README.md").read_text()
PYTHON_PACKAGE = ROOT / "deploy" / "clients" / "python"

SHORT = tone_clip(440, 2, OGG_OPUS)
SONG = tone_clip(440, 120, OGG_OPUS)


def written(folder: Path, text: str, name: str) -> Path:
    path = folder / name
    path.write_text(program(text, name))
    return path


@contextlib.asynccontextmanager
async def running(*command: object, **environment: str):
    """A process whose output can be read; killed at the end."""
    process = await asyncio.create_subprocess_exec(
        *map(str, command),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env=os.environ | environment,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def test_the_websocket_in_twenty_lines(antiphon, media, new_session, tmp_path):
    media.path(SHORT)
    listen = written(tmp_path, GUIDE, "listen.py")
    router = antiphon.router.url.replace("http", "ws")
    async with running(sys.executable, listen, router, new_session(), SHORT.url) as process:
        output = (await process.stdout.read()).decode()
        assert await process.wait() == 0, output
    assert 100 <= output.count("packet of ") <= 102, output
    for event in ("session", "extracting", "ready", "playing", "ended"):
        assert re.search(rf"^{event}\b", output, re.MULTILINE), output
    assert len([line for line in program(GUIDE, "listen.py").splitlines() if line.strip()]) <= 23


async def test_the_websocket_in_twenty_lines_says_what_is_wrong(antiphon, new_session, tmp_path):
    listen = written(tmp_path, GUIDE, "listen.py")
    router = antiphon.router.url.replace("http", "ws")
    async with running(sys.executable, listen, router, new_session(), "media:none.opus") as process:
        output = (await process.stdout.read()).decode()
    assert "error media:none.opus does not exist" in output, output


async def test_the_bot_plays_in_a_voice_channel(antiphon, media, fake: FakeDiscord, tmp_path):
    """The real discord.py in a process of its own, and a Discord made for the tests."""
    media.path(SONG)
    written(tmp_path, GUIDE, "bot.py")
    guild = fake.add_guild("one", voice_channels=["Music"], members={"anna": []})
    anna = guild.member("anna")
    environment = fake.environment | {"DISCORD_TOKEN": fake.token, "ANTIPHON_URL": antiphon.router.url}
    environment["PYTHONPATH"] = os.pathsep.join([environment["PYTHONPATH"], str(tmp_path), str(PYTHON_PACKAGE)])
    async with running(*fake.command_line("bot"), **environment) as process:
        await fake.wait_ready()
        reply = await fake.invoke(guild, anna, "play", {"query": SONG.url})
        await reply.wait(lambda reply: "voice channel" in reply.text, "the error: she is in none")
        fake.move_user(guild, anna, guild.channel("Music"))
        reply = await fake.invoke(guild, anna, "play", {"query": SONG.url})
        await reply.wait(lambda reply: "Added 1" in reply.text, "answer")
        voice = fake.voice(guild)
        await voice.wait_connected()

        def sound() -> list[bytes]:
            return [packet.opus for packet in voice.packets() if packet.opus != SILENCE]

        await until(lambda: len(sound()) >= 100, "sound", 30)
        assert abs(dominant_frequency(decode(sound()[:100])[5 * FRAME :, 0]) - 440) < 2
        reply = await fake.invoke(guild, anna, "play", {"query": "media:none.opus"})
        await reply.wait(lambda reply: "does not exist" in reply.text, "reason")
        assert process.returncode is None


@pytest.mark.parametrize("text, name", [(GUIDE, "play.js"), (NODE_README, "bot.js")])
def test_the_programs_for_node_are_at_least_readable(tmp_path, text, name):
    """discord.js is not to be had where the tests run."""
    path = written(tmp_path, text, name).rename(tmp_path / "program.mjs")
    done = subprocess.run(["node", "--check", path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


async def test_the_readme_of_the_package(antiphon, media, new_session, tmp_path):
    media.path(SHORT)
    path = written(tmp_path, README, "example.py")
    environment = {"PYTHONPATH": str(PYTHON_PACKAGE), "ANTIPHON_URL": antiphon.router.url}
    async with running(sys.executable, path, new_session(), SHORT.url, **environment) as process:
        output = (await process.stdout.read()).decode()
        assert await process.wait() == 0, output
    assert f"playing {SHORT.name}" in output and "ended finished" in output, output
    assert "source_not_found" in output, output


async def test_the_readme_of_the_package_for_node(antiphon, media, new_session, tmp_path):
    media.path(SHORT)
    path = written(install(tmp_path), NODE_README, "example.mjs")
    async with running("node", path, new_session(), SHORT.url, ANTIPHON_URL=antiphon.router.url) as process:
        output = (await process.stdout.read()).decode()
        assert await process.wait() == 0, output
    assert f"playing {SHORT.name}" in output and "ended finished" in output, output
    assert "source_not_found" in output, output


def test_links_lead_somewhere():
    for text, folder in (
        (GUIDE, "docs"),
        (README, "deploy/clients/python"),
        (NODE_README, "deploy/clients/node"),
    ):
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
            assert (ROOT / folder / link).exists(), link
