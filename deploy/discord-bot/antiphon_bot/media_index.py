"""The files below the engine's media root, to be searched in."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from dataclasses import dataclass

from antiphon_client import Session

#: The whole index is made again when it is older.
FRESH_SECONDS = 60.0
#: What is beyond is not suggested; it can still be played by its name.
MAX_FOLDERS, MAX_FILES = 200, 10_000


@dataclass(frozen=True)
class MediaFile:
    #: Below the media root, with its folders.
    path: str
    url: str


class MediaIndex:
    """One for all servers, since they share the media root."""

    def __init__(self) -> None:
        self._files: list[MediaFile] = []
        self._made_at = float("-inf")
        self._making = asyncio.Lock()

    async def search(self, session: Session, words: str, limit: int) -> list[MediaFile]:
        """The files that have all the words in their path, in its order; all where there are none."""
        await self._refresh(session)
        wanted = words.removeprefix("media:").casefold().split()
        found = (file for file in self._files if all(word in file.path.casefold() for word in wanted))
        return [file for file, _ in zip(found, range(limit), strict=False)]

    async def _refresh(self, session: Session) -> None:
        async with self._making:
            if time.monotonic() - self._made_at > FRESH_SECONDS:
                self._files = await _walk(session)
                self._made_at = time.monotonic()


async def _walk(session: Session) -> list[MediaFile]:
    files: list[MediaFile] = []
    folders = deque([""])
    seen = 0
    while folders and seen < MAX_FOLDERS and len(files) < MAX_FILES:
        folder = folders.popleft()
        seen += 1
        listing = await session.media(folder or None)
        for entry in listing["entries"]:
            path = f"{folder}/{entry['name']}" if folder else entry["name"]
            if entry["kind"] == "folder":
                folders.append(path)
            else:
                files.append(MediaFile(path, entry["url"]))
    return sorted(files[:MAX_FILES], key=lambda file: file.path.casefold())
