"""What /play suggests while somebody types: files of the media root, and what a search finds."""

from __future__ import annotations

import asyncio
import functools
import hashlib
import logging
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from antiphon_client import AntiphonError, Session

from .media_index import MediaIndex
from .text import clock, one_line, title_of

_log = logging.getLogger(__name__)

#: Discord's limits: suggestions at once, and characters of what is shown and of what stands behind it.
MAX_CHOICES, MAX_CHARACTERS = 25, 100
#: A search begins when nothing was typed for so long, and only of words that are long enough to mean something.
DEBOUNCE_SECONDS = 0.35
MIN_CHARACTERS = 3
#: Searches at once, of all servers; the engine itself has two workers for them.
MAX_SEARCHES = 2
MAX_RESULTS = 10
#: Searches that are remembered, and for how long, with ten times as many hits.
MAX_REMEMBERED = 500
REMEMBERED_SECONDS = 600.0

#: What is shown, and what /play is then given.
Choice = tuple[str, str]

_LONG_ADDRESS = "long:"


class Suggestions:
    """One for all servers."""

    def __init__(self) -> None:
        self._index = MediaIndex()
        self._searches: OrderedDict[str, asyncio.Task[list[Choice]]] = OrderedDict()
        self._long: OrderedDict[str, str] = OrderedDict()
        self._hits: OrderedDict[str, Mapping[str, Any]] = OrderedDict()
        self._latest: dict[int, object] = {}
        self._places = asyncio.Semaphore(MAX_SEARCHES)

    async def suggest(self, session: Session, user_id: int, typed: str, seconds: float) -> list[Choice]:
        """At most 25 choices, in so many seconds; what is found too late is there at the next letter."""
        typed = typed.strip()
        if typed.startswith(("http://", "https://")):
            return [(one_line(typed, MAX_CHARACTERS), self._value(typed))]
        turn = self._latest[user_id] = object()
        files = asyncio.create_task(self._files(session, typed))
        search = asyncio.create_task(self._debounced(session, user_id, turn, typed))
        await asyncio.wait({files, search}, timeout=seconds)
        if self._latest.get(user_id) is turn:
            del self._latest[user_id]
        choices = [choice for task in (files, search) if task.done() for choice in task.result()]
        search.cancel()
        return choices[:MAX_CHOICES]

    def query(self, value: str) -> str:
        """What a choice, or what somebody has typed themselves, stands for."""
        return self._long.get(value, value)

    def hit(self, url: str) -> Mapping[str, Any] | None:
        """What a search has said of an address, if one has found it."""
        return self._hits.get(url)

    async def _files(self, session: Session, typed: str) -> list[Choice]:
        try:
            files = await self._index.search(session, typed, MAX_CHOICES - MAX_RESULTS if typed else MAX_CHOICES)
        except AntiphonError as error:
            _log.info("no files to suggest: %s", error)
            return []
        return [(one_line(f"🎵 {file.path}", MAX_CHARACTERS), self._value(file.url)) for file in files]

    async def _debounced(self, session: Session, user_id: int, turn: object, typed: str) -> list[Choice]:
        key = typed.casefold()
        if len(key) < MIN_CHARACTERS or key.startswith("media:"):
            return []
        if key not in self._searches:
            await asyncio.sleep(DEBOUNCE_SECONDS)
            if self._latest.get(user_id) is not turn:
                return []
        if key not in self._searches:
            search = self._searches[key] = asyncio.create_task(self._search(session, key))
            search.add_done_callback(functools.partial(self._searched, key))
            while len(self._searches) > MAX_REMEMBERED:
                self._searches.popitem(last=False)
        return await asyncio.shield(self._searches[key])

    def _searched(self, key: str, search: asyncio.Task[list[Choice]]) -> None:
        """Remembers what was found for a while, and that nothing was not at all."""
        found = not search.cancelled() and search.result()
        search.get_loop().call_later(REMEMBERED_SECONDS if found else 0, self._forget, key, search)

    def _forget(self, key: str, search: asyncio.Task[list[Choice]]) -> None:
        if self._searches.get(key) is search:
            del self._searches[key]

    async def _search(self, session: Session, key: str) -> list[Choice]:
        try:
            async with self._places:
                found = await session.resolve(key, limit=MAX_RESULTS)
            return [self._choice(entry) for entry in found["entries"]]
        except AntiphonError as error:
            _log.info("a search found nothing: %s", error)
        except Exception:
            _log.exception("a search failed")
        return []

    def _choice(self, entry: Mapping[str, Any]) -> Choice:
        name = title_of(entry.get("title"), entry["url"], entry.get("artist"))
        length = f" ({clock(entry['duration_ms'])})" if entry.get("duration_ms") else ""
        _remember(self._hits, entry["url"], entry)
        return one_line(name, MAX_CHARACTERS - len(length)) + length, self._value(entry["url"])

    def _value(self, url: str) -> str:
        if len(url) <= MAX_CHARACTERS:
            return url
        value = _LONG_ADDRESS + hashlib.sha256(url.encode()).hexdigest()[:32]
        _remember(self._long, value, url)
        return value


def _remember(kept: OrderedDict[str, Any], key: str, value: Any) -> None:
    kept[key] = value
    kept.move_to_end(key)
    while len(kept) > MAX_REMEMBERED * MAX_RESULTS:
        kept.popitem(last=False)
