"""A client of `GET /stream/ID`: server-sent events as the HTML standard has them, and the sound in them."""

import base64
import json
import subprocess
import zlib
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import numpy as np

import github
from client import bearer
from github import accepted, deliver
from inbox import Event, Inbox, reading


class Stream(Inbox):
    """What one client has received: each message with its `id` beside `type` and `data`."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.headers: dict[str, str] = {}
        self.retry_ms: int | None = None

    async def read(self, response: aiohttp.ClientResponse) -> None:
        waiting = bytearray()
        try:
            async for chunk in response.content.iter_any():
                waiting += chunk
                while (end := waiting.find(b"\n\n")) >= 0:
                    await self.put([self._message(bytes(waiting[:end]).decode())])
                    del waiting[: end + 2]
            assert not waiting, f"a message is cut: {bytes(waiting[:200])!r}"
            await self.close("the end")
        except aiohttp.ClientError as error:
            await self.close(repr(error))

    def _message(self, text: str) -> Event:
        fields = [line.partition(": ")[::2] for line in text.split("\n")]
        names = [name for name, _ in fields]
        assert names in (["id", "data"], ["retry", "id", "data"]), names
        values = dict(fields)
        if "retry" in values:
            assert not self.received
            self.retry_ms = int(values["retry"])
        message = json.loads(values["data"])
        assert message.keys() == {"type", "data"}, message.keys()
        return message | {"id": int(values["id"])}

    async def buffers(self, count: int, since: int = 0) -> list[Event]:
        """The first `count` pieces of sound."""

        def find() -> list[Event] | None:
            found = self.events("audio_buffer", since)
            return found[:count] if len(found) >= count else None

        return await self.wait(find, f"{count} pieces")

    def __str__(self) -> str:
        return f"received {[(event['type'], event['id']) for event in self.events()]}"


@asynccontextmanager
async def stream(
    router: str,
    repository: object,
    encoding: str | None = None,
    *,
    last: int | None = None,
    token: str | None = None,
    query: dict[str, str] | None = None,
):
    """Connects, reads in the background, and disconnects at the end."""
    headers = bearer(token) | ({} if last is None else {"Last-Event-ID": str(last)})
    params = ({} if encoding is None else {"encoding": encoding}) | (query or {})
    timeout = aiohttp.ClientTimeout(total=None)
    async with (
        aiohttp.ClientSession(timeout=timeout) as http,
        http.get(f"{router}/stream/{repository}", params=params, headers=headers) as response,
    ):
        assert response.status == 200, (response.status, await response.text())
        client = Stream(f"stream of {repository}")
        client.headers = dict(response.headers)
        async with reading(client.read(response)):
            yield client


async def push(router: str, number: int, *messages: str) -> None:
    """Something to hear in a repository."""
    accepted(await deliver(router, "push", github.push(number, *(messages or ("Sing",)))))


def samples(buffer: dict[str, Any]) -> np.ndarray:
    """The sound of a buffer, whatever its encoding: samples by channels, −1 to 1."""
    if buffer.get("encoding") == "json-deflate":
        buffer = json.loads(zlib.decompress(base64.b64decode(buffer["data"])))
    if "channels" in buffer:
        sound = np.array(buffer["channels"], dtype=np.float64).T
    elif buffer["encoding"] == "pcm16":
        sound = np.frombuffer(base64.b64decode(buffer["data"]), dtype="<i2").reshape(-1, 2) / 32_768
    else:
        assert buffer["encoding"] == "opus" and buffer["mimeType"] == "audio/ogg", buffer.keys()
        decoded = subprocess.run(
            ["ffmpeg", "-v", "error", "-i", "-", "-f", "f32le", "-ac", "2", "-ar", "48000", "-"],
            input=base64.b64decode(buffer["data"]),
            capture_output=True,
            check=True,
        )
        sound = np.frombuffer(decoded.stdout, dtype="<f4").reshape(-1, 2).astype(np.float64)
    assert buffer["numberOfChannels"] == 2 == sound.shape[1]
    assert buffer["sampleRate"] == 48_000
    assert abs(buffer["duration"] - buffer["length"] / 48_000) < 1e-3
    return sound
