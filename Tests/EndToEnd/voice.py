"""discord.py's own voice thread, with an ear in place of Discord."""

import asyncio
import threading
from contextlib import asynccontextmanager
from types import SimpleNamespace

import discord
from antiphon_client import Session
from antiphon_client.discord import AntiphonSource
from discord.player import AudioPlayer

from hearing import Hearing
from inbox import PATIENCE_SECONDS


class Ear(Hearing):
    """What the player's thread calls of a voice client, and all that it was given to send."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self.player: AudioPlayer | None = None
        self.client = SimpleNamespace(loop=loop)
        self.ws = SimpleNamespace(speak=self._speak)
        self.timeout = PATIENCE_SECONDS
        self._stays = threading.Event()
        self._stays.set()

    async def _speak(self, state: discord.SpeakingState) -> None:
        """Nobody sees the green ring."""

    def is_connected(self) -> bool:
        return self._stays.is_set()

    def wait_until_connected(self, timeout: float | None) -> bool:
        return self._stays.wait(timeout)

    def disconnect(self) -> None:
        self._stays.clear()

    def reconnect(self) -> None:
        self._stays.set()

    def send_audio_packet(self, data: bytes, *, encode: bool) -> None:
        assert not encode, "the source is Opus already"
        self.heard.append(data)


@asynccontextmanager
async def voice(session: Session):
    """Plays the session as `voice_client.play(AntiphonSource(session))` does; gives the ear."""
    ear = Ear(asyncio.get_running_loop())
    player = ear.player = AudioPlayer(AntiphonSource(session), ear)
    player.start()
    try:
        yield ear
    finally:
        ear.reconnect()
        player.stop()
        await asyncio.to_thread(player.join, PATIENCE_SECONDS)
        assert not player.is_alive()
