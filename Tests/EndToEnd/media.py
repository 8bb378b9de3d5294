"""Real media files of known content, made by ffmpeg from samples computed here."""

import contextlib
import functools
import hashlib
import itertools
import os
import shutil
import subprocess
import urllib.parse
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import signals
from processes import ROOT
from signals import Glides, tone


@dataclass(frozen=True)
class Encoding:
    """A container and codec that has to play."""

    name: str
    suffix: str
    #: ffmpeg's.
    arguments: str


MP3_CBR = Encoding("mp3-cbr", "mp3", "-c:a libmp3lame -b:a 192k")
MP3_VBR = Encoding("mp3-vbr", "mp3", "-c:a libmp3lame -q:a 2")
#: Without the Xing header, whose table of contents a seek could lean on.
MP3_VBR_BARE = Encoding("mp3-vbr-bare", "mp3", "-c:a libmp3lame -q:a 2 -write_xing 0 -id3v2_version 0")
#: Frames one after the other, with no index at all.
AAC_ADTS = Encoding("aac-adts", "aac", "-c:a aac -b:a 192k")
MATROSKA_FLAC = Encoding("matroska-flac", "mka", "-c:a flac")
M4A = Encoding("m4a", "m4a", "-c:a aac -b:a 192k")
FLAC = Encoding("flac", "flac", "-c:a flac")
WAV = Encoding("wav", "wav", "-c:a pcm_s16le")
WAV_24 = Encoding("wav-24", "wav", "-c:a pcm_s24le")
#: Its frames, of a second, are the longest of all.
TTA = Encoding("tta", "tta", "-c:a tta")
VORBIS = Encoding("vorbis", "ogg", "-c:a libvorbis -q:a 6")
OGG_OPUS = Encoding("ogg-opus", "opus", "-c:a libopus -b:a 128k -frame_duration 20")
OGG_OPUS_SURROUND = Encoding("ogg-opus-surround", "opus", "-c:a libopus -b:a 384k -frame_duration 20")
OGG_OPUS_60 = Encoding("ogg-opus-60ms", "opus", "-c:a libopus -b:a 128k -frame_duration 60")
OGG_OPUS_LOUD = Encoding("ogg-opus-loud", "opus", "-c:a libopus -b:a 450k -vbr off -frame_duration 20")
WEBM_OPUS = Encoding("webm-opus", "webm", "-c:a libopus -b:a 128k -frame_duration 20")

#: Files that were made before, by the hash of all that they are made of.
CACHE = ROOT / ".build" / "test-media"

LAYOUTS = {1: "mono", 2: "stereo", 6: "5.1"}

#: How loud a single channel is in each of several. Of 5.1 quieter, or the sum of six equal channels clips; and nothing
#: in the LFE, which is no place for it.
MONO_GAINS = {1: [1], 2: [1, 1], 6: [0.3, 0.3, 0.3, 0, 0.3, 0.3]}

#: The channels of 5.1 in the order of a file, and a tone for each to be known by.
SURROUND = {"FL": 400, "FR": 600, "FC": 800, "LFE": 60, "BL": 1_000, "BR": 1_300}


@dataclass(frozen=True)
class Clip:
    """One file: what it sounds like and how it is encoded."""

    name: str
    encoding: Encoding
    samples: Callable[[int], np.ndarray]
    rate: int = 48_000
    channels: int = 2

    @property
    def file(self) -> str:
        return f"{self.name}.{self.encoding.suffix}"

    @property
    def url(self) -> str:
        return f"media:{self.file}"

    def __str__(self) -> str:
        return self.file


@dataclass(frozen=True)
class _Surround:
    """Another tone in each channel of 5.1."""

    seconds: float

    def __call__(self, rate: int) -> np.ndarray:
        return np.stack([tone(frequency, self.seconds, rate) for frequency in SURROUND.values()], axis=1)


@dataclass(frozen=True)
class _Tone:
    """A clip's samples, equal to those of the same tone elsewhere: they are not computed again."""

    frequency: int
    seconds: float

    def __call__(self, rate: int) -> np.ndarray:
        return tone(self.frequency, self.seconds, rate)


def tone_clip(frequency: int, seconds: float, encoding: Encoding, rate: int = 48_000) -> Clip:
    return Clip(f"tone-{frequency}-{seconds:g}s-{encoding.name}", encoding, _Tone(frequency, seconds), rate)


