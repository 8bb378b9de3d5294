"""A client of discord.py's in the tests' own process, for what needs no bot of its own."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable

import aiohttp
import discord
from discord import app_commands

from inbox import PATIENCE_SECONDS

from .guilds import Guild
from .launch import point_at
from .server import FakeDiscord
from .voice_connection import VoiceConnection

#: The silence that discord.py sends when it stops.
SILENCE = b"\xf8\xff\xfe"


class Client(discord.Client):
    """With the default intents and a tree of commands."""

    def __init__(self, fake: FakeDiscord) -> None:
        point_at(fake.api_url, fake.gateway_url)
        connector = aiohttp.TCPConnector(ssl=fake.certificate.client_context())
        # Guilds follow READY at once here: discord.py need not wait for stragglers for 2 s.
        intents = discord.Intents.default()
        super().__init__(intents=intents, connector=connector, guild_ready_timeout=0.5)
        self.tree = app_commands.CommandTree(self)


@contextlib.asynccontextmanager
async def logged_in(fake: FakeDiscord) -> AsyncIterator[Client]:
    """A client that is ready."""
    async with Client(fake) as client:
        running = asyncio.create_task(client.start(fake.token))
        ready = asyncio.create_task(client.wait_for("ready", timeout=PATIENCE_SECONDS))
        await asyncio.wait([running, ready], return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            ready.cancel()
            await running
        await ready
        yield client
        await client.close()
        await running


class Prepared(discord.AudioSource):
    """Plays packets that are Opus already; every one is another."""

    def __init__(self, packets: Iterable[bytes]) -> None:
        self._packets = iter(packets)

    def is_opus(self) -> bool:
        return True

    def read(self) -> bytes:
        return next(self._packets, b"")


def numbered(count: int, mark: int = 0) -> list[bytes]:
    """Opus packets, by their first byte (20 ms of stereo), that differ in all that follows."""
    return [b"\xfc" + bytes([mark]) + index.to_bytes(2, "big") * (20 + index % 60) for index in range(count)]


async def join(
    fake: FakeDiscord, client: Client, guild: Guild, *, reconnect: bool = True
) -> tuple[discord.VoiceClient, VoiceConnection]:
    channel = client.get_channel(guild.channel("Music").id)
    assert isinstance(channel, discord.VoiceChannel)
    speaker: discord.VoiceClient = await channel.connect(timeout=15, reconnect=reconnect)
    await fake.voice(guild).wait_connected()
    return speaker, fake.voice(guild)
