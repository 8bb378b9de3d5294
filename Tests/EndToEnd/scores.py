"""Scores for the tests: few notes, of which is known what must be heard."""

from typing import Any

from signals import RATE

Score = dict[str, Any]

#: Sustains, and has one clear fundamental.
PLAIN = "triangle"


def voice(role: str, instrument: str = PLAIN, **fields: Any) -> dict[str, Any]:
    """A dry voice in the middle."""
    dry = {"gain": 1, "pan": 0, "reverb": 0, "delay": 0, "chorus": 0}
    return {"role": role, "instrument": instrument} | dry | fields


def score(
    voices: list[dict[str, Any]], notes: list[list[int]], *, length: int | None, beat: int = RATE // 2, **fields: Any
) -> Score:
    """A score whose reverberation is short and unused.

    Args:
        length: in samples; None for an endless one.
    """
    effects = {"reverb_s": 0.2, "delay": 4_800, "delay_feedback": 0, "chorus_hz": 0.5}
    end = {} if length is None else {"length": length}
    return {"seed": 1, "beat": beat, "effects": effects, "voices": voices, "notes": notes} | end | fields


def drone(pitch: int, role: str = "bed", *, beat: int = RATE // 2) -> Score:
    """One pitch, struck anew every second, forever."""
    return score([voice(role, loop=RATE)], [[0, 0, RATE, pitch, 80]], length=None, beat=beat)


def tones(*pitches: int, role: str = "melody", seconds: float = 1.0, **fields: Any) -> Score:
    """One pitch after the other, and half a second to die away."""
    step = round(seconds * RATE)
    notes = [[0, index * step, step, pitch, 100] for index, pitch in enumerate(pitches)]
    return score([voice(role)], notes, length=len(pitches) * step + RATE // 2, **fields)


def frequency(pitch: int) -> float:
    """Of a MIDI pitch, in Hz."""
    return 440 * 2 ** ((pitch - 69) / 12)
