"""Sounds whose every sample is known, so that what is heard can be compared with what was played."""

from dataclasses import dataclass

import numpy as np

#: What everything is decoded to, and what Opus packets are counted in.
RATE = 48_000

AMPLITUDE = 0.5


def tone(frequency: float, seconds: float, rate: int = RATE) -> np.ndarray:
    """A sine of one frequency."""
    time = np.arange(round(seconds * rate)) / rate
    return AMPLITUDE * np.sin(2 * np.pi * frequency * time)


def largest_step_of_tone(frequency: float, amplitude: float = AMPLITUDE) -> float:
    """The largest difference between two neighbouring samples of a sine at 48 kHz."""
    return 2 * amplitude * np.sin(np.pi * frequency / RATE)


@dataclass(frozen=True)
class Glides:
    """A sine that glides to another random pitch every 100 ms: a piece of 200 ms occurs nowhere else in it.

    The pitches stay between 300 and 3,000 Hz, so that a file of 8 kHz can hold it. The phase is computed
    from the time alone, so that it is the same sound at every sample rate.
    """

    seconds: float
    seed: int = 1

    GLIDE = 0.1

    def __call__(self, rate: int = RATE) -> np.ndarray:
        pitches = self._pitches()
        # The phase, in cycles, at the start of every glide: the mean pitch times the glide's length.
        starts = np.concatenate([[0], np.cumsum((pitches[:-1] + pitches[1:]) / 2 * self.GLIDE)])
        time = np.arange(round(self.seconds * rate)) / rate
        glide = (time / self.GLIDE).astype(int)
        within = time - glide * self.GLIDE
        rise = (pitches[glide + 1] - pitches[glide]) / self.GLIDE
        cycles = starts[glide] + pitches[glide] * within + rise * within**2 / 2
        return AMPLITUDE * np.sin(2 * np.pi * cycles)

    def _pitches(self) -> np.ndarray:
        glides = int(self.seconds / self.GLIDE) + 2
        return np.random.default_rng(self.seed).uniform(300, 3_000, glides + 1)
