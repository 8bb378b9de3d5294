"""One short line in the text channel for each track that begins, where that is wished for."""

from __future__ import annotations

import logging

import discord
from antiphon_client import Event

from .errors import sentence
from .guild_player import GuildPlayer
from .text import clock, safe, title_of

_log = logging.getLogger(__name__)


def announcement(player: GuildPlayer, event: Event) -> str | None:
    """What to say of an event; None for most."""
    if event["type"] == "ready" and "request_id" not in event:
        name = safe(title_of(event.get("title"), event.get("url", ""), event.get("artist")))
        length = f" `{clock(event['duration_ms'])}`" if event.get("duration_ms") else ""
        who = player.current.requested_by if player.current else None
        return f"▶ **{name}**{length}" + (f" · {safe(who, 32)}" if who else "")
    if event["type"] == "error" and event.get("session_id") and "request_id" not in event:
        return f"⚠ {sentence(event.get('message', ''))}"
    return None


async def announce(client: discord.Client, player: GuildPlayer, event: Event) -> None:
    """Says it where /play was used last, if the bot may write there."""
    text = announcement(player, event)
    channel = client.get_channel(player.text_channel_id) if player.text_channel_id is not None else None
    if text is None or player.voice.channel_id is None or not isinstance(channel, discord.abc.Messageable):
        return
    try:
        await channel.send(text, suppress_embeds=True, silent=True)
    except discord.HTTPException as error:
        _log.info("guild %s: cannot announce in channel %s: %s", player.guild_id, player.text_channel_id, error)
