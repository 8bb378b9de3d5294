"""One short file of every container and codec that the engine opens, and many ways to damage them."""

import random
import struct
from collections.abc import Callable

from media import (
    AAC_ADTS,
    FLAC,
    M4A,
    MATROSKA_FLAC,
    MP3_CBR,
    MP3_VBR,
    MP3_VBR_BARE,
    OGG_OPUS,
    OGG_OPUS_60,
    TTA,
    VORBIS,
    WAV,
    WAV_24,
    WEBM_OPUS,
    Clip,
    Encoding,
    MediaFolder,
)
from signals import tone

SECONDS = 1.2

#: Beside what other tests play.
FURTHER = [
    Encoding("mp2", "mp2", "-c:a mp2"),
    Encoding("alac", "m4a", "-c:a alac"),
    Encoding("fragmented", "mp4", "-c:a aac -movflags +frag_keyframe+empty_moov -frag_duration 200000"),
    Encoding("mov-pcm", "mov", "-c:a pcm_s16be"),
    Encoding("3gp", "3gp", "-c:a aac"),
    Encoding("matroska-aac", "mka", "-c:a aac"),
    Encoding("matroska-pcm", "mka", "-c:a pcm_s16le"),
    Encoding("webm-vorbis", "webm", "-c:a libvorbis"),
    Encoding("ogg-flac", "oga", "-c:a flac"),
    Encoding("wav-adpcm-ms", "wav", "-c:a adpcm_ms"),
    Encoding("wav-adpcm-ima", "wav", "-c:a adpcm_ima_wav"),
    Encoding("wav-gsm", "wav", "-c:a libgsm_ms -ac 1 -ar 8000"),
    Encoding("wav-float", "wav", "-c:a pcm_f64le"),
    Encoding("w64", "w64", "-c:a pcm_alaw"),
    Encoding("aiff", "aiff", "-c:a pcm_s16be"),
    Encoding("caf-alac", "caf", "-c:a alac"),
    Encoding("caf-pcm", "caf", "-c:a pcm_s16be"),
    Encoding("au", "au", "-c:a pcm_mulaw"),
    Encoding("wavpack", "wv", "-c:a wavpack"),
    Encoding("wma1", "wma", "-c:a wmav1"),
    Encoding("wma2", "wma", "-c:a wmav2"),
    Encoding("ac3", "ac3", "-c:a ac3"),
    Encoding("eac3", "eac3", "-c:a eac3"),
    Encoding("mpegts-aac", "ts", "-c:a aac"),
    Encoding("mpegts-latm", "ts", "-c:a aac -mpegts_flags +latm"),
    Encoding("mpeg", "mpg", "-c:a mp2"),
    Encoding("flv-mp3", "flv", "-c:a libmp3lame -ar 44100"),
    Encoding("flv-aac", "flv", "-c:a aac"),
    Encoding("avi-mp3", "avi", "-c:a libmp3lame"),
    Encoding("avi-pcm", "avi", "-c:a pcm_s16le"),
]
USUAL = [AAC_ADTS, FLAC, M4A, MATROSKA_FLAC, MP3_CBR, MP3_VBR, MP3_VBR_BARE, OGG_OPUS, OGG_OPUS_60]
USUAL += [TTA, VORBIS, WAV, WAV_24, WEBM_OPUS]
CLIPS = {
    # Nothing by chance: the same bytes in every run.
    encoding.name: Clip(
        f"seed-{encoding.name}",
        Encoding(encoding.name, encoding.suffix, f"{encoding.arguments} -fflags +bitexact -flags +bitexact"),
        lambda rate: tone(440, SECONDS, rate),
    )
    for encoding in [*USUAL, *FURTHER]
}


def ape(frames: int = 60) -> bytes:
    """Monkey's Audio, which ffmpeg cannot write: frames that say that they are silence."""
    samples, frame = 1_024, struct.pack("<II", 0x80000000, 3) + bytes(8)
    descriptor = b"MAC " + struct.pack("<HHIIIIIII", 3_990, 0, 52, 24, 4 * frames, 0, len(frame) * frames, 0, 0)
    header = struct.pack("<HHIIIHHI", 2_000, 0, samples, samples, frames, 16, 2, 48_000)
    first = 52 + 24 + 4 * frames
    table = b"".join(struct.pack("<I", first + number * len(frame)) for number in range(frames))
    return descriptor + bytes(16) + header + table + frame * frames


