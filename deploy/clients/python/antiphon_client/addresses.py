"""Where the Routers of one Antiphon are, each of which serves every session."""

from __future__ import annotations

from collections.abc import Sequence


class Addresses:
    """One address or more: the one in use, and which of the others have not been tried since the last wait."""

    def __init__(self, url: str | Sequence[str]) -> None:
        """`url` is one address, several with commas between them, or a list. Raises ValueError where there is none."""
        given = url.split(",") if isinstance(url, str) else url
        self._all = tuple(address.strip() for address in given if address.strip())
        if not self._all:
            raise ValueError("there is no address of a Router; one is http://127.0.0.1:8080")
        self._index = 0
        self._untried = len(self._all) - 1

    def __str__(self) -> str:
        return ", ".join(self._all)

    @property
    def current(self) -> str:
        return self._all[self._index]

    def advance(self) -> bool:
        """Goes to the next address. Whether it is to be tried at once: it was not since the last wait."""
        self._index = (self._index + 1) % len(self._all)
        self._untried -= 1
        return self._untried >= 0

    def begin_round(self) -> None:
        """After a wait, or a connection that lasted: each of the others is worth a try at once."""
        self._untried = len(self._all) - 1
