"""Decoding Opus packets with libopus, as one continuous stream."""

import ctypes
import ctypes.util
from collections.abc import Iterable

import numpy as np

from signals import RATE

#: Samples a channel in one packet of 20 ms.
FRAME = RATE // 50

#: How far the sound lags behind a packet's position: libopus' look-ahead at 48 kHz, which is also the
#: pre-skip of the files the tests play.
LOOKAHEAD = 312

_libopus = ctypes.CDLL(ctypes.util.find_library("opus") or "libopus.so.0")
_libopus.opus_decoder_create.restype = ctypes.c_void_p
_libopus.opus_decoder_create.argtypes = [ctypes.c_int32, ctypes.c_int, ctypes.POINTER(ctypes.c_int)]
_libopus.opus_decoder_destroy.restype = None
_libopus.opus_decoder_destroy.argtypes = [ctypes.c_void_p]
_libopus.opus_decode_float.restype = ctypes.c_int
_libopus.opus_decode_float.argtypes = [
    ctypes.c_void_p,
    ctypes.c_char_p,
    ctypes.c_int32,
    ctypes.POINTER(ctypes.c_float),
    ctypes.c_int,
    ctypes.c_int,
]


class Decoder:
    """A listener's decoder: it remembers the packets before, so a missing one is heard."""

    def __init__(self) -> None:
        error = ctypes.c_int()
        self._decoder = _libopus.opus_decoder_create(RATE, 2, ctypes.byref(error))
        if error.value != 0:
            raise RuntimeError(f"opus_decoder_create: {error.value}")
        self._samples = np.zeros((6 * FRAME, 2), dtype=np.float32)

    def decode(self, packet: bytes) -> np.ndarray:
        """The packet's sound: samples × 2."""
        pointer = self._samples.ctypes.data_as(ctypes.POINTER(ctypes.c_float))
        count = _libopus.opus_decode_float(self._decoder, packet, len(packet), pointer, len(self._samples), 0)
        if count < 0:
            raise AssertionError(f"libopus cannot decode a packet of {len(packet)} bytes: error {count}")
        return self._samples[:count].copy()

    def __del__(self) -> None:
        if getattr(self, "_decoder", None):
            _libopus.opus_decoder_destroy(self._decoder)


def decode(packets: Iterable[bytes]) -> np.ndarray:
    """The sound of consecutive packets from a fresh decoder: samples × 2, every packet exactly 20 ms."""
    decoder = Decoder()
    pieces = []
    for index, packet in enumerate(packets):
        piece = decoder.decode(packet)
        assert len(piece) == FRAME, f"packet {index} holds {len(piece)} samples, not {FRAME} (20 ms)"
        pieces.append(piece)
    return np.concatenate(pieces) if pieces else np.zeros((0, 2), dtype=np.float32)


def sound_of(packets) -> np.ndarray:
    """What the left ear hears of packets as a connection gives them."""
    return decode(packet.audio for packet in packets)[:, 0]
