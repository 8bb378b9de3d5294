"""What a voice gateway has to know of MLS (RFC 9420): proposals that it signs, key packages and commits that it checks.

It is an external sender and no member: it has no secrets of the group's. DAVE 1 has one ciphersuite, number 2:
DHKEMP256_AES128GCM_SHA256_P256.
"""

import hashlib
import struct
from dataclasses import dataclass

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ec import (
    ECDSA,
    SECP256R1,
    EllipticCurvePublicKey,
    generate_private_key,
)
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

MLS_10 = 1
CIPHERSUITE = 2
PUBLIC_MESSAGE = 1
BASIC_CREDENTIAL = 1
FOREVER = (0, 2**64 - 1)

SENDER_MEMBER, SENDER_EXTERNAL = 1, 2
CONTENT_PROPOSAL, CONTENT_COMMIT = 2, 3
PROPOSAL_ADD, PROPOSAL_REMOVE = 1, 3
PROPOSAL_BY_REFERENCE = 2
LEAF_OF_KEY_PACKAGE, LEAF_OF_COMMIT = 1, 3


class Malformed(ValueError):
    """It is no such structure, or one that DAVE does not allow."""


def vector(content: bytes) -> bytes:
    """A vector of variable size (section 2.1.2)."""
    size = len(content)
    if size < 1 << 6:
        return bytes([size]) + content
    if size < 1 << 14:
        return struct.pack(">H", size | 0x4000) + content
    return struct.pack(">I", size | 0x8000_0000) + content


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self.place = 0

    def take(self, count: int) -> bytes:
        taken = self._data[self.place : self.place + count]
        if len(taken) < count:
            raise Malformed(f"{count} bytes are wanted at {self.place}, and {len(taken)} are left")
        self.place += count
        return taken

    def number(self, count: int) -> int:
        return int.from_bytes(self.take(count), "big")

    def vector(self) -> bytes:
        first = self.number(1)
        if first >> 6 == 3:
            raise Malformed(f"a vector of an unknown size at {self.place}")
        more = (1 << (first >> 6)) - 1
        return self.take((first & 0x3F) << 8 * more | self.number(more))

    def expect(self, count: int, value: int, what: str) -> None:
        found = self.number(count)
        if found != value:
            raise Malformed(f"{what} is {found}, not {value}")

    def since(self, begin: int) -> bytes:
        return self._data[begin : self.place]

    def rest(self) -> bytes:
        return self._data[self.place :]

    def end(self, what: str) -> None:
        if self.rest():
            raise Malformed(f"{len(self.rest())} bytes follow {what}")


def _labelled(label: str, content: bytes) -> bytes:
    return vector(f"MLS 1.0 {label}".encode()) + vector(content)


def _verify(public_key: bytes, signature: bytes, label: str, content: bytes) -> None:
    try:
        key = EllipticCurvePublicKey.from_encoded_point(SECP256R1(), public_key)
        key.verify(signature, _labelled(label, content), ECDSA(SHA256()))
    except (InvalidSignature, ValueError) as error:
        raise Malformed(f"the signature of {label} is wrong: {error!r}") from error


@dataclass(frozen=True)
class Proposal:
    """As broadcast, and the hash by which a commit names it."""

    message: bytes
    reference: bytes


class ExternalSender:
    """The voice gateway as the group's members know it: who may propose, and nothing else."""

    def __init__(self, identity: bytes) -> None:
        self._key = generate_private_key(SECP256R1())
        public_key = self._key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
        #: What members put into their groups.
        self.package = vector(public_key) + struct.pack(">H", BASIC_CREDENTIAL) + vector(identity)

    def add(self, group: int, epoch: int, key_package: bytes) -> Proposal:
        return self._propose(group, epoch, struct.pack(">H", PROPOSAL_ADD) + key_package)

    def remove(self, group: int, epoch: int, leaf: int) -> Proposal:
        return self._propose(group, epoch, struct.pack(">HI", PROPOSAL_REMOVE, leaf))

    def _propose(self, group: int, epoch: int, proposal: bytes) -> Proposal:
        # FramedContent (section 6), from the first of the group's external senders, without data of an application's.
        content = (
            vector(struct.pack(">Q", group))
            + struct.pack(">QBI", epoch, SENDER_EXTERNAL, 0)
            + vector(b"")
            + struct.pack(">B", CONTENT_PROPOSAL)
            + proposal
        )
        head = struct.pack(">HH", MLS_10, PUBLIC_MESSAGE)
        signature = self._key.sign(_labelled("FramedContentTBS", head + content), ECDSA(SHA256()))
        authenticated = content + vector(signature)
        # The reference is of AuthenticatedContent, which has no version before it (section 5.2).
        named = struct.pack(">H", PUBLIC_MESSAGE) + authenticated
        reference = hashlib.sha256(_labelled("Proposal Reference", named)).digest()
        return Proposal(head + authenticated, reference)


