"""The voice server's UDP socket: tells clients their address, and takes their sound."""

import asyncio
import socket
import struct
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from .rtp import decrypt, nonce_of, receiver_report, ssrc_of

if TYPE_CHECKING:
    from .voice import VoiceServer

#: IP discovery: the request's and the answer's type, the bytes that follow the length, and both together.
DISCOVERY_REQUEST, DISCOVERY_ANSWER, DISCOVERY_LENGTH, DISCOVERY_BYTES = 1, 2, 70, 74

#: Linux' socket option (and message type) for the kernel's time of arrival; Python has no name for it.
SO_TIMESTAMPNS = 35

#: A receiver report at the first packet and then every 5 s of sound.
PACKETS_A_REPORT = 250

_TIMESPEC = struct.Struct("@qq")


class VoiceSocket:
    """One socket for all guilds; a packet's SSRC says whose it is."""

    def __init__(self, server: "VoiceServer") -> None:
        self._server = server
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._socket.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        # Holds what comes while the tests' loop is busy: some seconds of many guilds.
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        self._socket.bind(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        asyncio.get_running_loop().add_reader(self._socket, self._read)

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._socket)
        self._socket.close()

    def _read(self) -> None:
        self._read_all()
        self._server.bell.ring()

    def _read_all(self) -> None:
        while True:
            try:
                datagram, extras, _, address = self._socket.recvmsg(2048, socket.CMSG_SPACE(_TIMESPEC.size))
            except BlockingIOError:
                return
            if len(datagram) == DISCOVERY_BYTES and datagram[:4] == struct.pack(
                ">HH", DISCOVERY_REQUEST, DISCOVERY_LENGTH
            ):
                self._discover(datagram, address)
            else:
                self._receive(datagram, address, _arrival_ns(extras))

    def _discover(self, request: bytes, address: tuple[str, int]) -> None:
        ssrc = int.from_bytes(request[4:8], "big")
        connection = self._server.by_ssrc(ssrc)
        if connection is None or connection.session is None:
            self._server.violations.record(f"voice: IP discovery for SSRC {ssrc}, which nobody has")
            return
        connection.session.discovered = address
        answer = struct.pack(">HHI64sH", DISCOVERY_ANSWER, DISCOVERY_LENGTH, ssrc, address[0].encode(), address[1])
        self._socket.sendto(answer, address)

    def _receive(self, datagram: bytes, address: tuple[str, int], arrived_ns: int) -> None:
        ssrc = ssrc_of(datagram)
        if ssrc is None:
            self._server.violations.record(f"voice: a datagram of {len(datagram)} bytes that is no voice packet")
            return
        connection = self._server.by_ssrc(ssrc)
        if connection is None or connection.session is None or connection.session.key is None:
            # Sound on its way while the bot leaves or reconnects: Discord drops it, too.
            self._server.strays += 1
            return
        session, mode, key = connection.session, connection.session.mode or "", connection.session.key
        packet = decrypt(datagram, mode, key, arrived_ns)
        if packet is None:
            connection.undecryptable += 1
            self._server.violations.record(f"voice: a packet of guild {connection.guild.name} cannot be decrypted")
            return
        nonce = int.from_bytes(nonce_of(datagram), "big")
        if nonce <= session.last_nonce:
            self._server.violations.record(f"voice: nonce {nonce} after {session.last_nonce} with the same key")
        session.last_nonce = nonce
        opus = session.call.hear(packet.opus)
        if opus is not None:
            connection.put(replace(packet, opus=opus, is_encrypted=opus != packet.opus))
        if session.packets % PACKETS_A_REPORT == 0:
            # discord.py's socket thread counts on traffic: without any it holds on to an old socket for 30 s.
            report = receiver_report(packet, mode, key, session.packets)
            self._socket.sendto(report, address)
        session.packets += 1


def _arrival_ns(extras: list[tuple[int, int, bytes]]) -> int:
    """The kernel's time of arrival on the monotonic clock: a busy loop reads late, and must not blame the bot."""
    for level, kind, data in extras:
        if (level, kind) == (socket.SOL_SOCKET, SO_TIMESTAMPNS):
            seconds, nanoseconds = map(int, _TIMESPEC.unpack(data[: _TIMESPEC.size]))
            return time.monotonic_ns() - (time.time_ns() - (seconds * 1_000_000_000 + nanoseconds))
    return time.monotonic_ns()
