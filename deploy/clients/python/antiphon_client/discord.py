"""The session's sound as an audio source of discord.py. Needs the extra: `pip install antiphon-client[discord]`."""

from __future__ import annotations

import discord

from .session import Session


class AntiphonSource(discord.AudioSource):
    """The Opus packets of a session, for `voice_client.play(AntiphonSource(session))`.

    It is endless: while nothing plays, or the Router is away, it gives silence. It ends when the session is closed and
    what waited has been played; discord.py then sends the five frames of silence that Discord wants at an end.
    """

    def __init__(self, session: Session) -> None:
        self.session = session

    def is_opus(self) -> bool:
        return True

    def read(self) -> bytes:
        """The next 20 ms; called by discord.py's voice thread. Empty at the end."""
        if self.session.is_closed and len(self.session.packets) == 0:
            return b""
        return self.session.packets.take()

    def cleanup(self) -> None:
        """The session stays open: it is the bot's, and the next source may be of the same."""
