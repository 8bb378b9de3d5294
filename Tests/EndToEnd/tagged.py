"""Files that say who they are: tags, covers and chapters, made by ffmpeg or byte by byte."""

import base64
import struct
import subprocess
from pathlib import Path

from media import MediaFolder, media_url

#: What ffmpeg writes with, by container. An Ogg file's cover is a comment, a Matroska file's an attachment.
ENCODERS = {
    "mp3": "-c:a libmp3lame -b:a 128k -id3v2_version 3",
    "m4a": "-c:a aac -b:a 128k",
    "flac": "-c:a flac",
    "ogg": "-c:a libvorbis",
    "opus": "-c:a libopus -b:a 96k",
    "mkv": "-c:a libopus -b:a 96k",
    "webm": "-c:a libopus -b:a 96k",
    "wav": "-c:a pcm_s16le",
}


def make_tagged(
    media: MediaFolder,
    name: str,
    tags: dict[str, str] | None = None,
    *,
    cover: Path | None = None,
    chapters: list[tuple[int, str]] = (),
    seconds: float = 12,
) -> str:
    """A tone with what is to be said of it; its URL. Chapters are starts in milliseconds and titles."""
    path = media.root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    suffix = path.suffix[1:]
    command = ["ffmpeg", "-v", "error", "-nostdin", "-y"]
    command += ["-f", "lavfi", "-i", f"sine=frequency=440:sample_rate=48000:duration={seconds}"]
    description = path.with_name(f".{path.name}.txt")
    command += ["-f", "ffmetadata", "-i", str(description)]
    maps = ["-map", "0:a", "-map_metadata", "1", "-map_chapters", "1"]
    if cover and suffix in ("mp3", "m4a", "flac"):
        command += ["-i", str(cover)]
        maps += ["-map", "2:v", "-c:v", "copy", "-disposition:v", "attached_pic"]
    elif cover and suffix == "mkv":
        maps += ["-attach", str(cover), "-metadata:s:t", f"mimetype=image/{kind_of(cover)}"]
    elif cover:
        tags = (tags or {}) | {"METADATA_BLOCK_PICTURE": base64.b64encode(flac_picture(cover)).decode()}
    # By a file, since a command line has a limit.
    description.write_text(_description(tags or {}, chapters, round(seconds * 1_000)))
    done = subprocess.run([*command, *maps, *ENCODERS[suffix].split(), "-ac", "2", str(path)], capture_output=True)
    assert done.returncode == 0, f"ffmpeg could not make {name}: {done.stderr.decode()}"
    description.unlink()
    return media_url(name)


def make_picture(folder: Path, suffix: str = "jpg", size: int = 320) -> Path:
    """A picture with enough in it not to be tiny."""
    path = folder / f"picture-{size}.{suffix}"
    if not path.exists():
        source = f"testsrc2=size={size}x{size}:rate=1"
        command = ["ffmpeg", "-v", "error", "-y", "-f", "lavfi", "-i", source, "-frames:v", "1", str(path)]
        subprocess.run(command, check=True, capture_output=True)
    return path


def kind_of(picture: Path) -> str:
    return {"jpg": "jpeg"}.get(picture.suffix[1:], picture.suffix[1:])


def flac_picture(picture: Path) -> bytes:
    """A picture block as FLAC and Ogg have it (RFC 9639, section 8.8)."""
    mime, data = f"image/{kind_of(picture)}".encode(), picture.read_bytes()
    head = struct.pack(">II", 3, len(mime)) + mime + struct.pack(">I", 0)
    return head + struct.pack(">IIIII", 320, 320, 24, 0, len(data)) + data


def id3(*frames: bytes) -> bytes:
    """An ID3v2.4 tag."""
    body = b"".join(frames)
    return b"ID3\x04\0\0" + _synchsafe(len(body)) + body


def id3_text(name: str, text: bytes) -> bytes:
    """A text frame that says it is UTF-8."""
    return id3_frame(name, b"\x03" + text)


def id3_picture(mime: str, data: bytes) -> bytes:
    return id3_frame("APIC", b"\0" + mime.encode() + b"\0\x03\0" + data)


def id3_frame(name: str, body: bytes, flags: int = 0) -> bytes:
    return name.encode() + _synchsafe(len(body)) + struct.pack(">H", flags) + body


def _synchsafe(number: int) -> bytes:
    return bytes(number >> shift & 127 for shift in (21, 14, 7, 0))


def _description(tags: dict[str, str], chapters: list[tuple[int, str]], end: int) -> str:
    """ffmpeg's own text form of metadata."""
    lines = [";FFMETADATA1", *(f"{key}={value.replace('=', chr(92) + '=')}" for key, value in tags.items())]
    stops = [start for start, _ in chapters[1:]] + [end]
    for (start, title), stop in zip(chapters, stops, strict=False):
        lines += ["[CHAPTER]", "TIMEBASE=1/1000", f"START={start}", f"END={stop}", f"title={title}"]
    return "\n".join(lines) + "\n"
