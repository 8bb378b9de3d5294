"""Ogg pages and Opus headers, written from RFC 3533 and RFC 7845 and not from the code under test."""

import struct
from dataclasses import dataclass, field


@dataclass
class Page:
    """One Ogg page."""

    continued: bool
    first: bool
    last: bool
    granule: int
    serial: int
    sequence: int
    checksum_fits: bool
    #: The packets that end on this page; the first may have begun on the page before.
    packets: list[bytes] = field(default_factory=list)
    #: The packet that goes on on the next page.
    unfinished: bytes = b""


@dataclass
class OggOpus:
    """An Ogg Opus stream: its two headers and its packets."""

    pages: list[Page]
    channels: int
    pre_skip: int
    input_rate: int
    gain: int
    family: int
    vendor: str
    packets: list[bytes]


def read_pages(data: bytes) -> list[Page]:
    """Every whole page; a page cut off at the end of the data is left out."""
    pages: list[Page] = []
    position = 0
    carried = b""
    while position + 27 <= len(data):
        assert data[position : position + 4] == b"OggS", (
            f"no page at byte {position}: {data[position : position + 8]!r}"
        )
        version, flags, granule, serial, sequence, checksum, count = struct.unpack_from("<BBqIIIB", data, position + 4)
        assert version == 0, f"page version {version} at byte {position}"
        lacing = data[position + 27 : position + 27 + count]
        body = position + 27 + count
        end = body + sum(lacing)
        if len(lacing) < count or end > len(data):
            break
        whole = data[position : position + 22] + b"\0\0\0\0" + data[position + 26 : end]
        page = Page(
            continued=bool(flags & 1),
            first=bool(flags & 2),
            last=bool(flags & 4),
            granule=granule,
            serial=serial,
            sequence=sequence,
            checksum_fits=_checksum(whole) == checksum,
        )
        packet = carried if page.continued else b""
        for length in lacing:
            packet += data[body : body + length]
            body += length
            if length < 255:
                page.packets.append(packet)
                packet = b""
        page.unfinished = carried = packet
        pages.append(page)
        position = end
    return pages


def page(
    serial: int, sequence: int, granule: int, packets: list[bytes], *, first: bool = False, last: bool = False
) -> bytes:
    """One page of whole packets."""
    lacing = b"".join(b"\xff" * (len(packet) // 255) + bytes([len(packet) % 255]) for packet in packets)
    assert len(lacing) <= 255, f"{len(lacing)} pieces do not fit into a page"
    head = b"OggS" + struct.pack("<BBqII", 0, 2 * first | 4 * last, granule, serial, sequence)
    rest = bytes([len(lacing)]) + lacing + b"".join(packets)
    return head + struct.pack("<I", _checksum(head + bytes(4) + rest)) + rest


def read_opus(data: bytes) -> OggOpus:
    """An Ogg Opus file or the beginning of a stream."""
    pages = read_pages(data)
    packets = [packet for page in pages for packet in page.packets]
    assert len(packets) >= 2, f"{len(packets)} packets in {len(data)} bytes: no Opus headers"
    head, tags = packets[:2]
    assert head[:8] == b"OpusHead", f"the first packet begins {head[:8]!r}"
    assert tags[:8] == b"OpusTags", f"the second packet begins {tags[:8]!r}"
    version, channels, pre_skip, rate, gain, family = struct.unpack_from("<BBHIhB", head, 8)
    assert version == 1, f"OpusHead version {version}"
    length = struct.unpack_from("<I", tags, 8)[0]
    return OggOpus(
        pages=pages,
        channels=channels,
        pre_skip=pre_skip,
        input_rate=rate,
        gain=gain,
        family=family,
        vendor=tags[12 : 12 + length].decode(),
        packets=packets[2:],
    )


def packet_samples(packet: bytes) -> int:
    """Samples at 48 kHz in one Opus packet, from its first bytes (RFC 6716, section 3.1)."""
    config, code = packet[0] >> 3, packet[0] & 3
    if config < 12:
        frame = (480, 960, 1920, 2880)[config & 3]
    elif config < 16:
        frame = (480, 960)[config & 1]
    else:
        frame = (120, 240, 480, 960)[config & 3]
    return frame * (1 if code == 0 else 2 if code < 3 else packet[1] & 0x3F)


def _checksum(page: bytes) -> int:
    value = 0
    for byte in page:
        value = (value << 8 & 0xFFFFFFFF) ^ _TABLE[value >> 24 ^ byte]
    return value


def _table() -> list[int]:
    table = []
    for byte in range(256):
        value = byte << 24
        for _ in range(8):
            value = (value << 1 & 0xFFFFFFFF) ^ (0x04C11DB7 if value & 0x80000000 else 0)
        table.append(value)
    return table


_TABLE = _table()
