"""/queue, /remove, /shuffle and /loop."""

from __future__ import annotations

import discord
from antiphon_client import Session
from discord import app_commands

from ..bot import AntiphonBot
from ..errors import RequestError
from ..queue_pages import QueuePages
from ..replies import Reply, respond
from ..suggestions import MAX_CHARACTERS, MAX_CHOICES
from ..text import clock, count, one_line, safe, title_of
from .requester import Requester

#: What a suggestion's value begins with: the Router's own names of tracks are numbers too.
_CHOSEN = "entry:"

_LOOPS = {
    "off": "No loop.",
    "track": "🔂 This track, again and again.",
    "queue": "🔁 The whole queue, again and again.",
}


def add(bot: AntiphonBot) -> None:
    @bot.tree.command(description="What plays and what comes next")
    async def queue(interaction: discord.Interaction) -> None:
        await respond(interaction, _queue(bot, interaction), private=True)

    @bot.tree.command(description="Take a track out of the queue")
    @app_commands.describe(track="One of the suggestions, or its number in /queue")
    async def remove(interaction: discord.Interaction, track: app_commands.Range[str, 1, 100]) -> None:
        await respond(interaction, _remove(bot, interaction, track))

    @remove.autocomplete("track")
    async def suggest(interaction: discord.Interaction, typed: str) -> list[app_commands.Choice[str]]:
        session = bot.player(interaction.guild_id).open_session if interaction.guild_id else None
        return _choices(session, typed) if session else []

    @bot.tree.command(description="Put the queue into a random order")
    async def shuffle(interaction: discord.Interaction) -> None:
        await respond(interaction, _shuffle(bot, interaction))

    @bot.tree.command(description="Play the track, or the queue, again and again")
    @app_commands.describe(mode="What is repeated")
    @app_commands.choices(
        mode=[
            app_commands.Choice(name="off", value="off"),
            app_commands.Choice(name="track", value="track"),
            app_commands.Choice(name="queue", value="queue"),
        ]
    )
    async def loop(interaction: discord.Interaction, mode: app_commands.Choice[str]) -> None:
        await respond(interaction, _loop(bot, interaction, mode.value))


def _choices(session: Session, typed: str) -> list[app_commands.Choice[str]]:
    """What waits and has all of the typed words, or that number."""
    words = typed.casefold().split()
    choices = []
    for place, entry in enumerate(session.state.queue, 1):
        name = title_of(entry.title, entry.url, entry.artist)
        if words != [str(place)] and not all(word in name.casefold() for word in words):
            continue
        length = f" ({clock(entry.duration_ms)})" if entry.duration_ms else ""
        shown = one_line(f"{place}. {name}", MAX_CHARACTERS - len(length)) + length
        choices.append(app_commands.Choice(name=shown, value=_CHOSEN + entry.id))
    return choices[:MAX_CHOICES]


async def _queue(bot: AntiphonBot, interaction: discord.Interaction) -> Reply:
    requester = Requester(bot, interaction)
    pages = QueuePages(requester.player, interaction)
    text = await pages.text(0)
    return Reply(text, view=pages if pages.has_pages else None, private=True)


async def _remove(bot: AntiphonBot, interaction: discord.Interaction, track: str) -> Reply:
    session = await Requester(bot, interaction).session_to_change()
    entry_id, name = await _find(session, track)
    await session.queue_remove(entry_id)
    return Reply(f"➖ **{safe(name)}**")


async def _find(session: Session, track: str) -> tuple[str, str]:
    """The entry's ID and name of what a suggestion, a number in the queue, or a piece of a title stands for."""
    if not track.isdecimal():
        chosen, words = track.removeprefix(_CHOSEN), track.casefold()
        for entry in session.state.queue:
            name = title_of(entry.title, entry.url, entry.artist)
            if entry.id == chosen or words in name.casefold():
                return entry.id, name
        raise RequestError(
            "That track is not in the queue any more." if words.startswith(_CHOSEN) else "No such track waits."
        )
    found = (await session.queue(int(track) - 1, 1))["queue"]["tracks"] if int(track) else []
    if not found:
        raise RequestError(f"The queue has {count(session.state.total, 'track')}: there is no number {track}.")
    return found[0]["id"], title_of(found[0].get("title"), found[0]["url"], found[0].get("artist"))


async def _shuffle(bot: AntiphonBot, interaction: discord.Interaction) -> Reply:
    session = await Requester(bot, interaction).session_to_change()
    if session.state.total < 2:
        raise RequestError("There is nothing to shuffle: fewer than two tracks wait.")
    await session.queue_shuffle()
    return Reply(f"🔀 {count(session.state.total, 'track')} shuffled.")


async def _loop(bot: AntiphonBot, interaction: discord.Interaction, mode: str) -> Reply:
    session = await Requester(bot, interaction).session_to_change()
    await session.command("queue_loop", mode=mode)
    return Reply(_LOOPS[mode])
