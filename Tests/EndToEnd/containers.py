"""Containers written byte by byte, with numbers in them that no honest program writes."""

import io
import itertools
import struct
import subprocess
import zlib
from collections.abc import Iterator

import numpy as np

from ogg import page
from tagged import id3, id3_frame

# MARK: WAV, MP3 and FLAC


def wav(rate: int, data: bytes, extra: bytes = b"", *, kind: int = 1, channels: int = 1, align: int = 2) -> bytes:
    fmt = b"fmt " + struct.pack("<IHHIIHH", 16, kind, channels, rate, rate * align % 2**32, align, 16)
    body = b"WAVE" + fmt + extra + b"data" + struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", len(body)) + body


def mp3(rate: int) -> bytes:
    samples = (np.sin(np.arange(rate // 5) * 2 * np.pi * 440 / rate) * 8_000).astype("<i2")
    command = ["ffmpeg", "-v", "error", "-f", "s16le", "-ar", str(rate), "-ac", "1", "-i", "pipe:0"]
    command += ["-write_xing", "0", "-id3v2_version", "0", "-f", "mp3", "pipe:1"]
    return subprocess.run(command, input=io.BytesIO(samples.tobytes()).read(), capture_output=True, check=True).stdout


def named_texts(count: int, first: str = "") -> bytes:
    """An ID3v2.4 tag of so many small frames, each of another name."""
    return id3(*(id3_frame("TXXX", f"\x03{first}{number:x}\0x".encode()) for number in range(count)))


def old_id3(frames: list[bytes]) -> bytes:
    """ID3v2.3."""
    size = sum(map(len, frames))
    return b"ID3\x03\0\0" + bytes(size >> shift & 0x7F for shift in (21, 14, 7, 0)) + b"".join(frames)


def old_frame(name: bytes, data: bytes) -> bytes:
    return name + struct.pack(">IH", len(data), 0) + data


def squeezed_text(length: int) -> bytes:
    """An ID3v2.4 frame that is compressed, and says how long it becomes."""
    return id3_frame("TXXX", struct.pack(">I", length) + zlib.compress(b"\x03k\0" + b"x" * (length - 4)), flags=9)


def flac(*blocks: tuple[int, bytes]) -> bytes:
    """A FLAC file's first blocks, each a kind and its bytes, and hardly any sound."""
    stream = ((44_100 << 44) | (1 << 41) | (15 << 36) | 441_000).to_bytes(8, "big")
    every = [(0, struct.pack(">HH", 4_096, 4_096) + bytes(6) + stream + bytes(16)), *blocks]
    packed = bytearray()
    for number, (kind, body) in enumerate(every, 1):
        packed += bytes([kind | 0x80 * (number == len(every))]) + len(body).to_bytes(3, "big") + body
    return b"fLaC" + packed + b"\xff\xf8" + bytes(1_000)


def comments(count: int) -> bytes:
    fields = (b"k%d=v" % number for number in range(count))
    return bytes(4) + struct.pack("<I", count) + b"".join(struct.pack("<I", len(field)) + field for field in fields)


def picture(width: int, height: int, data: bytes) -> bytes:
    """A FLAC picture block (RFC 9639, section 8.8)."""
    head = struct.pack(">II", 3, 9) + b"image/png" + struct.pack(">I", 0)
    return head + struct.pack(">IIIII", width, height, 24, 0, len(data)) + data


def png(width: int, height: int) -> bytes:
    """A picture of one colour, of which there is only the beginning."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    data = zlib.compress(bytes(10_000_000))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


# MARK: MP4


def box(name: bytes, *parts: bytes) -> bytes:
    """ISO 14496-12, section 4.2."""
    body = b"".join(parts)
    return struct.pack(">I", 8 + len(body)) + name + body


def full_box(name: bytes, *numbers: int) -> bytes:
    """With version and flags 0."""
    return box(name, struct.pack(f">{1 + len(numbers)}I", 0, *numbers))


def silent_frame(samples: int) -> bytes:
    """One ALAC element of a channel: its length is written out, and runs of zeros take nearly nothing."""
    bits = "000" + "0000" + "0" * 12 + "1" + "00" + "0" + f"{samples:032b}"
    # No mixing; prediction of no order, with a Rice parameter that begins at 1.
    bits += "0" * 16 + "0000" + "0001" + "000" + "00000"
    left = samples
    while left > 0:
        bits += "0"
        left -= 1
        if left > 0:
            run = min(65_535, left)
            bits += "1" * 9 + f"{run:016b}"
            left -= run
    bits += "111" + "0" * 64
    bits += "0" * (-len(bits) % 8)
    return int(bits, 2).to_bytes(len(bits) // 8, "big")


def m4a(
    rate: int,
    times: bytes,
    sizes: bytes,
    chunks: int,
    duration: int,
    data: bytes,
    *,
    tracks: int = 1,
    edits: bytes = b"",
    user: bytes = b"",
) -> bytes:
    settings = struct.pack(">IIBBBBBBHIII", 0, 1 << 24, 0, 16, 0, 0, 14, 1, 255, 0, 0, rate)
    entry = struct.pack(">HHHIHHHHI", 1, 0, 0, 0, 1, 16, 0, 0, (rate & 0xFFFF) << 16)
    described = box(b"stsd", struct.pack(">II", 0, 1), box(b"alac", bytes(6), entry, box(b"alac", settings)))

    def movie(offset: int) -> bytes:
        table = box(b"stbl", described, times, sizes, full_box(b"stsc", 1, 1, chunks, 1), full_box(b"stco", 1, offset))
        media_header = box(b"mdhd", struct.pack(">IIIIIHH", 0, 0, 0, rate, min(duration, 2**32 - 1), 0x55C4, 0))
        handler = box(b"hdlr", bytes(8) + b"soun" + bytes(13))
        information = box(b"minf", box(b"smhd", bytes(8)), table)
        header = box(b"tkhd", struct.pack(">I", 7) + bytes(80))
        track = box(b"trak", header, edits, box(b"mdia", media_header, handler, information))
        movie_header = box(b"mvhd", struct.pack(">5I", 0, 0, 0, 1_000, 0) + bytes(80))
        return box(b"moov", movie_header, track * tracks, user)

    kind = box(b"ftyp", b"M4A \0\0\0\0M4A mp42")
    return kind + movie(len(kind) + len(movie(0)) + 8) + box(b"mdat", data)


def alac(rate: int, lengths: list[int], **more: bytes | int) -> bytes:
    frames = [silent_frame(length) for length in lengths]
    times = full_box(b"stts", len(lengths), *(number for length in lengths for number in (1, length)))
    sizes = full_box(b"stsz", 0, len(frames), *map(len, frames))
    return m4a(rate, times, sizes, len(frames), sum(lengths), b"".join(frames), **more)


def indexed(count: int) -> tuple[bytes, int]:
    """One size for all frames: the table needs no entries. The file is as long as it says, and has a hole."""
    frame = silent_frame(4_096)
    times, sizes = full_box(b"stts", 1, count, 4_096), full_box(b"stsz", len(frame), count)
    content = m4a(48_000, times, sizes, count, 4_096 * count, frame * 400)
    return content, len(content) + len(frame) * (count - 400)


def freeform_tags(count: int) -> bytes:
    """MP4 tags of free names, as iTunes writes them."""
    mean = box(b"mean", bytes(4), b"com.apple.iTunes")
    value = box(b"data", struct.pack(">II", 1, 0), b"v")
    each = (box(b"----", mean, box(b"name", bytes(4), b"k%d" % number), value) for number in range(count))
    handler = box(b"hdlr", bytes(8) + b"mdirappl" + bytes(9))
    return box(b"udta", box(b"meta", bytes(4), handler, box(b"ilst", *each)))


def nested(name: bytes, depth: int) -> bytes:
    content = b""
    for _ in range(depth):
        content = box(name, content)
    return content


# MARK: Matroska


def element(number: int, *parts: bytes) -> bytes:
    """RFC 8794."""
    body = b"".join(parts)
    size = bytes([0x80 | len(body)]) if len(body) < 127 else (1 << 56 | len(body)).to_bytes(8, "big")
    return number.to_bytes((number.bit_length() + 7) // 8, "big") + size + body


def matroska(*parts: bytes, tracks: int = 1, compressed: bool = False) -> bytes:
    """PCM of 48 kHz. Compressed, what blocks hold is as zlib makes it."""
    sound = element(0xE1, element(0xB5, struct.pack(">d", 48_000)), element(0x9F, b"\1"), element(0x6264, b"\x10"))
    coding = element(0x6D80, element(0x6240, element(0x5034, element(0x4254, b"\0")))) if compressed else b""

    def track(number: int) -> bytes:
        name = number.to_bytes(2, "big")
        kind = element(0x83, b"\2") + element(0x86, b"A_PCM/INT/LIT")
        return element(0xAE, element(0xD7, name), element(0x73C5, name), kind, sound, coding)

    head = element(0x1A45DFA3, element(0x4282, b"matroska"))
    described = element(0x1654AE6B, *(track(number + 1) for number in range(tracks)))
    # One whose length is not known: the last.
    return head + b"\x18\x53\x80\x67\x01" + b"\xff" * 7 + described + b"".join(parts)


def cluster(frames: bytes, milliseconds: int = 0, flags: int = 0) -> bytes:
    block = element(0xA3, b"\x81\0\0", bytes([flags]), frames)
    return element(0x1F43B675, element(0xE7, milliseconds.to_bytes(4, "big")), block)


def squeezed_laces(seconds: int) -> bytes:
    """After so much honest sound each block has 256 frames of 9,700 bytes that become 9.9 MB: 2.5 MB become 2.5 GB."""
    second = zlib.compress(np.random.default_rng(1).bytes(96_000))
    honest = (cluster(second, 1_000 * number) for number in range(seconds))
    frame = zlib.compress(bytes(9_900_000), 9)
    laced = 4
    return matroska(*honest, *[cluster(b"\xff" + frame * 256, 1_000 * seconds, laced)] * 2, compressed=True)


# MARK: AVI


def chunk(name: bytes, *parts: bytes) -> bytes:
    body = b"".join(parts)
    return name + struct.pack("<I", len(body)) + body + bytes(len(body) % 2)


def avi(outer: int, inner: int) -> bytes:
    """An index of indexes (OpenDML 1.02, section 3.0), all of which are the same one: outer times inner entries."""
    sound = struct.pack("<HHIIHH", 1, 1, 48_000, 96_000, 2, 16)
    header = b"auds" + struct.pack("<IIIIIIIIIII4H", 0, 0, 0, 0, 1, 48_000, 0, 2**31, 4_096, 0, 2, 0, 0, 0, 0)

    def whole(place: int) -> bytes:
        index = struct.pack("<HBBI4s12x", 4, 0, 0, outer, b"00wb")
        index += struct.pack("<QII", place, 24 + 8 * inner, inner) * outer
        stream = chunk(b"LIST", b"strl", chunk(b"strh", header), chunk(b"strf", sound), chunk(b"indx", index))
        main = chunk(b"avih", struct.pack("<14I", 40_000, 96_000, 0, 0, 1_000, 0, 1, 4_096, 0, 0, 0, 0, 0, 0))
        return b"AVI " + chunk(b"LIST", b"hdrl", main, stream)

    entries = b"".join(struct.pack("<II", 2 * number, 2) for number in range(inner))
    standard = chunk(b"ix00", struct.pack("<HBBI4sQI", 2, 0, 1, inner, b"00wb", 0, 0), entries)
    beginning = len(whole(0)) + 8
    return chunk(b"RIFF", whole(beginning), standard, chunk(b"LIST", b"movi", chunk(b"00wb", bytes(65_536))))


# MARK: Ogg


def opus_head() -> bytes:
    return b"OpusHead" + struct.pack("<BBHIhB", 1, 2, 312, 48_000, 0, 0)


def chained(first: int = 1) -> Iterator[bytes]:
    """Ogg Opus files of one packet of silence, one after the other without end (RFC 3533, section 4)."""
    said = b"OpusTags" + struct.pack("<I", 0) + struct.pack("<I", 1) + struct.pack("<I", 9) + b"TITLE=a%d"
    for serial in itertools.count(first):
        yield (
            page(serial, 0, 0, [opus_head()], first=True)
            + page(serial, 1, 0, [said % (serial % 10)])
            + page(serial, 2, 960, [b"\xfc\xff\xfe"], last=True)
        )


# MARK: Others


def caf(packet_bytes: int, packet_frames: int, extra: bytes = b"", kind: bytes = b"lpcm") -> bytes:
    """Core Audio: the data is as long as the file."""
    described = struct.pack(">d4sIIIII", 48_000, kind, 0, packet_bytes, packet_frames, 2, 16)
    head = b"caff" + struct.pack(">HH", 1, 0) + b"desc" + struct.pack(">q", 32) + described
    return head + extra + b"data" + struct.pack(">qI", -1, 0) + bytes(1_000)


def packet_table(count: int) -> bytes:
    """Of Core Audio: each packet's length in a byte."""
    body = struct.pack(">qqII", count, count * 1_024, 0, 0) + b"\x40" * count
    return b"pakt" + struct.pack(">q", len(body)) + body


def tta(samples: int, rate: int) -> bytes:
    return b"TTA1" + struct.pack("<HHHIII", 1, 2, 16, rate, samples, 0) + bytes(4_000)


def ape_table(frames: int) -> bytes:
    descriptor = b"MAC " + struct.pack("<HHIIIIIII", 3_990, 0, 52, 24, 4 * frames, 0, 0, 0, 0)
    return (
        descriptor + bytes(16) + struct.pack("<HHIIIHHI", 2_000, 0, 1_024, 1_024, frames, 16, 2, 48_000) + bytes(9_000)
    )


def musepack(frames: int) -> bytes:
    return b"MP+\x07" + struct.pack("<I", frames) + bytes(5_000)


def ape_tag(count: int) -> bytes:
    """An APEv2 tag, at a file's end."""
    items = b"".join(struct.pack("<II", 1, 0) + b"k%d\0v" % number for number in range(count))
    return items + b"APETAGEX" + struct.pack("<IIII", 2_000, len(items) + 32, count, 0) + bytes(8)
