"""The fake Discord, with the real discord.py as its client."""

import asyncio
import contextlib
import statistics
from collections.abc import AsyncIterator
from itertools import pairwise

import aiohttp
import discord
import pytest
import yarl
from discord.gateway import DiscordWebSocket
from discord.http import Route

from fake_discord import FakeDiscord
from media import OGG_OPUS, tone_clip


@pytest.fixture
async def fake(monkeypatch) -> AsyncIterator[FakeDiscord]:
    async with FakeDiscord() as running:
        monkeypatch.setattr(Route, "BASE", running.api_url)
        monkeypatch.setattr(DiscordWebSocket, "DEFAULT_GATEWAY", yarl.URL(running.gateway_url))
        yield running


@contextlib.asynccontextmanager
async def logged_in(fake: FakeDiscord) -> AsyncIterator[discord.Client]:
    """A client of discord.py's that is ready."""
    connector = aiohttp.TCPConnector(ssl=fake.certificate.client_context())
    client = discord.Client(intents=discord.Intents.default(), connector=connector)
    async with client:
        running = asyncio.create_task(client.start(fake.token))
        await asyncio.wait_for(client.wait_until_ready_or_failed(running) if False else _ready(client, running), 15)
        yield client
    await asyncio.gather(running, return_exceptions=True)


async def _ready(client, running):
    while not client.is_ready():
        if running.done():
            running.result()
        await asyncio.sleep(0.02)


class Packets(discord.AudioSource):
    def __init__(self, packets): self.packets = iter(packets)
    def is_opus(self): return True
    def read(self): return next(self.packets, b"")


async def test_joins(fake):
    guild = fake.add_guild("one")
    async with logged_in(fake) as client:
        channel = client.get_channel(guild.channel("Music").id)
        vc = await channel.connect(timeout=10)
        voice = fake.voice(guild)
        await voice.wait_connected()
        sound = [bytes([0xFC]) + i.to_bytes(2, "big") for i in range(100)]
        vc.play(Packets(sound))
        packets = await voice.wait_packets(100)
        assert [p.opus for p in packets] == sound
        await vc.disconnect()
        await voice.wait_disconnected()
