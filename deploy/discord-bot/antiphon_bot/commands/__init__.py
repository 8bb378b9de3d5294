"""The slash commands."""

from __future__ import annotations

from ..bot import AntiphonBot
from . import information, play, queue, transport


def add_all(bot: AntiphonBot) -> None:
    """Adds every command to the bot's tree."""
    for module in (play, transport, queue, information):
        module.add(bot)
