"""The queue, ten tracks a page, with buttons to turn them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import discord
from antiphon_client import AntiphonError

from .errors import error_words
from .guild_player import GuildPlayer
from .text import clock, count, safe, title_of

PAGE_TRACKS = 10
#: The buttons go when nobody has pressed one for so long. Discord lets a reply be changed for 15 minutes.
TURN_SECONDS = 300.0
#: Ten of the longest lines, in which every character needs a backslash, are within Discord's 2,000 characters.
_TITLE_CHARACTERS, _NAME_CHARACTERS = 55, 16


def entry_line(entry: Mapping[str, Any]) -> str:
    """A track as the queue shows it."""
    line = f"**{safe(title_of(entry.get('title'), entry['url'], entry.get('artist')), _TITLE_CHARACTERS)}**"
    if entry.get("duration_ms"):
        line += f" `{clock(entry['duration_ms'])}`"
    if entry.get("requested_by"):
        line += f" · {safe(entry['requested_by'], _NAME_CHARACTERS)}"
    return line


def page_text(queue: Mapping[str, Any]) -> str:
    """One page of the Router's queue object."""
    lines = [f"**Now** {entry_line(queue['current'])}"] if queue.get("current") else ["Nothing is playing."]
    first = queue["offset"] + 1
    lines += [f"`{place:>3}` {entry_line(entry)}" for place, entry in enumerate(queue["tracks"], first)]
    notes = [f"{count(queue['total'], 'track')} waiting"]
    if queue["total"] > PAGE_TRACKS:
        notes.append(f"page {page_of(queue) + 1} of {page_count(queue)}")
    if queue["loop"] != "off":
        notes.append(f"loop: {queue['loop']}")
    return "\n".join([*lines, f"-# {' · '.join(notes)}"])


def page_count(queue: Mapping[str, Any]) -> int:
    return max(1, math.ceil(int(queue["total"]) / PAGE_TRACKS))


def page_of(queue: Mapping[str, Any]) -> int:
    return int(queue["offset"]) // PAGE_TRACKS


class QueuePages(discord.ui.View):
    """Buttons below the queue, for the one who asked."""

    def __init__(self, player: GuildPlayer, interaction: discord.Interaction) -> None:
        super().__init__(timeout=TURN_SECONDS)
        self._player = player
        self._interaction = interaction
        self._page = 0

    async def text(self, page: int) -> str:
        """The page, or the last one where there are not so many. Raises AntiphonError."""
        session = await self._player.session()
        page = max(0, page)
        queue = (await session.queue(page * PAGE_TRACKS, PAGE_TRACKS))["queue"]
        if page >= page_count(queue):
            queue = (await session.queue((page_count(queue) - 1) * PAGE_TRACKS, PAGE_TRACKS))["queue"]
        self._page = page_of(queue)
        self.earlier.disabled = self._page == 0
        self.later.disabled = self._page + 1 >= page_count(queue)
        return page_text(queue)

    @property
    def has_pages(self) -> bool:
        return not (self.earlier.disabled and self.later.disabled)

    @discord.ui.button(label="◀")
    async def earlier(self, interaction: discord.Interaction, _: discord.ui.Button[QueuePages]) -> None:
        await self._turn(interaction, self._page - 1)

    @discord.ui.button(label="▶")
    async def later(self, interaction: discord.Interaction, _: discord.ui.Button[QueuePages]) -> None:
        await self._turn(interaction, self._page + 1)

    async def on_timeout(self) -> None:
        try:
            await self._interaction.edit_original_response(view=None)
        except discord.HTTPException:
            # The reply was dismissed.
            return

    async def _turn(self, interaction: discord.Interaction, page: int) -> None:
        # The Router may take longer than Discord waits.
        await interaction.response.defer()
        try:
            text = await self.text(page)
        except AntiphonError as error:
            text = error_words(error)
        await interaction.edit_original_response(content=text, view=self)
