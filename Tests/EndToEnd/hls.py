"""HLS streams as ffmpeg makes them, and a server for them."""

import contextlib
import subprocess
from pathlib import Path

from aiohttp import web
from aiohttp.test_utils import TestServer

from media import copy_kept
from processes import Antiphon

#: What ffmpeg is told for each kind of segments.
KINDS = {
    "ts": ["-c:a", "aac", "-b:a", "128k"],
    "fmp4": ["-c:a", "aac", "-b:a", "128k", "-hls_segment_type", "fmp4"],
    "ranges": ["-c:a", "aac", "-b:a", "128k", "-hls_flags", "single_file"],
    "encrypted": ["-c:a", "aac", "-b:a", "128k", "-hls_key_info_file", "{key}"],
    "mp3": ["-c:a", "libmp3lame", "-b:a", "128k"],
}


def command(folder: Path, sound: Path, kind: str, *more: str) -> list[str]:
    """Makes `folder`/index.m3u8 of a sound; `more` stands before the input."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "secret.key").write_bytes(bytes(range(16)))
    (folder / "key.txt").write_text(f"secret.key\n{folder / 'secret.key'}\n{'0f' * 16}\n")
    options = [option.format(key=folder / "key.txt") for option in KINDS[kind]]
    return [
        *("ffmpeg", "-hide_banner", "-loglevel", "error", "-y", *more, "-i", str(sound), "-map", "0:a", *options),
        *("-f", "hls"),
    ]


def make(folder: Path, sound: Path, kind: str, seconds: int = 4) -> None:
    """All of a sound, in segments of so many seconds."""

    def segment(folder: Path) -> None:
        making = [*command(folder, sound, kind), "-hls_time", str(seconds), "-hls_playlist_type", "vod"]
        subprocess.run([*making, str(folder / "index.m3u8")], check=True, stdin=subprocess.DEVNULL)

    copy_kept(folder, "hls", sound, (KINDS[kind], seconds), segment)


@contextlib.contextmanager
def broadcast(folder: Path, sound: Path, kind: str = "ts"):
    """Round and round as time goes by, with four segments of a second in its list."""
    making = [*command(folder, sound, kind, "-re", "-stream_loop", "-1"), "-hls_time", "1", "-hls_list_size", "4"]
    making += ["-hls_flags", "delete_segments+omit_endlist", str(folder / "index.m3u8")]
    process = subprocess.Popen(making, stdin=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.kill()
        process.wait()


def player(folder: Path, media: Path) -> Antiphon:
    """Both processes, for streams in segments of servers that may hang."""
    # Ports come again, and with them addresses.
    options = ("--source-timeout-seconds", "2", "--web-cache-seconds", "0")
    return Antiphon(folder, media, allow=("127.0.0.1/32",), engine_options=options)


@contextlib.asynccontextmanager
async def site(folder: Path, **pages):
    """Serves a folder, and what handlers make at addresses of their names; the address, and the paths that are asked
    for."""
    asked: list[str] = []

    @web.middleware
    async def note(question: web.Request, handler) -> web.StreamResponse:
        asked.append(question.path)
        return await handler(question)

    application = web.Application(middlewares=[note])
    for name, handler in pages.items():
        application.router.add_get(f"/{name}", handler)
    application.router.add_static("/", folder)
    async with TestServer(application) as server:
        yield str(server.make_url("")).rstrip("/"), asked
