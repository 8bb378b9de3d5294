"""RTP packets as Discord's voice servers take them: authenticated and encrypted, the header in the clear."""

import struct
from dataclasses import dataclass

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from nacl.bindings import crypto_aead_xchacha20poly1305_ietf_decrypt, crypto_aead_xchacha20poly1305_ietf_encrypt
from nacl.exceptions import CryptoError

HEADER_BYTES = 12
NONCE_BYTES = 4
VERSION_2 = 0x80
PAYLOAD_TYPE = 0x78

#: The two that Discord still offers, best first.
MODES = ("aead_aes256_gcm_rtpsize", "aead_xchacha20_poly1305_rtpsize")


@dataclass(frozen=True)
class RtpPacket:
    """One voice packet. `arrived_ns` is on the monotonic clock, by the kernel's word.

    `opus` is what a person's client plays: behind both encryptions, if it was encrypted end to end.
    """

    sequence: int
    timestamp: int
    ssrc: int
    arrived_ns: int
    opus: bytes
    is_encrypted: bool = False


def ssrc_of(datagram: bytes) -> int | None:
    """Whose voice packet this is; None if it is none. A bot's has neither an extension nor a list of sources."""
    if len(datagram) < HEADER_BYTES + NONCE_BYTES or datagram[0] != VERSION_2 or datagram[1] != PAYLOAD_TYPE:
        return None
    return int.from_bytes(datagram[8:12], "big")


def nonce_of(datagram: bytes) -> bytes:
    """The counter at the packet's end, which may never come twice with one key."""
    return datagram[-NONCE_BYTES:]


def decrypt(datagram: bytes, mode: str, key: bytes, arrived_ns: int) -> RtpPacket | None:
    """The packet, or None if it was not made with this key or was changed on its way."""
    header, sealed, nonce = datagram[:HEADER_BYTES], datagram[HEADER_BYTES:-NONCE_BYTES], nonce_of(datagram)
    try:
        if mode == "aead_aes256_gcm_rtpsize":
            opus = AESGCM(key).decrypt(nonce.ljust(12, b"\0"), sealed, header)
        else:
            opus = crypto_aead_xchacha20poly1305_ietf_decrypt(sealed, header, nonce.ljust(24, b"\0"), key)
    except (CryptoError, InvalidTag, ValueError):
        return None
    _, _, sequence, timestamp, ssrc = struct.unpack(">BBHII", header)
    return RtpPacket(sequence, timestamp, ssrc, arrived_ns, opus)


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
