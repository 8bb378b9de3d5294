"""When to pause, go on, follow and leave: pure decisions, without Discord or a clock of their own."""

from dataclasses import dataclass
from enum import Enum, auto


class Action(Enum):
    PAUSE = auto()
    RESUME = auto()
    LEAVE = auto()


@dataclass
class Attendance:
    """Whether anybody hears the bot, and what follows from it. Times are seconds of any one monotonic clock."""

    leave_after_seconds: float
    #: Since when nobody is there; None while somebody is, or the bot is in no channel.
    alone_since: float | None = None
    #: The bot itself has paused, because nobody was there.
    paused_for_absence: bool = False

    def observe(self, people: int, playing: bool, now: float) -> Action | None:
        """What to do now that so many people are in the bot's channel; asked at each change, and at `deadline`."""
        if people > 0:
            self.alone_since = None
            return self._welcome()
        if self.alone_since is None:
            self.alone_since = now
        if now >= self.alone_since + self.leave_after_seconds:
            return Action.LEAVE
        if playing and not self.paused_for_absence:
            self.paused_for_absence = True
            return Action.PAUSE
        return None

    @property
    def deadline(self) -> float | None:
        """When to leave, if nobody comes."""
        return None if self.alone_since is None else self.alone_since + self.leave_after_seconds

    def gone(self) -> None:
        """The bot has left the channel. What it paused, it resumes when it is back."""
        self.alone_since = None

    def _welcome(self) -> Action | None:
        if not self.paused_for_absence:
            return None
        self.paused_for_absence = False
        return Action.RESUME


def channel_to_follow(
    bot_channel: int, people_here: int, moved_to: int | None, summoner_channel: int | None
) -> int | None:
    """Where the bot goes after somebody has left its channel; None: it stays.

    It never leaves those who still listen. Once nobody does, it follows the last one if they moved to another channel,
    else the one who called it, if they are in one.
    """
    if people_here > 0:
        return None
    for channel in (moved_to, summoner_channel):
        if channel is not None and channel != bot_channel:
            return channel
    return None