@dataclass(frozen=True)
class _Leaf:
    """What DAVE looks at in a LeafNode (section 7.2)."""

    signature_key: bytes
    identity: bytes
    lifetime: tuple[int, int] | None


def _leaf(reader: _Reader) -> _Leaf:
    reader.vector()
    signature_key = reader.vector()
    reader.expect(2, BASIC_CREDENTIAL, "the credential's type")
    identity = reader.vector()
    # Capabilities: versions, ciphersuites, extensions, proposals, credentials.
    for _ in range(5):
        reader.vector()
    source, lifetime = reader.number(1), None
    if source == LEAF_OF_KEY_PACKAGE:
        lifetime = (reader.number(8), reader.number(8))
    elif source == LEAF_OF_COMMIT:
        reader.vector()
    else:
        raise Malformed(f"a leaf's source is {source}")
    reader.vector()
    reader.vector()
    return _Leaf(signature_key, identity, lifetime)


def check_key_package(data: bytes, user_id: int) -> None:
    """Refuses what a voice gateway would not propose. It comes bare, without the MLSMessage around it."""
    reader = _Reader(data)
    reader.expect(2, MLS_10, "the key package's version")
    reader.expect(2, CIPHERSUITE, "the key package's ciphersuite")
    reader.vector()
    leaf = _leaf(reader)
    reader.vector()
    signed = reader.since(0)
    signature = reader.vector()
    reader.end("the key package")
    if leaf.identity != struct.pack(">Q", user_id):
        raise Malformed(f"the key package of {user_id} is for {leaf.identity.hex()}")
    if leaf.lifetime != FOREVER:
        raise Malformed(f"the key package's lifetime is {leaf.lifetime}")
    _verify(leaf.signature_key, signature, "KeyPackageTBS", signed)


@dataclass(frozen=True)
class Commit:
    """A commit as a gateway reads it, and the Welcome that came behind it."""

    message: bytes
    group: int
    epoch: int
    #: The proposals that it names by their hashes.
    references: frozenset[bytes]
    welcome: bytes


def read_commit(data: bytes) -> Commit:
    """Reads a PublicMessage (section 6.2) with a commit (section 12.4). Proposals may only be named, not held."""
    reader = _Reader(data)
    reader.expect(2, MLS_10, "the message's version")
    reader.expect(2, PUBLIC_MESSAGE, "the message's wire format")
    group = int.from_bytes(reader.vector(), "big")
    epoch = reader.number(8)
    reader.expect(1, SENDER_MEMBER, "the sender's type")
    reader.number(4)
    reader.vector()
    reader.expect(1, CONTENT_COMMIT, "the content's type")
    references = _references(reader.vector())
    if reader.number(1):
        # The path: the committer's new leaf, and the nodes above it.
        _leaf(reader)
        reader.vector()
    # The signature, the confirmation tag, the membership tag.
    for _ in range(3):
        reader.vector()
    return Commit(reader.since(0), group, epoch, references, reader.rest())


def _references(data: bytes) -> frozenset[bytes]:
    reader, found = _Reader(data), []
    while reader.rest():
        reader.expect(1, PROPOSAL_BY_REFERENCE, "a proposal in a commit")
        found.append(reader.vector())
    if not found or len(set(found)) != len(found):
        raise Malformed(f"a commit names {len(found)} proposals, {len(set(found))} different ones")
    return frozenset(found)
