"""A client of discord.py's in the tests' own process, for what needs no bot of its own."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import aiohttp
import discord
from discord import app_commands

from inbox import PATIENCE_SECONDS

from .launch import point_at
from .server import FakeDiscord


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
