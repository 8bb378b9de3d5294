"""/play: search, join, add, and say how it went."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import discord
from antiphon_client import AntiphonError, EventStream, Session
from discord import app_commands

from .. import finding
from ..bot import AntiphonBot
from ..errors import RequestError
from ..queue_pages import entry_line
from ..replies import Reply, respond
from ..suggestions import MAX_CHARACTERS, MAX_CHOICES
from ..text import count
from .requester import Requester

#: How long /play waits to hear whether a track that begins at once can be loaded.
FIRST_SOUND_SECONDS = 10.0
#: The longest query; Discord's own limit is 6,000.
QUERY_CHARACTERS = 2_000
#: Discord waits 3 s for suggestions; some of that is the network's. Without a session by then there are none.
SUGGESTION_SECONDS = 2.2


def add(bot: AntiphonBot) -> None:
    @bot.tree.command(description="Play something, or add it to the queue")
    @app_commands.describe(
        query="Words to search for, a link, or a file; nothing to go on with the queue",
        next="Play it before all that waits in the queue",
    )
    async def play(
        interaction: discord.Interaction,
        query: app_commands.Range[str, 1, QUERY_CHARACTERS] | None = None,
        next: bool = False,
    ) -> None:
        await respond(interaction, _play(bot, interaction, query, next))

    @play.autocomplete("query")
    async def suggest(interaction: discord.Interaction, typed: str) -> list[app_commands.Choice[str]]:
        if interaction.guild_id is None:
            return []
        loop = asyncio.get_running_loop()
        give_up_at = loop.time() + SUGGESTION_SECONDS
        try:
            session = await asyncio.wait_for(bot.player(interaction.guild_id).session(), SUGGESTION_SECONDS)
        except (asyncio.TimeoutError, AntiphonError):
            return []
        choices = await bot.suggestions.suggest(session, interaction.user.id, typed, give_up_at - loop.time())
        return [app_commands.Choice(name=name[:MAX_CHARACTERS], value=value) for name, value in choices[:MAX_CHOICES]]


async def _play(bot: AntiphonBot, interaction: discord.Interaction, query: str | None, next: bool) -> Reply:
    requester = Requester(bot, interaction)
    requester.require_summoning()
    player = requester.player
    session = await player.session()
    joined = await _come(requester)
    try:
        if query is None:
            return await go_on(session)
        return await _add(session, await _wanted(requester, session, query), next)
    except (AntiphonError, RequestError):
        if joined and session.state.playback == "idle":
            await player.leave()
        raise


async def _come(requester: Requester) -> bool:
    """Joins the requester, unless the bot plays for others; whether it was in no channel before."""
    player, channel = requester.player, requester.voice_channel
    here = player.voice.channel_id
    if channel is None or (here not in (None, channel.id) and player.people_in(here) > 0):
        # Somebody who manages the server adds from elsewhere.
        return False
    player.summoner_id = requester.member.id
    player.text_channel_id = requester.interaction.channel_id
    return await player.join(channel)


async def _wanted(requester: Requester, session: Session, query: str) -> list[dict[str, Any]]:
    """The tracks that a suggestion, or what somebody has typed themselves, stands for."""
    address, requested_by = requester.bot.suggestions.query(query), requester.member.display_name
    if hit := requester.bot.suggestions.hit(address):
        return [finding.track_of(hit, requested_by)]
    return await finding.find(session, address, requested_by)


async def _add(session: Session, tracks: list[dict[str, Any]], next: bool) -> Reply:
    was_idle = session.state.playback == "idle"
    events = session.events()
    added = await finding.add(session, tracks, next)
    if was_idle:
        await _require_sound(session, events)
    queue = (await session.queue())["queue"]
    return Reply(_added_text(queue, added, session.state.playback == "paused"))


async def go_on(session: Session) -> Reply:
    """Resumes what is paused, or begins with what waits."""
    if session.state.playback == "paused":
        await session.resume()
        return Reply("▶ Going on.")
    if session.state.playback != "idle":
        raise RequestError("It plays already. To add something, give /play words or a link.")
    if session.state.total == 0:
        raise RequestError("The queue is empty. Give /play words, a link or a file.")
    queue = (await session.skip())["queue"]
    return Reply(f"▶ {entry_line(queue['current'])}" if queue.get("current") else "▶ Going on.")


async def _require_sound(session: Session, events: EventStream) -> None:
    """Returns when it plays, or nothing was heard of it for long; raises why there will be no sound."""

    async def watch() -> None:
        error: Mapping[str, Any] = {"message": "It could not be loaded"}
        async for event in events:
            # By the state, not by `playing`: that can have been said while the connection was broken.
            if session.state.playback in ("streaming", "paused"):
                return
            if event["type"] == "error" and "request_id" not in event:
                error = event
            elif event["type"] == "ended" and event.get("reason") == "loadFailed":
                raise AntiphonError.from_object(error)

    try:
        await asyncio.wait_for(watch(), FIRST_SOUND_SECONDS)
    except asyncio.TimeoutError:
        return


def _added_text(queue: Mapping[str, Any], added: list[str], paused: bool) -> str:
    current = queue.get("current") or {}
    waiting = {
        entry["id"]: (place, entry) for place, entry in enumerate(queue.get("tracks", ()), queue.get("offset", 0) + 1)
    }
    more = f" and {count(len(added) - 1, 'more track')}" if len(added) > 1 else ""
    if current.get("id") in added:
        return f"▶ {entry_line(current)}{more}"
    place, entry = waiting.get(added[0], (None, None))
    name = entry_line(entry) if entry else count(len(added), "track")
    where = f" · number {place} in the queue" if place else f" · {count(queue['total'], 'track')} waiting"
    return f"➕ {name}{more if entry else ''}{where}" + (" · paused: /resume goes on" if paused else "")
