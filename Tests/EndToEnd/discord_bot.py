"""The real bot as a process, in the fake Discord's guilds, playing from the real Router."""

import asyncio
import os
import subprocess
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path

import numpy as np
from antiphon_client import SILENCE

from analysis import dominant_frequency
from fake_discord import FakeDiscord, Guild, Member, RtpPacket, VoiceConnection
from fake_discord.reply import Reply
from inbox import PATIENCE_SECONDS
from media import FLAC, OGG_OPUS, glides_clip, tone_clip
from opus import decode
from processes import ROOT, Antiphon, Server
from signals import Glides

_PACKAGES = [ROOT / "deploy" / "discord-bot", ROOT / "deploy" / "clients" / "python"]


SONG = tone_clip(440, 120, OGG_OPUS)
OTHER = tone_clip(700, 120, OGG_OPUS)
THIRD = tone_clip(1_000, 30, FLAC)
#: No two of its packets are alike.
GLIDES = glides_clip("discord-glides", Glides(30), OGG_OPUS)
SONGS = (SONG, OTHER, THIRD, GLIDES)

#: Commands that change nothing: their answers are for the requester alone.
LOOKING = ("queue", "nowplaying", "why")


class Bot(Server):
    """The process; its log is shown with a failed test."""

    def __init__(self, fake: FakeDiscord, log: Path, router: str, options: Iterable[str] = ()) -> None:
        super().__init__("antiphon_bot", [], log)
        environment = {**os.environ, **fake.environment, "DISCORD_TOKEN": fake.token, "ANTIPHON_URL": router}
        environment["PYTHONPATH"] += "".join(f"{os.pathsep}{package}" for package in _PACKAGES)
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                fake.command_line("antiphon_bot", *options),
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )

    def close(self) -> None:
        try:
            if self.is_running:
                assert self.terminate() == 0, f"the bot did not end well:\n{self.tail()}"
            # discord.py says in errors that connections were lost; those of the bot's own are faults.
            assert " ERROR antiphon" not in self.tail(1_000_000), f"the bot has a fault:\n{self.tail()}"
        finally:
            self.kill()
            Server.all.remove(self)


class Stage:
    """A guild with the channels Music and Other, the people anna and ben, and the bot."""

    def __init__(self, fake: FakeDiscord, bot: Bot, guild: Guild) -> None:
        self.fake = fake
        self.bot = bot
        self.guild = guild

    @property
    def session(self) -> str:
        return str(self.guild.id)

    @property
    def voice(self) -> VoiceConnection:
        return self.fake.voice(self.guild)

    def member(self, name: str) -> Member:
        return self.guild.member(name)

    def move(self, name: str, channel: str | None) -> None:
        self.fake.move_user(self.guild, self.member(name), self.guild.channel(channel) if channel else None)

    async def say(self, command: str, by: str = "anna", **options: str | int | bool) -> Reply:
        """Gives a slash command; the whole answer."""
        reply = await self.fake.invoke(self.guild, self.member(by), command, options)
        await reply.wait(lambda reply: reply.text, "words")
        return reply

    async def ask(self, command: str, by: str = "anna", **options: str | int | bool) -> Reply:
        """As `say`, for what has to succeed: errors, and what only looks, are for the requester alone."""
        reply = await self.say(command, by, **options)
        assert _is_private(reply) == (command in LOOKING), f"/{command} {options} was refused: {reply.text!r}"
        return reply

    async def refused(self, command: str, words: str, by: str = "anna", **options: str | int | bool) -> str:
        """As `say`, for what has to be refused, in such words and for the requester alone."""
        reply = await self.say(command, by, **options)
        assert words in reply.text, f"/{command} {options} is answered {reply.text!r}, without {words!r}"
        assert _is_private(reply), f"/{command} was refused to all: {reply}"
        return reply.text

    async def typed(self, command: str, option: str, text: str, by: str = "anna") -> dict[str, str]:
        """What is offered while somebody types: values by name."""
        choices = await self.fake.autocomplete(self.guild, self.member(by), command, {option: text}, focused=option)
        return {choice["name"]: choice["value"] for choice in choices}

    async def hear(self, packets: int, since: int | None = None, seconds: float | None = None) -> list[RtpPacket]:
        """So many packets with sound, from now or a mark on; those of silence that came between them are left out."""
        begin = self.voice.mark() if since is None else since
        patience = seconds or PATIENCE_SECONDS + packets * 0.02
        await self.voice.wait(lambda: len(sound(self.voice.packets(begin))) >= packets, f"{packets} of sound", patience)
        return sound(self.voice.packets(begin))[:packets]


def _is_private(reply: Reply) -> bool:
    shown = [message for message in (reply.message, *reply.followups) if message and not message.deleted]
    assert shown, f"there is no answer: {reply}"
    return all(message.ephemeral for message in shown)


def sound(packets: Iterable[RtpPacket]) -> list[RtpPacket]:
    """The packets that are not silence."""
    return [packet for packet in packets if packet.opus != SILENCE]


def heard(packets: Iterable[RtpPacket]) -> np.ndarray:
    """One channel of what a person hears, without the decoder's first moment."""
    return decode(packet.opus for packet in packets)[4_800:, 0]


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


@asynccontextmanager
async def stages(
    antiphon: Antiphon, folder: Path, *names: str, options: Iterable[str] = ()
) -> AsyncIterator[list[Stage]]:
    """A bot in so many guilds; anna and ben are members of each, in no channel yet."""
    assert antiphon.router
    async with FakeDiscord() as fake:
        guilds = [
            fake.add_guild(
                name, voice_channels=["Music", "Other"], roles={"DJ": 0}, members={"anna": [], "ben": [], "dj": ["DJ"]}
            )
            for name in names
        ]
        bot = Bot(fake, folder / "bot.log", antiphon.router.url, options)
        try:
            await fake.wait_ready()
            yield [Stage(fake, bot, guild) for guild in guilds]
        except AssertionError as failure:
            failure.add_note(f"the end of the bot's log:\n{bot.tail()}")
            raise
        finally:
            await asyncio.to_thread(bot.close)


async def until(done, what: str, seconds: float = PATIENCE_SECONDS):
    """Asks again and again, for what no event tells."""
    deadline = time.monotonic() + seconds
    while not (result := await done()):
        assert time.monotonic() < deadline, f"no {what} in {seconds} s"
        await asyncio.sleep(0.05)
    return result
