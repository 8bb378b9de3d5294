"""The slash commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import information, play, queue, transport

if TYPE_CHECKING:
    from ..bot import AntiphonBot


def add_all(bot: AntiphonBot) -> None:
    """Adds every command to the bot's tree."""
    for module in (play, transport, queue, information):
        module.add(bot)
