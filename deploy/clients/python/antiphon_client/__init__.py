"""Play and control a session of an Antiphon Router: its Opus packets, its state, and every command."""

from .errors import AntiphonError
from .link import Token
from .packets import SILENCE, Counters, PacketBuffer
from .session import Session
from .state import LoopMode, Playback, SessionState
from .subscriptions import Event, EventStream
from .tracks import Entry, Track

__all__ = [
    "SILENCE",
    "AntiphonError",
    "Counters",
    "Entry",
    "Event",
    "EventStream",
    "LoopMode",
    "PacketBuffer",
    "Playback",
    "Session",
    "SessionState",
    "Token",
    "Track",
]
