"""discord.py's own voice thread, with an ear in place of Discord."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace

import discord
from antiphon_client import SILENCE, PacketBuffer, Session
from antiphon_client.discord import AntiphonSource
from discord.player import AudioPlayer

from inbox import PATIENCE_SECONDS


async def until(done: Callable[[], object], what: str, seconds: float = PATIENCE_SECONDS) -> None:
    """Waits until `done` gives something true."""
    deadline = asyncio.get_running_loop().time() + seconds
    while not done():
        assert asyncio.get_running_loop().time() < deadline, f"no {what} in {seconds} s"
        await asyncio.sleep(0.01)


class Ear:
    """What the player's thread calls of a voice client, and all that it was given to send."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.heard: list[bytes] = []
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

    def mark(self) -> int:
        return len(self.heard)

    async def wait_run(self, count: int, since: int = 0, seconds: float | None = None) -> list[bytes]:
        """The first `count` packets that were heard on end. What stands still on a busy machine is heard as a hole:
        then the next piece is waited for."""
        run: list[bytes] = []
        index = since
        deadline = asyncio.get_running_loop().time() + (seconds or 2 * PATIENCE_SECONDS + count * 0.02)
        while len(run) < count:
            assert asyncio.get_running_loop().time() < deadline, f"no {count} packets on end; the last run {len(run)}"
            while index < len(self.heard) and len(run) < count:
                run = [] if self.heard[index] == SILENCE else [*run, self.heard[index]]
                index += 1
            await asyncio.sleep(0.02)
        return run

    async def wait_silence(self, count: int, since: int = 0) -> None:
        """Until `count` frames of silence came on end."""
        await until(lambda: self.heard[since:][-count:] == [SILENCE] * count, f"{count} frames of silence")


@asynccontextmanager
async def voice(session: Session):
    """Plays the session as `voice_client.play(AntiphonSource(session))` does; gives the ear."""
    ear = Ear(asyncio.get_running_loop())
    player = AudioPlayer(AntiphonSource(session), ear)  # type: ignore[arg-type]
    player.start()
    try:
        yield ear
    finally:
        ear.reconnect()
        player.stop()
        await asyncio.to_thread(player.join, PATIENCE_SECONDS)
        assert not player.is_alive()


def assert_accounted_for(heard: list[bytes], sent: list[bytes], packets: PacketBuffer) -> None:
    """What was heard is what was sent, bit for bit and in order, but for what the buffer says it has dropped."""
    sounds = [packet for packet in heard if packet != SILENCE]
    place = {packet: index for index, packet in enumerate(sent)}
    assert len(place) == len(sent), "the sound's packets are not all different"
    places = [place[packet] for packet in sounds]
    assert places == sorted(places), "packets are out of order"
    missing = places[-1] - places[0] + 1 - len(places)
    assert missing <= packets.counters.dropped, f"{missing} packets are missing; {packets.counters}"
