"""The jitter buffer between the network and the voice thread."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock

#: An Opus packet of 20 ms without sound: what Discord wants in a pause.
SILENCE = b"\xf8\xff\xfe"

#: 100 ms: sound begins when so many packets wait.
TARGET_PACKETS = 5

#: 400 ms: what waits beyond is dropped at once.
MAXIMUM_PACKETS = 20

#: 5 s: what was never needed for so long is delay without use.
WINDOW_PACKETS = 250

#: 20 s: how long packets wait is looked at in the mean of so many, and corrected once in so many at most.
DRIFT_PACKETS = 1_000

#: Three quarters of a packet: clocks have drifted where packets wait so much longer or shorter than they used to.
DRIFT_SECONDS = 0.015


@dataclass(frozen=True)
class Counters:
    """What became of the packets: `received == played + dropped + len(buffer)`.

    Each taking counts in one of `played`, `repeated`, `starved` and `silent`.
    """

    #: Packets put in.
    received: int = 0
    #: Packets taken out.
    played: int = 0
    #: Silence frames taken because packets came too late, or not at all.
    starved: int = 0
    #: Silence frames taken while nothing was to be heard, or at a beginning.
    silent: int = 0
    #: Packets thrown away so that the delay does not grow, or because nobody took any.
    dropped: int = 0
    #: Packets taken once more, because the taker's clock is the faster one.
    repeated: int = 0


class PacketBuffer:
    """Opus packets of 20 ms on their way from the event loop to a voice thread. Thread-safe and bounded.

    Sound begins when `target` packets wait, so that it survives as much jitter. When it runs empty, it fills again.
    Where packets came in a burst, more wait than are needed: when the fewest of 5 s were more than the target allows,
    what is too many is dropped.

    No two clocks are quite alike, so that packets come to wait longer or shorter than at the beginning. One packet is
    then dropped, or given once more, which is hard to hear; with clocks that differ by 100 ppm that is one in 200 s.
    What counts is the time: how many packets wait may change from one moment to the next where clocks are alike, too.
    """

    def __init__(
        self,
        target: int = TARGET_PACKETS,
        maximum: int = MAXIMUM_PACKETS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if not 1 <= target <= maximum:
            raise ValueError(f"target {target} is not between 1 and maximum {maximum}")
        self.target = target
        self.maximum = maximum
        self._clock = clock
        #: Each with the time at which it was put in.
        self._packets: deque[tuple[bytes, float]] = deque()
        # Held for a few steps only, never while anything waits.
        self._lock = Lock()
        self._received = self._played = self._starved = self._silent = self._dropped = self._repeated = 0
        self._is_expected = True
        self._is_filling = True
        self._has_starved = False
        self._untaken = 0
        self._fewest = maximum
        self._taken_in_window = 0
        #: To be given once more.
        self._again: bytes | None = None
        #: How long packets waited in the mean, when the sound began.
        self._usual: float | None = None
        self._waited = 0.0
        self._taken_in_drift = 0

    def put(self, packet: bytes) -> None:
        """Adds the newest packet. Never blocks; beyond the maximum the oldest are dropped."""
        now = self._clock()
        with self._lock:
            self._packets.append((packet, now))
            self._untaken += 1
            self._received += 1
            # Where nobody takes, what waits is kept fresh, so that who begins to take has no delay to lose.
            most = self.target if self._untaken > self.maximum else self.maximum
            if len(self._packets) > most:
                self._cut(len(self._packets) - self.target)

    def take(self) -> bytes:
        """The packet to be sent now, or `SILENCE`. To be called every 20 ms; never blocks."""
        now = self._clock()
        with self._lock:
            self._untaken = 0
            if self._again is not None:
                packet, self._again = self._again, None
                self._repeated += 1
                return packet
            if self._is_filling:
                # What is too little to begin with is played where no more is to come.
                is_full = len(self._packets) >= self.target or (bool(self._packets) and not self._is_expected)
                if not is_full:
                    return self._silence()
                self._begin()
            if not self._packets:
                self._is_filling = True
                self._has_starved = self._is_expected
                return self._silence()
            packet, since = self._packets.popleft()
            self._played += 1
            self._shed()
            self._follow(packet, now - since)
            return packet

    def expect(self, sound: bool) -> None:
        """Says whether packets are to come now. Where not, as in a pause, an empty buffer is not a starved one."""
        with self._lock:
            self._is_expected = sound

    def __len__(self) -> int:
        return len(self._packets)

    @property
    def counters(self) -> Counters:
        """A snapshot."""
        with self._lock:
            return Counters(self._received, self._played, self._starved, self._silent, self._dropped, self._repeated)

    def _begin(self) -> None:
        self._is_filling = False
        self._has_starved = False
        self._fewest = self.maximum
        self._taken_in_window = 0
        self._forget()

    def _shed(self) -> None:
        """Drops what was not needed in a whole window.

        In the steady state one less than the target is left after each taking. One more is let be: it comes of the
        moment in which the taker began.
        """
        self._fewest = min(self._fewest, len(self._packets))
        self._taken_in_window += 1
        if self._taken_in_window < WINDOW_PACKETS:
            return
        if self._fewest > self.target:
            self._cut(self._fewest - self.target)
        self._fewest = self.maximum
        self._taken_in_window = 0

    def _follow(self, packet: bytes, waited: float) -> None:
        """Makes up for clocks that drift: one packet once in a while, where the mean has left its band."""
        self._waited += waited
        self._taken_in_drift += 1
        if self._taken_in_drift < DRIFT_PACKETS:
            return
        mean = self._waited / self._taken_in_drift
        self._waited, self._taken_in_drift = 0.0, 0
        if self._usual is None:
            self._usual = mean
        elif mean < self._usual - DRIFT_SECONDS:
            self._again = packet
        elif mean > self._usual + DRIFT_SECONDS and self._packets:
            self._drop(1)

    def _cut(self, count: int) -> None:
        """Drops what came in a burst: what waits then is what is usual."""
        self._drop(count)
        self._forget()

    def _forget(self) -> None:
        self._usual, self._waited, self._taken_in_drift, self._again = None, 0.0, 0, None

    def _drop(self, count: int) -> None:
        for _ in range(count):
            self._packets.popleft()
        self._dropped += count

    def _silence(self) -> bytes:
        if self._has_starved:
            self._starved += 1
        else:
            self._silent += 1
        return SILENCE
