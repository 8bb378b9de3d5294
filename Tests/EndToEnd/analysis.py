"""Measuring what was heard. Everything takes one channel of samples at 48 kHz."""

from dataclasses import dataclass

import numpy as np

from opus import LOOKAHEAD
from signals import RATE, Glides, largest_step_of_tone

#: `locate` works at 8 kHz: enough for glides below 3 kHz, and a sixth of the work.
_DECIMATION = 6
_LOW_RATE = RATE // _DECIMATION


def dominant_frequency(samples: np.ndarray) -> float:
    """The strongest frequency in Hz, to a fraction of a bin."""
    spectrum = np.abs(np.fft.rfft(samples * np.hanning(len(samples))))
    peak = int(np.argmax(spectrum[1:-1])) + 1
    below, at, above = np.log(np.maximum(spectrum[peak - 1 : peak + 2], 1e-12))
    bend = below - 2 * at + above
    offset = 0.5 * (below - above) / bend if bend else 0.0
    return float((peak + offset) * RATE / len(samples))


def level_db(samples: np.ndarray) -> float:
    """RMS in dB of full scale."""
    return float(20 * np.log10(max(np.sqrt(np.mean(np.square(samples, dtype=np.float64))), 1e-9)))


def tone_level_db(samples: np.ndarray, frequency: float) -> float:
    """How strong one frequency is, in dB of a full-scale sine."""
    window = np.hanning(len(samples))
    carrier = np.exp(-2j * np.pi * frequency * np.arange(len(samples)) / RATE)
    amplitude = 2 * abs(np.sum(samples * window * carrier)) / np.sum(window)
    return float(20 * np.log10(max(amplitude, 1e-9)))


def largest_step(samples: np.ndarray) -> float:
    """The largest difference between neighbouring samples."""
    return float(np.max(np.abs(np.diff(samples))))


def assert_unbroken_tone(samples: np.ndarray, frequency: float, amplitude: float, what: str) -> None:
    """The tone goes on without a click, and without a skipped or repeated piece.

    A click is a step larger than the tone's own largest. A piece skipped or repeated cleanly is seen in the
    phase, which is measured every 20 ms and must stay where it was.
    """
    allowed = largest_step_of_tone(frequency, amplitude) * 1.15 + 0.002
    steps = np.abs(np.diff(samples))
    where = int(np.argmax(steps))
    assert steps[where] <= allowed, (
        f"{what}: a step of {steps[where]:.4f} at {where / RATE:.3f} s; the tone's own are up to {allowed:.4f}"
    )

    carrier = np.exp(-2j * np.pi * frequency * np.arange(len(samples)) / RATE)
    block = RATE // 50
    blocks = (samples * carrier)[: len(samples) // block * block].reshape(-1, block).sum(axis=1)
    # A 440 Hz tone that skips one packet of 20 ms turns by 0.8 of a circle, 288 degrees.
    turn = np.degrees(np.abs(np.angle(blocks / blocks[0])))
    where = int(np.argmax(turn))
    assert turn[where] < 20, f"{what}: the phase turns by {turn[where]:.0f} degrees at {where * 0.02:.2f} s"


@dataclass(frozen=True)
class Place:
    """Where in the source a heard piece is."""

    milliseconds: float
    #: 1: the very same sound; 0: none of it.
    likeness: float


def locate(heard: np.ndarray, source: Glides) -> Place:
    """Where in the whole source the first sample of a heard piece of glides comes from."""
    piece = _low(heard)
    whole = source(_LOW_RATE)
    size = 1 << int(np.ceil(np.log2(len(whole) + len(piece))))
    match = np.fft.irfft(np.fft.rfft(whole, size) * np.conj(np.fft.rfft(piece, size)), size)
    match = match[: max(len(whole) - len(piece) + 1, 1)]
    at = int(np.argmax(match))
    energy = np.sqrt(np.sum(np.square(whole[at : at + len(piece)])) * np.sum(np.square(piece)))
    return Place(at * 1_000 / _LOW_RATE, float(match[at] / energy) if energy > 0 else 0.0)


def heard_at(samples: np.ndarray, start: int, source: Glides, seconds: float = 0.2) -> Place:
    """Where in the source sample `start` of a decoded stream comes from, the codec's delay allowed for:
    a decoder that began with the source's first packet hears sample n of the source at n."""
    piece = samples[start + LOOKAHEAD : start + LOOKAHEAD + round(seconds * RATE)]
    assert len(piece) >= round(seconds * RATE) * 0.9, f"only {len(piece)} samples after sample {start}"
    return locate(piece, source)


def _low(samples: np.ndarray) -> np.ndarray:
    """48 kHz to 8 kHz, without delay."""
    reach = 60
    offsets = np.arange(-reach, reach + 1)
    cut = 0.95 / _DECIMATION
    kernel = cut * np.sinc(cut * offsets) * np.hamming(2 * reach + 1)
    return np.convolve(samples, kernel, mode="same")[::_DECIMATION]
