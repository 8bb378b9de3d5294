"""What a player has heard of a session, frame by frame, and waiting for sound and for silence."""

import asyncio
from collections.abc import Callable

from antiphon_client import SILENCE

from inbox import PATIENCE_SECONDS


async def until(done: Callable[[], object], what: str, seconds: float = PATIENCE_SECONDS) -> None:
    """Waits until `done` gives something true."""
    deadline = asyncio.get_running_loop().time() + seconds
    while not done():
        assert asyncio.get_running_loop().time() < deadline, f"no {what} in {seconds} s"
        await asyncio.sleep(0.01)


class Hearing:
    """Every packet and every frame of silence, in order."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []

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


def assert_accounted_for(heard: list[bytes], sent: list[bytes], dropped: int) -> None:
    """What was heard is what was sent, bit for bit and in order, but for what the buffer says it has dropped."""
    sounds = [packet for packet in heard if packet != SILENCE]
    place = {packet: index for index, packet in enumerate(sent)}
    assert len(place) == len(sent), "the sound's packets are not all different"
    places = [place[packet] for packet in sounds]
    assert places == sorted(places), "packets are out of order"
    missing = places[-1] - places[0] + 1 - len(places)
    assert missing <= dropped, f"{missing} packets are missing, and {dropped} were dropped"
