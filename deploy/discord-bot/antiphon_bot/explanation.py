"""`why` in people's words: why is it silent, or what can be heard."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from antiphon_client import AntiphonError

from .errors import error_words, sentence
from .text import count

#: The stages of opening a track that took long enough to be worth a word.
_SLOW_MILLISECONDS = 1_000

_STAGES = {
    "queue": "waiting for a free worker",
    "extract": "finding the sound on the page",
    "resolve": "looking up the address",
    "connect": "connecting to the source",
    "probe": "finding out what kind of sound it is",
    "first_packet": "making the first sound",
}


@dataclass(frozen=True)
class Hearing:
    """What the bot itself knows about being heard."""

    #: The bot's voice channel, None where it is in none.
    channel_id: int | None
    voice_connected: bool = True
    #: By a moderator, or on a stage where it may not speak.
    muted_by_server: bool = False
    suppressed: bool = False
    volume: float = 1.0
    paused_for_absence: bool = False
    #: Of the jitter buffer, since the connection.
    starved_packets: int = 0


def explain(why: Mapping[str, Any], hearing: Hearing) -> str:
    """A few lines; the most likely reason comes first."""
    lines = _own_reasons(hearing, why.get("state") == "streaming")
    lines.append(sentence(str(why.get("summary", ""))) if why.get("summary") else "")
    lines += _errors(why)
    lines += _interruptions(why, hearing)
    lines += _slow_stages(why)
    return "\n".join(f"• {line}" for line in lines if line)


def _own_reasons(hearing: Hearing, streaming: bool) -> list[str]:
    reasons = []
    if hearing.channel_id is None:
        reasons.append("I am in no voice channel: /play brings me to yours.")
    elif not hearing.voice_connected:
        reasons.append(f"My connection to <#{hearing.channel_id}> is broken; I am restoring it.")
    if hearing.muted_by_server:
        reasons.append("A moderator has muted me on this server.")
    if hearing.suppressed:
        reasons.append("On this stage I am only in the audience: a moderator can let me speak.")
    if streaming and hearing.volume == 0:
        reasons.append("The volume is 0 %: /volume changes it.")
    if hearing.paused_for_absence:
        reasons.append("I paused because nobody was listening.")
    return reasons


def _errors(why: Mapping[str, Any]) -> list[str]:
    error = why.get("last_error")
    if not error:
        return []
    words = error_words(AntiphonError.from_object(error))
    return [f"The last problem: {words}"] if words not in sentence(str(why.get("summary", ""))) else []


def _interruptions(why: Mapping[str, Any], hearing: Hearing) -> list[str]:
    lines = []
    underruns = why.get("underruns") or {}
    if underruns.get("count"):
        longest = underruns.get("longest_ms", 0) / 1_000
        lines.append(
            f"The source was too slow {count(underruns['count'], 'time')}; the longest gap was {longest:.1f} s."
        )
    if why.get("restarts"):
        lines.append(f"The connection to the source broke and was taken up again {count(why['restarts'], 'time')}.")
    if hearing.starved_packets >= 50:
        lines.append(f"{hearing.starved_packets * 0.02:.0f} s of sound came to me too late.")
    return lines


def _slow_stages(why: Mapping[str, Any]) -> list[str]:
    slow = [
        f"{_STAGES[stage['stage']]} {stage['ms'] / 1_000:.1f} s"
        for stage in why.get("stages") or []
        if stage.get("stage") in _STAGES and stage.get("ms", 0) >= _SLOW_MILLISECONDS
    ]
    return [f"What took long at the start: {', '.join(slow)}."] if slow else []
