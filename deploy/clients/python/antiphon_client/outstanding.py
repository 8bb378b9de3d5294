"""The commands that wait for an answer, over as many connections as it takes."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from .errors import AntiphonError
from .subscriptions import Event

#: How many commands may wait for an answer.
COMMAND_LIMIT = 256

#: The Router itself gives up after 45 s.
ANSWER_LIMIT_SECONDS = 60.0


@dataclass(frozen=True)
class Answer:
    """What the Router said to a command."""

    event: Event
    #: Whether it says how things were, not how they are: an answer with an idempotency key comes when it is on disk,
    #: and to a repeated command the first one's comes again. Events that have come meanwhile are newer.
    is_late: bool


@dataclass
class _Command:
    text: str
    answer: asyncio.Future[Answer]
    #: How many events there had been when it was asked, for what changes something.
    event_count: int | None
    timer: asyncio.TimerHandle | None = field(default=None)


class Outstanding:
    """Commands by their request ID. Each has a time in which it fails: another one with a connection and without."""

    def __init__(self, patience_seconds: float) -> None:
        self._patience_seconds = patience_seconds
        self._commands: dict[str, _Command] = {}
        self._is_connected = False

    def add(self, request_id: str, text: str, event_count: int | None) -> asyncio.Future[Answer]:
        """Waits for the answer to a command that is about to be sent, or will be when there is a connection."""
        if len(self._commands) >= COMMAND_LIMIT:
            raise AntiphonError(
                "overloaded", f"{COMMAND_LIMIT} commands wait for their answers", "wait for some of them"
            )
        command = _Command(text, asyncio.get_running_loop().create_future(), event_count)
        self._commands[request_id] = command
        self._set_timer(command)
        return command.answer

    def remove(self, request_id: str) -> None:
        command = self._commands.pop(request_id, None)
        if command and command.timer:
            command.timer.cancel()

    def is_late(self, event: Event, event_count: int) -> bool:
        """Whether an event is the answer to what was asked before other events came."""
        command = self._commands.get(event.get("request_id", ""))
        return command is not None and command.event_count is not None and command.event_count < event_count

    def answer(self, event: Event, *, is_late: bool) -> None:
        command = self._commands.get(event.get("request_id", ""))
        if command and not command.answer.done():
            command.answer.set_result(Answer(event, is_late))

    def connection_found(self) -> list[str]:
        """From now on commands wait for the Router; gives what is to be sent again, in the order it was asked."""
        self._is_connected = True
        return self._change()

    def connection_lost(self) -> None:
        """From now on commands wait for a connection."""
        if self._is_connected:
            self._is_connected = False
            self._change()

    def fail(self, error: AntiphonError) -> None:
        for command in self._commands.values():
            _fail(command, error)

    def _change(self) -> list[str]:
        waiting = [command for command in self._commands.values() if not command.answer.done()]
        for command in waiting:
            self._set_timer(command)
        return [command.text for command in waiting]

    def _set_timer(self, command: _Command) -> None:
        if command.timer:
            command.timer.cancel()
        if self._is_connected:
            seconds = ANSWER_LIMIT_SECONDS
            error = AntiphonError("timeout", f"the Router has not answered in {seconds:g} s")
        else:
            seconds = self._patience_seconds
            error = AntiphonError(
                "connection_lost", f"no connection to the Router for {seconds:g} s", "it is tried on; ask again later"
            )
        command.timer = asyncio.get_running_loop().call_later(seconds, _fail, command, error)


def _fail(command: _Command, error: AntiphonError) -> None:
    if not command.answer.done():
        command.answer.set_exception(error)
