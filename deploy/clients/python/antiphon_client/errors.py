"""What is raised where a command is refused, or a connection cannot be had."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class AntiphonError(Exception):
    """An error by the Router or the engine, or by this package.

    `code` is one of the Router's (docs/wire-protocol.md, "Error codes"), or one of this package's own:

    - `connection_lost`: no connection to the Router for as long as a command may wait for one
    - `timeout`: the Router is connected and has not answered
    - `closed`: the session was closed here
    - `token_unavailable`: the token callable raised
    - `overloaded`, `line_too_long`, `internal` as the Router's, found out here
    """

    def __init__(self, code: str, message: str, hint: str | None = None) -> None:
        super().__init__(code, message, hint)
        #: For programs.
        self.code = code
        #: For people: what was wrong.
        self.message = message
        #: For people: what to do about it, where that is known.
        self.hint = hint

    @classmethod
    def from_object(cls, error: Mapping[str, Any]) -> AntiphonError:
        """From the JSON object that the Router refuses with."""
        hint = error.get("hint")
        return cls(
            str(error.get("code", "internal")), str(error.get("message", "")), None if hint is None else str(hint)
        )

    def to_object(self) -> dict[str, str]:
        """As the Router says it: `code`, `message` and, where there is one, `hint`."""
        hint = {} if self.hint is None else {"hint": self.hint}
        return {"code": self.code, "message": self.message} | hint

    def __str__(self) -> str:
        return f"{self.code}: {self.message}" + (f" ({self.hint})" if self.hint else "")
