"""Answering an interaction: in time, whatever happens, and to whom it concerns."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any

import discord
from antiphon_client import AntiphonError

from .errors import RequestError, error_words
from .voice_link import CannotJoin

_log = logging.getLogger(__name__)

#: Discord gives up after 3 s without a word; past this the bot says that it is at it.
DEFER_AFTER_SECONDS = 1.5
#: Discord's limit of a message.
MESSAGE_CHARACTERS = 2_000


@dataclass
class Reply:
    text: str | None = None
    embed: discord.Embed | None = None
    view: discord.ui.View | None = None
    files: list[discord.File] = field(default_factory=list)
    #: For the requester alone.
    private: bool = False

    def arguments(self) -> dict[str, Any]:
        """Those of discord.py's methods that send."""
        text = self.text[:MESSAGE_CHARACTERS] if self.text is not None else None
        given = {"content": text, "embed": self.embed, "view": self.view, "files": self.files or None}
        return {name: value for name, value in given.items() if value is not None}


async def respond(interaction: discord.Interaction, work: Coroutine[Any, Any, Reply], *, private: bool = False) -> None:
    """Replies with what `work` gives, or with why it could not; `private` where its reply will be so."""
    task = asyncio.create_task(_settled(work))
    done, _ = await asyncio.wait({task}, timeout=DEFER_AFTER_SECONDS)
    try:
        if not done:
            await interaction.response.defer(ephemeral=private, thinking=True)
        reply = await task
        await _send(interaction, reply, deferred=not done, deferred_private=private)
    except discord.HTTPException as error:
        # What was asked for is done all the same.
        _log.warning("guild %s: a reply could not be sent: %s", interaction.guild_id, error)
        await asyncio.gather(task, return_exceptions=True)


async def _send(interaction: discord.Interaction, reply: Reply, *, deferred: bool, deferred_private: bool) -> None:
    arguments = reply.arguments() | {"ephemeral": reply.private, "suppress_embeds": reply.embed is None}
    if not deferred:
        await interaction.response.send_message(**arguments)
        return
    if reply.private and not deferred_private:
        # "Thinking…" was said to all; it is taken back, since the first message after it would be for all too.
        await interaction.delete_original_response()
    # The first message after "thinking…" takes its place. An edit could not suppress the previews of links.
    await interaction.followup.send(wait=True, **arguments)


async def _settled(work: Coroutine[Any, Any, Reply]) -> Reply:
    try:
        return await work
    except AntiphonError as error:
        return Reply(error_words(error), private=True)
    except (RequestError, CannotJoin) as request_error:
        return Reply(str(request_error), private=True)
    except Exception:
        _log.exception("a command failed")
        return Reply("Something went wrong in me. My operator can find it in my log.", private=True)
