"""How the bot answered one interaction."""

import time
from collections.abc import Callable
from typing import Any

from inbox import PATIENCE_SECONDS

from .bell import Bell
from .guilds import Payload
from .messages import Message

#: The first answers that there are, by Discord's numbers.
KINDS = {4: "message", 5: "deferred", 6: "deferred_update", 7: "update", 8: "autocomplete", 9: "modal"}


class Reply:
    """Goes on changing as the bot edits its message or adds others; `wait` waits for that."""

    def __init__(self, bell: Bell, what: str) -> None:
        self._bell = bell
        self._what = what
        self._asked = time.monotonic()
        #: One of `KINDS`; None before the bot has answered.
        self.kind: str | None = None
        #: How long the first answer took.
        self.seconds: float | None = None
        #: The answer, or for a component's interaction the message that it is on.
        self.message: Message | None = None
        self.followups: list[Message] = []
        #: What autocomplete offers.
        self.choices: list[Payload] = []
        self.modal: Payload | None = None

    @property
    def age_seconds(self) -> float:
        return time.monotonic() - self._asked

    @property
    def complete(self) -> bool:
        """Whether there is more to see than "thinking…"."""
        return self.kind is not None and not (self.message is not None and self.message.loading)

    @property
    def text(self) -> str:
        """Everything that can be read in the answer and its follow-ups."""
        shown = [message for message in (self.message, *self.followups) if message and not message.deleted]
        return "\n".join(message.text for message in shown)

    @property
    def content(self) -> str:
        return self._message.content

    @property
    def embeds(self) -> list[Payload]:
        return self._message.embeds

    @property
    def components(self) -> list[Payload]:
        return self._message.components

    @property
    def ephemeral(self) -> bool:
        """Whether only who asked sees it."""
        return self._message.ephemeral

    @property
    def _message(self) -> Message:
        assert self.message is not None, f"the bot answered {self._what} with no message but a {self.kind}"
        return self.message

    async def wait(self, done: Callable[["Reply"], Any], what: str, seconds: float = PATIENCE_SECONDS) -> Any:
        """Waits until the answer is as `done` wants it."""
        return await self._bell.wait(lambda: done(self), lambda: f"{what} in the answer: {self}", seconds)

    def __str__(self) -> str:
        return f"{self._what}: {self.kind}, {self.message}, follow-ups {[str(message) for message in self.followups]}"
