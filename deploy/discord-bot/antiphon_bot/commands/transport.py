"""/pause, /resume, /skip, /previous, /stop, /seek and /volume."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import discord
from discord import app_commands

from ..bot import AntiphonBot
from ..errors import RequestError
from ..queue_pages import entry_line
from ..replies import Reply, respond
from ..text import BadTime, clock, parse_seek
from .play import go_on
from .requester import Requester


def add(bot: AntiphonBot) -> None:
    @bot.tree.command(description="Pause the music")
    async def pause(interaction: discord.Interaction) -> None:
        await respond(interaction, _pause(bot, interaction))

    @bot.tree.command(description="Go on where the music was paused")
    async def resume(interaction: discord.Interaction) -> None:
        await respond(interaction, _resume(bot, interaction))

    @bot.tree.command(description="Go to the next track")
    async def skip(interaction: discord.Interaction) -> None:
        await respond(interaction, _skip(bot, interaction))

    @bot.tree.command(description="Go back to the track before this one")
    async def previous(interaction: discord.Interaction) -> None:
        await respond(interaction, _previous(bot, interaction))

    @bot.tree.command(description="Stop the music, empty the queue and leave the voice channel")
    @app_commands.describe(keep_queue="Leave what waits in the queue; /play without words goes on with it")
    async def stop(interaction: discord.Interaction, keep_queue: bool = False) -> None:
        await respond(interaction, _stop(bot, interaction, keep_queue))

    @bot.tree.command(description="Go to a place in the track")
    @app_commands.describe(position="1:23, 83 (seconds), +10 or -10")
    async def seek(interaction: discord.Interaction, position: app_commands.Range[str, 1, 20]) -> None:
        await respond(interaction, _seek(bot, interaction, position))

    @bot.tree.command(description="How loud it is, for everybody here")
    @app_commands.describe(percent="0 to 200; 100 is as the track was made")
    async def volume(interaction: discord.Interaction, percent: app_commands.Range[int, 0, 200]) -> None:
        await respond(interaction, _volume(bot, interaction, percent))


async def _pause(bot: AntiphonBot, interaction: discord.Interaction) -> Reply:
    session = await Requester(bot, interaction).session_to_change()
    if session.state.playback == "paused":
        raise RequestError("It is paused already. /resume goes on.")
    await session.pause()
    return Reply("⏸ Paused.")


async def _resume(bot: AntiphonBot, interaction: discord.Interaction) -> Reply:
    requester = Requester(bot, interaction)
    session = await requester.session_to_change()
    if requester.player.voice.channel_id is None:
        raise RequestError("I am in no voice channel: /play brings me to yours.")
    return await go_on(session)


async def _skip(bot: AntiphonBot, interaction: discord.Interaction) -> Reply:
    session = await Requester(bot, interaction).session_to_change()
    if session.state.current is None and session.state.total == 0:
        raise RequestError("Nothing is playing.")
    queue = (await session.skip())["queue"]
    return Reply(_now(queue, "⏭", "Skipped. That was the last track."))


async def _previous(bot: AntiphonBot, interaction: discord.Interaction) -> Reply:
    session = await Requester(bot, interaction).session_to_change()
    if session.state.history_total == 0:
        raise RequestError("There is no track before this one.")
    queue = (await session.previous())["queue"]
    return Reply(_now(queue, "⏮", "Nothing is playing."))


async def _stop(bot: AntiphonBot, interaction: discord.Interaction, keep_queue: bool) -> Reply:
    requester = Requester(bot, interaction)
    session = await requester.session_to_change()
    if session.state.playback == "idle" and session.state.total == 0 and requester.player.voice.channel_id is None:
        raise RequestError("Nothing is playing.")
    if session.state.playback != "idle":
        await session.stop()
    # Afterwards, as a queue in a loop gets back what was stopped.
    if not keep_queue:
        await session.queue_clear()
    await requester.player.leave()
    return Reply("⏹ Stopped." + (f" The queue is kept: {session.state.total:,} waiting." if keep_queue else ""))


async def _seek(bot: AntiphonBot, interaction: discord.Interaction, position: str) -> Reply:
    session = await Requester(bot, interaction).session_to_change()
    if session.state.current is None:
        raise RequestError("Nothing is playing.")
    try:
        target = parse_seek(position, session.state.position_ms, session.state.duration_ms)
    except BadTime as problem:
        raise RequestError(str(problem)) from None
    answer = await session.seek(target)
    return Reply(f"⏩ {clock(answer.get('position_ms', target))}")


async def _volume(bot: AntiphonBot, interaction: discord.Interaction, percent: int) -> Reply:
    session = await Requester(bot, interaction).session_to_change()
    await session.volume(percent / 100)
    return Reply(f"🔊 {percent} %")


def _now(queue: Mapping[str, Any], symbol: str, otherwise: str) -> str:
    return f"{symbol} {entry_line(queue['current'])}" if queue.get("current") else f"{symbol} {otherwise}"
