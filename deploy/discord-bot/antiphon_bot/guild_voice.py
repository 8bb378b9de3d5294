"""discord.py's voice client, with what it does not do: it stays away when it has to leave, says so, and says nothing of
speaking before it may."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import discord


class GuildVoice(discord.VoiceClient):
    """discord.py's voice client, which says when it is over, and whether somebody has thrown the bot out."""

    def __init__(
        self, client: discord.Client, channel: discord.abc.Connectable, over: Callable[[GuildVoice], None]
    ) -> None:
        super().__init__(client, channel)
        self.removed = False
        self._has_been_connected = False
        self._over = over

    async def connect(self, **options: Any) -> None:
        await super().connect(**options)
        self._has_been_connected = True

    async def on_voice_state_update(self, data: Any) -> None:
        if data["channel_id"] is None and self._is_thrown_out():
            self.removed = True
            self._end_runner()
        await super().on_voice_state_update(data)

    async def disconnect(self, *, force: bool = False) -> None:
        self._end_runner()
        await super().disconnect(force=force)

    # In the middle of a handshake discord.py would name the SSRC of the connection before; once it is connected, its
    # player says by itself that it speaks.

    def pause(self) -> None:
        if self._player is not None:
            self._player.pause(update_speaking=self.is_connected())

    def resume(self) -> None:
        if self._player is not None:
            self._player.resume(update_speaking=self.is_connected())

    def _is_thrown_out(self) -> bool:
        # While discord.py reconnects, it leaves and joins by itself, and expects to be told so.
        expected = self._connection._expecting_disconnect
        return self.is_connected() or (self._has_been_connected and not expected)

    def _end_runner(self) -> None:
        """Ends discord.py's own tasks: one that is about to reconnect would come back, though it was told to leave."""
        for task in (self._connection._connector, self._connection._runner):
            if task is not None:
                task.cancel()

    def cleanup(self) -> None:
        super().cleanup()
        self._over(self)