def amr(head: bytes, kind: int, size: int) -> bytes:
    """AMR, which ffmpeg cannot write: speech of chance, since every frame can be decoded."""
    dice = random.Random(size)
    return head + b"".join(bytes([kind]) + dice.randbytes(size) for _ in range(60))


def musepack(packets: int = 50) -> bytes:
    """Musepack 8, which ffmpeg cannot write: a header, and packets of chance."""
    dice = random.Random(8)
    # Version, samples, silence at the start; 44.1 kHz and 27 bands; two channels and a frame in each packet.
    head = b"sum." + bytes([8, 0x83, 0xA0, 0x00, 0x00, 0x1A, 0x10])
    blocks = [(b"SH", head)] + [(b"AP", bytes(4) + dice.randbytes(90)) for _ in range(packets)] + [(b"SE", b"")]
    return b"MPCK" + b"".join(name + bytes([3 + len(body)]) + body for name, body in blocks)


HANDMADE: dict[str, Callable[[], bytes]] = {
    "ape": ape,
    "amr-nb": lambda: amr(b"#!AMR\n", 0x3C, 31),
    "amr-wb": lambda: amr(b"#!AMR-WB\n", 0x04, 17),
    "musepack8": musepack,
}


def make_seeds(media: MediaFolder) -> dict[str, bytes]:
    """Kind → its file."""
    media.make(*CLIPS.values())
    return {name: media.bytes(clip) for name, clip in CLIPS.items()} | {name: make() for name, make in HANDMADE.items()}


# MARK: Damage

#: Where most of what a reader believes is written.
HEAD = 400
BOUNDARIES = [0, 1, 2, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 2**63 - 1]


def _place(dice: random.Random, data: bytes) -> int:
    """Half of all damage is near one of the ends: an MP4's index may be at the last."""
    reach = dice.choice([HEAD, HEAD, len(data), len(data)])
    place = dice.randrange(min(reach, len(data)))
    return len(data) - 1 - place if reach == HEAD and dice.random() < 0.25 else place


def _flip_bits(dice: random.Random, data: bytearray, _: bytes) -> None:
    for _ in range(dice.choice([1, 4, 30])):
        data[_place(dice, data)] ^= 1 << dice.randrange(8)


def _overwrite(dice: random.Random, data: bytearray, _: bytes) -> None:
    at, length = _place(dice, data), dice.choice([2, 8, 60, 800])
    length = min(length, len(data) - at)
    data[at : at + length] = dice.choice([bytes(length), b"\xff" * length, dice.randbytes(length)])


def _set_integer(dice: random.Random, data: bytearray, _: bytes) -> None:
    for _ in range(dice.choice([1, 1, 3])):
        width = dice.choice([1, 2, 4, 4, 8])
        at = max(0, min(_place(dice, data), len(data) - width))
        number = dice.choice(BOUNDARIES) & (1 << 8 * width) - 1
        data[at : at + width] = number.to_bytes(width, dice.choice(["little", "big"]))


def _truncate(dice: random.Random, data: bytearray, _: bytes) -> None:
    del data[_place(dice, data) :]


def _repeat(dice: random.Random, data: bytearray, _: bytes) -> None:
    at, length = _place(dice, data), dice.choice([4, 100, 3_000])
    data[at:at] = data[at : at + length] * dice.choice([1, 20])


def _swap(dice: random.Random, data: bytearray, _: bytes) -> None:
    length = min(dice.choice([4, 100, 3_000]), len(data) // 3)
    first = dice.randrange(len(data) // 2 - length + 1)
    second = dice.randrange(len(data) // 2, len(data) - length + 1)
    one, other = data[first : first + length], data[second : second + length]
    data[first : first + length], data[second : second + length] = other, one


def _cut_out(dice: random.Random, data: bytearray, _: bytes) -> None:
    at = _place(dice, data)
    del data[at : at + dice.choice([1, 7, 500])]


def _splice(dice: random.Random, data: bytearray, other: bytes) -> None:
    """The beginning of one file, and the end of another."""
    at = _place(dice, data)
    data[at:] = other[_place(dice, other) :]


WAYS = [_flip_bits, _overwrite, _set_integer, _set_integer, _truncate, _repeat, _swap, _cut_out, _splice]


def mutate(seeds: dict[str, bytes], kind: str, number: int) -> bytes:
    """The same for the same seeds, whatever else is run."""
    dice = random.Random(f"{kind} {number}")
    data = bytearray(seeds[kind])
    for _ in range(dice.choice([1, 1, 2])):
        other = seeds[dice.choice(sorted(seeds))]
        if len(data) > 16:
            dice.choice(WAYS)(dice, data, other)
    return bytes(data)
