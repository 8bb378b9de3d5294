"""RTP packets as Discord's voice servers take them: authenticated and encrypted, the header in the clear."""

import struct
from dataclasses import dataclass

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from nacl.bindings import crypto_aead_xchacha20poly1305_ietf_decrypt, crypto_aead_xchacha20poly1305_ietf_encrypt
from nacl.exceptions import CryptoError

HEADER_BYTES = 12
NONCE_BYTES = 4
PAYLOAD_TYPE = 0x78

#: The two that Discord still offers, best first.
MODES = ("aead_aes256_gcm_rtpsize", "aead_xchacha20_poly1305_rtpsize")


@dataclass(frozen=True)
class RtpPacket:
    """One voice packet. `arrived_ns` is on the monotonic clock, by the kernel's word."""

    sequence: int
    timestamp: int
    ssrc: int
    arrived_ns: int
    opus: bytes


def ssrc_of(datagram: bytes) -> int | None:
    """Whose voice packet this is; None if it is none."""
    if len(datagram) < HEADER_BYTES + NONCE_BYTES or datagram[0] >> 6 != 2 or datagram[1] & 0x7F != PAYLOAD_TYPE:
        return None
    return int.from_bytes(datagram[8:12], "big")


def nonce_of(datagram: bytes) -> bytes:
    """The counter at the packet's end, which may never come twice with one key."""
    return datagram[-NONCE_BYTES:]


def decrypt(datagram: bytes, mode: str, key: bytes, arrived_ns: int) -> RtpPacket | None:
    """The packet, or None if it was not made with this key or was changed on its way.

    As the `rtpsize` modes have it, what is in the clear are the fixed header, the sources' list and the extension's
    first four bytes; the rest of the extension is encrypted with the sound.
    """
    _, _, sequence, timestamp, ssrc = struct.unpack_from(">BBHII", datagram)
    extended = datagram[0] & 0x10 != 0
    clear = HEADER_BYTES + 4 * (datagram[0] & 0x0F) + (4 if extended else 0)
    header, sealed = datagram[:clear], datagram[clear:-NONCE_BYTES]
    try:
        if mode == "aead_aes256_gcm_rtpsize":
            plain = AESGCM(key).decrypt(nonce_of(datagram).ljust(12, b"\0"), sealed, header)
        else:
            plain = crypto_aead_xchacha20poly1305_ietf_decrypt(sealed, header, nonce_of(datagram).ljust(24, b"\0"), key)
    except (CryptoError, InvalidTag, ValueError):
        return None
    extension = 4 * int.from_bytes(header[-2:], "big") if extended else 0
    return RtpPacket(sequence, timestamp, ssrc, arrived_ns, plain[extension:])


def receiver_report(packet: RtpPacket, mode: str, key: bytes, nonce: int) -> bytes:
    """The RTCP packet (RFC 3550, 6.4.2) with which the server says up to where it received the sender's packets."""
    header = struct.pack(">BBHI", 0x81, 201, 7, 0)
    block = struct.pack(">IIIIII", packet.ssrc, 0, packet.sequence, 0, 0, 0)
    counter = nonce.to_bytes(NONCE_BYTES, "big")
    if mode == "aead_aes256_gcm_rtpsize":
        sealed = AESGCM(key).encrypt(counter.ljust(12, b"\0"), block, header)
    else:
        sealed = crypto_aead_xchacha20poly1305_ietf_encrypt(block, header, counter.ljust(24, b"\0"), key)
    return header + sealed + counter