def glides_clip(name: str, source: Glides, encoding: Encoding, rate: int = 48_000, channels: int = 2) -> Clip:
    return Clip(name, encoding, source, rate, channels)


def surround_clip(encoding: Encoding, seconds: float = 2) -> Clip:
    return Clip(f"surround-{encoding.name}", encoding, _Surround(seconds), 48_000, 6)


_copies = itertools.count(1)


class MediaFolder:
    """A media root that files are made in."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(parents=True, exist_ok=True)

    def path(self, clip: Clip) -> Path:
        """The clip's file, made if it is not there yet."""
        path = self.root / clip.file
        if not path.exists():
            # A copy, which a test may damage.
            shutil.copyfile(_encoded(clip), path)
        return path

    def make(self, *clips: Clip) -> None:
        """Makes several at once: ffmpeg takes a while for each."""
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(self.path, clips))

    def alias(self, name: str, other: str) -> str:
        """The URL of the same file as another track."""
        (self.root / other).hardlink_to(self.root / name)
        return media_url(other)

    def bytes(self, clip: Clip) -> bytes:
        return self.path(clip).read_bytes()

    def fresh(self, clip: Clip) -> str:
        """The URL of the same sound as a track that nobody has played."""
        self.path(clip)
        return self.alias(clip.file, f"fresh-{next(_copies)}-{clip.file}")

    def write(self, name: str, data: bytes) -> str:
        """A file of any content; its URL."""
        (self.root / name).write_bytes(data)
        return media_url(name)


def media_url(path: str) -> str:
    """The `media:` URL of a file: a `%` is the only character that does not stand for itself."""
    return "media:" + path.replace("%", "%25")


def http_url(base: str, name: str) -> str:
    return f"{base}/{urllib.parse.quote(name)}"


def kept(name: str, made_of: object, make: Callable[[Path], None]) -> Path:
    """What `make` makes, a file or a folder, from the cache where it was made of the same before."""
    path = CACHE / f"{hashlib.blake2b(repr(made_of).encode(), digest_size=16).hexdigest()}-{name}"
    if not path.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        # Under another name until it is whole: others make the same here at the same time, and may be interrupted.
        part = path.with_name(f"part-{os.getpid()}-{path.name}")
        make(part)
        # Theirs is as good, and a folder takes no other's place.
        with contextlib.suppress(OSError):
            part.rename(path)
    return path


def copy_kept(folder: Path, name: str, sound: Path, options: object, make: Callable[[Path], None]) -> None:
    """Has a folder hold what `make` makes of a sound with these options."""
    made_of = (hashlib.blake2b(sound.read_bytes(), digest_size=16).hexdigest(), options)
    shutil.copytree(kept(name, made_of, make), folder, dirs_exist_ok=True)


#: What is described by its numbers need not be computed to be known: these, and how they are computed.
_DESCRIBED = (_Tone, _Surround, Glides)
_HOW = hashlib.blake2b(Path(signals.__file__).read_bytes() + Path(__file__).read_bytes()).hexdigest()


@functools.cache
def _encoded(clip: Clip) -> Path:
    """The clip's file in the cache."""
    command = ["ffmpeg", "-v", "error", "-nostdin", "-y", "-f", "f32le", "-ar", str(clip.rate)]
    command += ["-channel_layout", LAYOUTS[clip.channels], "-ac", str(clip.channels), "-i", "pipe:0"]
    command += [*clip.encoding.arguments.split(), "-metadata", f"title={clip.name}"]

    def encode(path: Path) -> None:
        samples = clip.samples(clip.rate)
        if samples.ndim == 1:
            samples = samples[:, None] * MONO_GAINS[clip.channels]
        assert samples.shape[1] == clip.channels, clip
        data = samples.astype("<f4").tobytes()
        done = subprocess.run([*command, path], input=data, capture_output=True)
        assert done.returncode == 0, f"ffmpeg could not make {clip}: {done.stderr.decode()}"

    if isinstance(clip.samples, _DESCRIBED):
        sound = (clip.samples, _HOW)
    else:
        sound = hashlib.blake2b(clip.samples(clip.rate).astype("<f4"), digest_size=16).hexdigest()
    return kept(clip.file, (sound, clip.channels, command), encode)
