"""The Router's fan-out: many listeners, late ones, slow ones."""

import asyncio
import socket
import time

import numpy as np

from client import OPUS, TIMED, listen, request
from inbox import assert_unbroken
from media import OGG_OPUS, OGG_OPUS_LOUD, Clip, tone_clip

SONG = tone_clip(440, 60, OGG_OPUS)


async def test_many_listeners_hear_the_same(antiphon, media, new_session):
    media.path(SONG)
    session, url = new_session(), antiphon.router.url
    async with listen(url, session) as first:
        await first.play(SONG.url)
        async with listen(url, session, OPUS, buffer_ms=0) as bot, listen(url, session, None, buffer_ms=0) as plain:
            await asyncio.gather(*(listener.wait_packets(50) for listener in (bot, plain)))
            all_audio = [packet.audio for packet in await first.wait_packets(120)]
            for listener in (bot, plain):
                mine = [packet.audio for packet in listener.packets()[:40]]
                begin = all_audio.index(mine[0])
                assert mine == all_audio[begin : begin + 40], "a listener hears other packets than the first"
            # An answer goes to who asked, and to the others without the request's ID.
            since = [listener.mark() for listener in (first, bot, plain)]
            await bot.command("pause")
            for listener, mark in ((first, since[0]), (plain, since[2])):
                told = await listener.wait_event("paused", mark)
                assert "request_id" not in told, told
            state = await request("GET", f"{url}/api/v1/sessions/{session}")
            assert state.body["listeners"] == 3, state
        await first.command("stop")


async def test_a_late_listener_hears_at_once(antiphon, media, new_session):
    """A burst of what was just played: `buffer_ms` of it, whatever the protocol."""
    media.path(SONG)
    session, url = new_session(), antiphon.router.url
    async with listen(url, session) as first:
        await first.play(SONG.url)
        await first.wait_packets(160)
        for asked in (None, 2_000, 0):
            now = time.monotonic_ns()
            async with listen(url, session, TIMED, buffer_ms=asked) as late:
                packets = await late.wait_packets(30)
                assert late.received[0].get("type") == "session", late.received[0]
                assert_unbroken(packets, f"late, buffer_ms {asked}")
                behind = (now - packets[0].due_ns) / 1e6
                expected = 500 if asked is None else asked
                assert expected - 150 < behind + 40 and behind < expected + 150, (
                    f"buffer_ms {asked}: the first packet was due {behind:.0f} ms before joining"
                )
                burst = [packet for packet in packets if packet.due_ns < now]
                if burst:
                    # All at once, not one every 20 ms.
                    took = (burst[-1].arrived_ns - burst[0].arrived_ns) / 1e6
                    assert took < max(expected * 0.8, 150), f"a burst of {len(burst)} packets took {took:.0f} ms"
        await first.command("stop")


async def test_whoever_joins_hears_each_packet_once(antiphon, media, new_session):
    """Where the burst and what comes meet, nothing is missing or doubled; it is what the others hear."""
    media.path(SONG)
    session, url = new_session(), antiphon.router.url
    async with listen(url, session) as first:
        await first.play(SONG.url)
        await first.wait_packets(60)
        joined = []
        for asked, frames in ((20, 1), (100, 3), (500, 1), (500, 5), (1_000, 2)) * 4:
            async with listen(url, session, TIMED, buffer_ms=asked, frames=frames) as late:
                joined.append((asked, await late.wait_packets(asked // 20 + 10)))
        last = max(packets[-1].sequence for _, packets in joined)
        heard = {packet.sequence: packet for packet in await first.wait_packets(last + 1)}
        for asked, packets in joined:
            assert_unbroken(packets, f"late, buffer_ms {asked}")
            for packet in packets:
                other = heard[packet.sequence]
                assert (packet.audio, packet.position_ms) == (other.audio, other.position_ms), packet.sequence
        await first.command("stop")


async def test_a_listener_that_does_not_read_is_closed(antiphon, media, new_session):
    """With 1013, and nobody else of the same session notices."""
    # Big packets and small buffers of the kernel's, so that they are full soon.
    clip = Clip("noise-45s", OGG_OPUS_LOUD, _noise)
    media.path(clip)
    session, url = new_session(), antiphon.router.url
    host, port = antiphon.router.address.rsplit(":", 1)
    deaf = socket.socket()
    deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    deaf.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)
    try:
        deaf.settimeout(20)
        deaf.connect((host, int(port)))
        deaf.sendall(
            f"GET /ws?session={session} HTTP/1.1\r\nHost: {host}:{port}\r\nUpgrade: websocket\r\n"
            f"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
            f"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n".encode()
        )
        async with listen(url, session) as other:
            await other.play(clip.url)
            begun = time.monotonic()

            async def listeners() -> int:
                return (await request("GET", f"{url}/api/v1/sessions/{session}")).body["listeners"]

            assert await listeners() == 2
            # 2 s until its queue is full and 5 s of losing; the kernel's buffers before that.
            while await listeners() == 2 and time.monotonic() - begun < 30:
                await other.wait_packets(25, since=other.mark())
            count, seconds = await listeners(), time.monotonic() - begun
            assert count == 1, f"a listener that does not read is still counted after {seconds:.0f} s"
            assert seconds > 5, f"it was closed after {seconds:.1f} s already"
            assert_unbroken(other.packets(), "the listener that reads")
            assert not other.events("dropped"), other.events("dropped")
            code = await asyncio.to_thread(_close_code, deaf)
            assert code == 1013, f"closed with {code} instead of 1013"
            await other.wait_packets(25, since=other.mark())
            await other.command("stop")
    finally:
        deaf.close()


def _close_code(connection: socket.socket) -> int | None:
    """Reads everything, and gives the code of the close frame."""
    data = b""
    try:
        while chunk := connection.recv(65_536):
            data += chunk
            if (code := _find_close(data)) is not None:
                return code
    except (TimeoutError, ConnectionError):
        pass
    return _find_close(data)


def _find_close(data: bytes) -> int | None:
    assert data.startswith(b"HTTP/1.1 101"), data[:200]
    position = data.index(b"\r\n\r\n") + 4
    while position + 2 <= len(data):
        opcode, length = data[position] & 15, data[position + 1] & 127
        position += 2
        if length == 126:
            length = int.from_bytes(data[position : position + 2], "big")
            position += 2
        elif length == 127:
            length = int.from_bytes(data[position : position + 8], "big")
            position += 8
        if opcode == 8 and position + 2 <= len(data):
            return int.from_bytes(data[position : position + 2], "big")
        position += length
    return None


def _noise(rate: int):
    return np.random.default_rng(12).uniform(-0.5, 0.5, 45 * rate)
