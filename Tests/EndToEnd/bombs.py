"""Small files that ask for much: memory, time, streams."""

import itertools
import struct
from collections.abc import Callable

from containers import (
    alac,
    ape_table,
    ape_tag,
    avi,
    box,
    caf,
    chained,
    cluster,
    comments,
    element,
    flac,
    freeform_tags,
    full_box,
    indexed,
    matroska,
    mp3,
    musepack,
    nested,
    old_frame,
    old_id3,
    opus_head,
    packet_table,
    picture,
    png,
    squeezed_laces,
    squeezed_text,
    tta,
    wav,
)
from media import MediaFolder
from ogg import page
from tagged import id3, id3_picture

# MARK: The bombs

#: libav's time for each grows with the square of what is in it: half a minute of a core, and more.
RICH: dict[str, Callable[[], bytes]] = {
    "private.mp3": lambda: (
        old_id3([old_frame(b"PRIV", b"o%d\0d" % number) for number in range(35_000)]) + mp3(8_000) * 10
    ),
    "texts.mp3": lambda: (
        old_id3([old_frame(b"TXXX", b"\0k%d\0v" % number) for number in range(35_000)]) + mp3(8_000) * 10
    ),
    "comments.flac": lambda: flac((4, comments(400_000))),
}

MEBIBYTE = 1 << 20

#: Each a file, or its beginning and its length, the rest of which is a hole.
BOMBS: dict[str, Callable[[], bytes | tuple[bytes, int]]] = RICH | {
    # A kilobyte, and an index of 80 million entries.
    "index.m4a": lambda: indexed(80_000_000)[0][:1_066],
    "index-with-hole.m4a": lambda: indexed(5_000_000),
    "edits.m4a": lambda: alac(
        48_000, [4_096] * 2_000, edits=box(b"edts", full_box(b"elst", 50_000, *([170_000, 0, 65_536] * 50_000)))
    ),
    "freeform.m4a": lambda: alac(48_000, [4_096] * 20, user=freeform_tags(60_000)),
    "streams.m4a": lambda: alac(48_000, [4_096] * 20, tracks=10_000),
    "nested.m4a": lambda: alac(48_000, [4_096] * 20, user=nested(b"udta", 20_000)),
    "huge-frames.m4a": lambda: alac(48_000, [4_096] * 12 + [(1 << 24) - 1] * 40),
    "squeezed.mp3": lambda: id3(*[squeezed_text(60_000_000)] * 40) + mp3(8_000) * 10,
    "chain-of-tags.mp3": lambda: id3() * 200_000 + mp3(8_000) * 10,
    "pictures.mp3": lambda: id3(*[id3_picture("image/png", bytes(2_000))] * 5_000) + mp3(8_000) * 10,
    "gigapixel.mp3": lambda: id3(id3_picture("image/png", png(60_000, 60_000))) + mp3(8_000) * 10,
    "ape-tag.mp3": lambda: mp3(8_000) * 10 + ape_tag(65_000),
    "gigapixel.flac": lambda: flac((6, picture(2**31, 2**31, png(2**31 - 1, 2**31 - 1)))),
    "pictures.flac": lambda: flac(*[(6, picture(9, 9, bytes(4 * MEBIBYTE)))] * 12),
    "seektable.flac": lambda: flac(*[(3, b"".join(struct.pack(">QQH", n, n, 9) for n in range(900_000)))] * 3),
    "indexes.avi": lambda: avi(250_000, 500_000),
    "laces.mka": lambda: squeezed_laces(0),
    "laces-later.mka": lambda: squeezed_laces(2),
    "streams.mka": lambda: matroska(cluster(bytes(9_600)), tracks=10_000),
    "cues.mka": lambda: matroska(
        element(
            0x1C53BB6B,
            element(0xBB, element(0xB3, b"\1"), element(0xB7, element(0xF7, b"\1"), element(0xF1, b"\1"))) * 400_000,
        ),
        cluster(bytes(9_600)),
    ),
    "tags.mka": lambda: matroska(
        element(
            0x1254C367,
            *(
                element(0x7373, element(0x67C8, element(0x45A3, b"k%d" % n), element(0x4487, b"v")))
                for n in range(40_000)
            ),
        ),
        cluster(bytes(9_600)),
    ),
    "attachments.mka": lambda: matroska(
        element(
            0x1941A469,
            element(
                0x61A7,
                element(0x466E, b"a"),
                element(0x4660, b"image/png"),
                element(0x465C, bytes(900)),
                element(0x46AE, b"\1"),
            )
            * 20_000,
        ),
        cluster(bytes(9_600)),
    ),
    "streams.ogg": lambda: b"".join(page(n, 0, 0, [opus_head()], first=True) for n in range(10_000)),
    "chained.ogg": lambda: b"".join(itertools.islice(chained(), 3_000)),
    "blocks.wav": lambda: wav(48_000, bytes(200_000), channels=65_535, align=65_535),
    "adpcm.wav": lambda: wav(8_000, bytes(200_000), kind=17, channels=2, align=65_535),
    "packets.caf": lambda: (caf(100 * MEBIBYTE, 1), 4_096 * MEBIBYTE),
    "packet-table.caf": lambda: caf(0, 1_024, packet_table(20_000_000), b"alac"),
    "seek-table.tta": lambda: tta(2**32 - 1, 5),
    "seek-table.ape": lambda: (ape_table(5_000_000), 40 * MEBIBYTE),
    "seek-table.mpc": lambda: (musepack(5_000_000), 64 * MEBIBYTE),
}


def make_bomb(media: MediaFolder, name: str) -> str:
    """The bomb's file; its URL."""
    made = BOMBS[name]()
    content, size = made if isinstance(made, tuple) else (made, len(made))
    url = media.write(name, content)
    with (media.root / name).open("r+b") as file:
        file.truncate(size)
    return url
