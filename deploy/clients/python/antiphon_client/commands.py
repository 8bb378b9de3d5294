"""Every command as a method."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from .state import LoopMode
from .subscriptions import Event


class Commands(ABC):
    """The commands as docs/http-and-websocket.md has them. Each gives its answer, or raises AntiphonError."""

    @abstractmethod
    async def command(self, type: str, **fields: Any) -> Event:
        """Sends a command and gives its answer."""

    async def play(
        self,
        url: str,
        *,
        start_ms: int | None = None,
        end_ms: int | None = None,
        volume: float | None = None,
        loop: bool | None = None,
        paused: bool | None = None,
        bitrate_kbps: int | None = None,
    ) -> Event:
        """Plays at once, in place of what plays; answers `ready` when there is sound, which may take seconds.

        `volume` is a linear gain of 0 to 10 (1 where not given), `bitrate_kbps` 8 to 510.
        """
        fields = _given(
            start_ms=start_ms, end_ms=end_ms, volume=volume, loop=loop, paused=paused, bitrate_kbps=bitrate_kbps
        )
        return await self.command("play", url=url, **fields)

    async def pause(self) -> Event:
        return await self.command("pause")

    async def resume(self) -> Event:
        return await self.command("resume")

    async def stop(self) -> Event:
        """Ends what plays; the queue waits."""
        return await self.command("stop")

    async def seek(self, position_ms: int) -> Event:
        return await self.command("seek", position_ms=position_ms)

    async def volume(self, level: float) -> Event:
        """Sets the linear gain, 0 to 10; it stays from track to track."""
        return await self.command("volume", level=level)

    async def quality(self, bitrate_kbps: int | None) -> Event:
        """Sets what later tracks are encoded with: 8 to 510 kbit/s, or None for the engine's own."""
        return await self.command("quality", bitrate_kbps=bitrate_kbps)

    async def status(self) -> Event:
        """The session object in `session`; with its chapters."""
        return await self.command("status")

    async def why(self) -> Event:
        """Why it is silent: `summary` is a sentence for people."""
        return await self.command("why")

    async def queue(self, offset: int = 0, limit: int = 100) -> Event:
        """A page of what waits: `["queue"]["tracks"]`, of `["queue"]["total"]`."""
        return await self.command("queue", offset=offset, limit=limit)

    async def queue_add(
        self,
        *,
        url: str | None = None,
        query: str | None = None,
        tracks: Sequence[Mapping[str, Any]] | None = None,
        title: str | None = None,
        artist: str | None = None,
        duration_ms: int | None = None,
        artwork: str | None = None,
        requested_by: str | None = None,
        next: bool | None = None,
        position: int | None = None,
    ) -> Event:
        """Adds one of `url`, `query` (a link or words to be searched for) and `tracks` (1 to 500, each with `url`).

        Where nothing plays, the first plays at once. `title` to `requested_by` go with `url`; each of `tracks` has its
        own. The answer's `["queue"]["added"]` has the new entries' IDs.
        """
        fields = _given(
            url=url,
            query=query,
            tracks=tracks,
            title=title,
            artist=artist,
            duration_ms=duration_ms,
            artwork=artwork,
            requested_by=requested_by,
            next=next,
            position=position,
        )
        return await self.command("queue_add", **fields)

    async def queue_remove(self, id: str) -> Event:
        return await self.command("queue_remove", id=id)

    async def queue_move(self, id: str, position: int) -> Event:
        """Moves an entry to an index in what waits; 0 is played next."""
        return await self.command("queue_move", id=id, position=position)

    async def queue_shuffle(self) -> Event:
        return await self.command("queue_shuffle")

    async def queue_clear(self) -> Event:
        """Empties what waits; what plays goes on."""
        return await self.command("queue_clear")

    async def queue_loop(self, mode: LoopMode) -> Event:
        return await self.command("queue_loop", mode=mode)

    async def skip(self) -> Event:
        """Plays the next track, or stops where none waits."""
        return await self.command("skip")

    async def skip_to(self, id: str) -> Event:
        return await self.command("skip_to", id=id)

    async def previous(self) -> Event:
        return await self.command("previous")

    async def history(self, limit: int | None = None) -> Event:
        """What was played: `tracks`, the newest first."""
        return await self.command("history", **_given(limit=limit))

    async def resolve(self, query: str, limit: int = 10) -> Event:
        """What a link or words stand for: `entries` of `url`, `title`, `artist`, `duration_ms`, `thumbnail`, `live`."""
        return await self.command("resolve", query=query, limit=limit)

    async def media(self, path: str | None = None) -> Event:
        """A folder below the engine's media root: `entries` of `name`, `kind` (`file`, `folder`), `url`, `bytes`."""
        return await self.command("media", **_given(path=path))


def _given(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
