"""MPEG-TS with timed ID3 beside the sound, as Apple's "Timed Metadata for HTTP Live Streaming" and ISO/IEC 13818-1 have
it: ffmpeg's muxer makes none."""

PACKET = 188
ID3_PID = 0x1F0
#: metadata_descriptor (section 2.6.60): application format and format are both "ID3 ".
DESCRIPTOR = b"\x26\x0d\xff\xffID3 \xffID3 \x00\x0f"


def with_timed_id3(stream: bytes, tag: bytes) -> bytes:
    """The stream with a tag before its first sound."""
    packets = [stream[place : place + PACKET] for place in range(0, len(stream), PACKET)]
    table = next(_pid(packet[15:]) for packet in packets if _pid(packet[1:]) == 0)
    sound = next(index for index, packet in enumerate(packets) if _pid(packet[1:]) not in (0, table, 0x11))
    packets = [_with_stream(packet) if _pid(packet[1:]) == table else packet for packet in packets]
    # Of the sound's first PES packet, behind an adaptation field: stream_id, length, flags, and then its time.
    start = packets[sound].index(b"\0\0\1")
    time = packets[sound][start + 9 : start + 14]
    pes = b"\0\0\1\xbd" + (len(tag) + 8).to_bytes(2) + b"\x84\x80\x05" + time + tag
    return b"".join([*packets[:sound], *_packed(pes), *packets[sound:]])


def _packed(pes: bytes):
    for number, place in enumerate(range(0, len(pes), PACKET - 6)):
        piece = pes[place : place + PACKET - 6]
        filling = PACKET - 6 - len(piece)
        head = (0x4000 if place == 0 else 0) | ID3_PID
        yield b"\x47" + head.to_bytes(2) + bytes([0x30 | number, filling + 1, 0]) + b"\xff" * filling + piece


def _with_stream(packet: bytes) -> bytes:
    """A packet with the program's map, and one stream more in it (section 2.4.4.8)."""
    section = packet[5:]
    length = int.from_bytes(section[1:3]) & 0xFFF
    entry = b"\x15" + (0xE000 | ID3_PID).to_bytes(2) + (0xF000 | len(DESCRIPTOR)).to_bytes(2) + DESCRIPTOR
    whole = section[:1] + (0xB000 | length + len(entry)).to_bytes(2) + section[3 : length - 1] + entry
    return (packet[:5] + whole + _checksum(whole).to_bytes(4)).ljust(PACKET, b"\xff")


def _pid(data: bytes) -> int:
    return int.from_bytes(data[:2]) & 0x1FFF


def _checksum(data: bytes) -> int:
    """CRC-32 as of ISO/IEC 13818-1, annex A."""
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte << 24
        for _ in range(8):
            value = (value << 1 ^ (0x04C11DB7 if value & 0x80000000 else 0)) & 0xFFFFFFFF
    return value
