"""DASH streams as ffmpeg makes them. `hls.site` serves them."""

import contextlib
import subprocess
from pathlib import Path

from media import copy_kept

AAC = ["-c:a", "aac", "-b:a", "128k"]
OPUS = ["-c:a", "libopus", "-b:a", "128k"]

#: What ffmpeg is told for each kind of manifest and segments.
KINDS = {
    "timeline": AAC,
    "numbers": [*AAC, "-use_timeline", "0"],
    "list": [*AAC, "-use_template", "0"],
    "ranges": [*AAC, "-single_file", "1"],
    "webm": OPUS,
    "opus in mp4": [*OPUS, "-dash_segment_type", "mp4"],
}


def command(folder: Path, sound: Path, kind: str, *more: str) -> list[str]:
    """Makes `folder`/index.mpd of a sound; `more` stands before the input."""
    folder.mkdir(parents=True, exist_ok=True)
    return [
        *("ffmpeg", "-hide_banner", "-loglevel", "error", "-y", *more, "-i", str(sound), "-map", "0:a"),
        *(*KINDS[kind], "-f", "dash"),
    ]


def make(folder: Path, sound: Path, kind: str, seconds: int = 4) -> None:
    """All of a sound, in segments of so many seconds."""

    def segment(folder: Path) -> None:
        making = [*command(folder, sound, kind), "-seg_duration", str(seconds), str(folder / "index.mpd")]
        subprocess.run(making, check=True, stdin=subprocess.DEVNULL)

    copy_kept(folder, "dash", sound, (KINDS[kind], seconds), segment)


def make_one_file(folder: Path, sound: Path, name: str) -> None:
    """All of a sound in one file with an index, to which `SegmentBase` leads, as on-demand services have it."""
    folder.mkdir(parents=True, exist_ok=True)
    is_webm = name.endswith("webm")
    codec = OPUS if is_webm else [*AAC, "-movflags", "+dash+global_sidx+frag_keyframe", "-frag_duration", "4000000"]
    making = ["ffmpeg", "-hide_banner", "-loglevel", "error", "-y", "-i", str(sound), "-map", "0:a", *codec]
    subprocess.run([*making, str(folder / name)], check=True, stdin=subprocess.DEVNULL)
    (folder / "index.mpd").write_text(
        manifest(f"<BaseURL>{name}</BaseURL><SegmentBase indexRange='0-99'><Initialization range='0-9'/></SegmentBase>")
    )


def manifest(inside: str, head: str = 'type="static" mediaPresentationDuration="PT20S"', before: str = "") -> str:
    """One sound in one period."""
    return (
        f'<?xml version="1.0"?>\n{before}<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" {head}><Period>'
        f'<AdaptationSet mimeType="audio/mp4"><Representation id="0" bandwidth="128000">{inside}</Representation>'
        "</AdaptationSet></Period></MPD>"
    )


@contextlib.contextmanager
def broadcast(folder: Path, sound: Path, kind: str):
    """Round and round as time goes by, with four segments of a second in its window."""
    making = [*command(folder, sound, kind, "-re", "-stream_loop", "-1"), "-seg_duration", "1", "-window_size", "4"]
    process = subprocess.Popen([*making, str(folder / "index.mpd")], stdin=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.kill()
        process.wait()
