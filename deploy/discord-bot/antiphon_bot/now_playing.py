"""What plays, as an embed: title, progress bar, who asked for it, cover."""

from __future__ import annotations

import asyncio
import io
import logging

import aiohttp
import discord
from antiphon_client import Session, SessionState, Track

from .settings import Settings
from .text import TITLE_CHARACTERS, one_line, progress_bar, safe, title_of

_log = logging.getLogger(__name__)

COLOUR = 0x7B5CD6
#: A cover that comes later is left out.
ARTWORK_SECONDS = 3.0
#: The Router's own limit of a cover.
MAX_ARTWORK_BYTES = 4 * 1024 * 1024

_SUFFIXES = {"image/jpeg": "jpg", "image/png": "png", "image/webp": "webp", "image/gif": "gif"}


def embed_of(state: SessionState, track: Track) -> discord.Embed:
    """The embed without a cover."""
    embed = discord.Embed(colour=COLOUR, title=safe(title_of(track.title, track.url), TITLE_CHARACTERS))
    if track.url.startswith(("http://", "https://")) and len(track.url) <= 2_000:
        embed.url = track.url
    symbol = {"paused": "⏸", "extracting": "⏳"}.get(state.playback, "▶")
    embed.description = f"{symbol} {progress_bar(state.position_ms, state.duration_ms, track.live)}"
    if track.artist:
        embed.set_author(name=one_line(track.artist, TITLE_CHARACTERS))
    embed.set_footer(text=" · ".join(_notes(state, track)) or None)
    return embed


async def with_cover(
    embed: discord.Embed, artwork: str | None, session: Session, settings: Settings, http: aiohttp.ClientSession
) -> list[discord.File]:
    """Sets the embed's picture, and gives the file to be sent along where Discord cannot fetch it itself."""
    if artwork is None:
        return []
    if not artwork.startswith("/"):
        embed.set_thumbnail(url=artwork)
        return []
    try:
        file = await _fetch(session.url + artwork, settings, http)
    except (aiohttp.ClientError, asyncio.TimeoutError, ValueError) as error:
        _log.info("no cover: %r", error)
        return []
    embed.set_thumbnail(url=f"attachment://{file.filename}")
    return [file]


def _notes(state: SessionState, track: Track) -> list[str]:
    notes = []
    if track.station and track.station != track.title:
        notes.append(one_line(track.station, 60))
    if track.requested_by:
        notes.append(f"for {one_line(track.requested_by, 60)}")
    if state.total:
        notes.append(f"{state.total:,} more in the queue")
    if state.loop != "off":
        notes.append(f"loop: {state.loop}")
    if state.volume != 1:
        notes.append(f"volume {state.volume:.0%}")
    return notes


async def _fetch(url: str, settings: Settings, http: aiohttp.ClientSession) -> discord.File:
    token = settings.antiphon_token
    token = await token() if callable(token) else token
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    timeout = aiohttp.ClientTimeout(total=ARTWORK_SECONDS)
    async with http.get(url, headers=headers, timeout=timeout) as answer:
        answer.raise_for_status()
        suffix = _SUFFIXES.get(answer.content_type)
        if suffix is None or (answer.content_length or 0) > MAX_ARTWORK_BYTES:
            raise ValueError(f"{answer.content_type} of {answer.content_length} bytes")
        return discord.File(io.BytesIO(await answer.read()), filename=f"cover.{suffix}")
