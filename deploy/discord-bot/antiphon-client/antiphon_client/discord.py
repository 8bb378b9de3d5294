"""The session's sound as an audio source of discord.py. Needs the extra: `pip install antiphon-client[discord]`."""

from __future__ import annotations

import discord

from .session import Session


class AntiphonSource(discord.AudioSource):
    """Opus packets of a session, for `voice_client.play(AntiphonSource(session))`.

    It is endless: while nothing plays, it gives silence. It ends when the session is closed.
    """

    def __init__(self, session: Session) -> None:
        self.session = session

    def is_opus(self) -> bool:
        return True

    def read(self) -> bytes:
        """The next packet, 20 ms; called by discord.py's voice thread."""
        return self.session.packets.take()

    def cleanup(self) -> None:
        """The session is not closed: it is the bot's."""
