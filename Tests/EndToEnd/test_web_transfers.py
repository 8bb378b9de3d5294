"""Transfers that break, stall and lie: the sound goes on where it can, and the error says why where it cannot."""

import asyncio

import pytest

from analysis import assert_unbroken_tone, heard_at
from client import listen, request
from inbox import PATIENCE_SECONDS, assert_unbroken
from media import FLAC, MP3_CBR, OGG_OPUS, WAV, glides_clip, http_url, tone_clip
from opus import FRAME, decode
from processes import Antiphon
from signals import AMPLITUDE, Glides
from web_server import WebServer

SONG = Glides(4, seed=11)
CLIPS = [glides_clip(f"transfer-{encoding.suffix}", SONG, encoding) for encoding in (MP3_CBR, OGG_OPUS, FLAC)]
MP3 = CLIPS[0]
#: 1.9 MB: half a dozen breaks.
LONG = tone_clip(440, 10, WAV)


@pytest.fixture(scope="module")
def antiphon(tmp_path_factory, media):
    folder = tmp_path_factory.mktemp("transfers")
    options = ("--source-timeout-seconds", "2")
    with Antiphon(folder, media.root, allow=("127.0.0.1/32",), engine_options=options) as running:
        yield running


@pytest.fixture
def site(media):
    """One for each test: what a server does wrong once, it does once a file."""
    media.make(*CLIPS)
    with WebServer(media.root) as server:
        yield server


async def test_a_connection_that_breaks_every_300_kB_is_heard_without_a_gap(antiphon, media, site, new_session):
    size = media.path(LONG).stat().st_size
    async with listen(antiphon.router.url, new_session()) as listener:
        await listener.play(f"{site.url}/breaks/{LONG.file}")
        ended = await listener.wait_event("ended", seconds=60)
        assert ended["reason"] == "finished", ended
        assert not listener.stalls(), listener.stalls()
        for kind in ("stuck", "error", "dropped"):
            assert not listener.events(kind), listener.events(kind)
        packets = listener.packets()
        assert_unbroken(packets, "broken every 300 kB")
        assert len(packets) == 501, f"{len(packets)} packets of 10 s"
        sound = decode(packet.audio for packet in packets)[:, 0]
        assert_unbroken_tone(sound[5 * FRAME : 495 * FRAME], 440, AMPLITUDE, "broken every 300 kB")
    assert len(site.requests) >= size // WebServer.BREAK_BYTES, f"{len(site.requests)} requests for {size} bytes"
    # Each from a byte that the last one reached, and none from the start again.
    begins = [int(each.removeprefix("bytes=").rstrip("-")) for each in site.ranges]
    assert begins == sorted(begins) and begins.count(0) == 1, begins


@pytest.mark.parametrize("kind", ["once", "stalls", "tears", "limps", "ticket", "chunked", "long"])
async def test_a_transfer_goes_on_where_it_broke(antiphon, site, new_session, bystander, kind):
    async def check(clip) -> list[str]:
        async with listen(antiphon.router.url, new_session()) as listener:
            await listener.play(http_url(f"{site.url}/{kind}", clip.file))
            ended = await listener.wait_event("ended", seconds=60)
            packets = listener.packets()
            wrong = []
            if ended["reason"] != "finished" or listener.events("error") or abs(len(packets) - 201) > 3:
                wrong.append(f"{clip}: {ended}, {len(packets)} packets of 4 s, {listener.events('error')}")
            sound = decode(packet.audio for packet in packets)[:, 0]
            for milliseconds in range(200, 3_800, 200):
                place = heard_at(sound, milliseconds * 48, SONG)
                if place.likeness < 0.85 or abs(place.milliseconds - milliseconds) > 20:
                    wrong.append(f"{clip}: at {milliseconds} ms sounds like {place}")
            return wrong

    wrong = sum(await asyncio.gather(*(check(clip) for clip in CLIPS)), [])
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "kind, code",
    [
        ("shifts", "source_unreachable"),
        ("grows", "source_corrupt"),
        ("changes", "source_corrupt"),
        ("short", "source_truncated"),
    ],
)
async def test_what_cannot_go_on_is_said(antiphon, site, new_session, bystander, kind, code):
    """What came is heard to its last packets, nothing false follows, and the error has a name."""
    async with listen(antiphon.router.url, new_session()) as listener:
        await listener.play(f"{site.url}/{kind}/{MP3.file}")
        ended = await listener.wait_event("ended", seconds=60)
        assert ended["reason"] == "finished", ended
        codes = [event["code"] for event in listener.events("error")]
        assert codes == [code], listener.events("error")
        packets = listener.packets()
        assert 95 <= len(packets) <= 105, f"{len(packets)} packets of half of 200"
        sound = decode(packet.audio for packet in packets)[:, 0]
        last = len(packets) - 12
        place = heard_at(sound, last * FRAME, SONG)
        assert place.likeness > 0.85 and abs(place.milliseconds - last * 20) < 20, place


async def test_nobody_waits_for_what_nobody_hears(antiphon, site, new_session):
    """A worker that tries again and again stops with its session."""

    async def workers_busy() -> int:
        return (await request("GET", f"{antiphon.engine.url}/health")).body["workers_busy"]

    async with listen(antiphon.router.url, new_session()) as listener:
        await listener.play(f"{site.url}/cut/{MP3.file}")
        async with asyncio.timeout(PATIENCE_SECONDS):
            while len(site.requests) < 3:
                await asyncio.sleep(0.02)
        await listener.command("stop")
        async with asyncio.timeout(PATIENCE_SECONDS):
            while await workers_busy():
                await asyncio.sleep(0.02)
        # Otherwise it would have asked nine times, over nine seconds.
        assert len(site.requests) < 9, site.requests


async def test_a_source_is_read_no_faster_than_it_may_be(tmp_path, media, site, new_session):
    """At 16 kB a second a file of 24 kB a second has to be waited for, and is still heard whole."""
    options = ("--max-source-bytes-per-second", "16384")
    with Antiphon(tmp_path, media.root, allow=("127.0.0.1/32",), engine_options=options) as slow:
        async with listen(slow.router.url, new_session()) as listener:
            await listener.play(f"{site.url}/files/{MP3.file}")
            await listener.wait_event("buffering")
            ended = await listener.wait_event("ended", seconds=60)
            assert ended["reason"] == "finished" and not listener.events("error"), listener
            assert abs(len(listener.packets()) - 201) <= 3, listener


async def test_a_source_has_no_more_bytes_than_it_may_have(tmp_path, media, site, new_session):
    options = ("--max-source-bytes", "50000")
    with Antiphon(tmp_path, media.root, allow=("127.0.0.1/32",), engine_options=options, router=False) as small:
        url = f"{small.engine.url}/session/{new_session()}/play"
        answer = await request("POST", url, {"url": f"{site.url}/files/{MP3.file}"})
        assert answer.status == 413 and answer.code == "source_too_large", answer


async def test_one_that_does_not_say_its_length_plays_as_far_as_it_may(tmp_path, media, site, new_session):
    options = ("--max-source-bytes", "50000")
    with Antiphon(tmp_path, media.root, allow=("127.0.0.1/32",), engine_options=options) as small:
        async with listen(small.router.url, new_session()) as listener:
            # The server waits at 40,000 bytes until it has begun.
            await listener.play(f"{site.url}/held/{MP3.file}")
            site.released.set()
            error = await listener.wait_event("error")
            assert error["code"] == "source_too_large", error
            assert (await listener.wait_event("ended"))["reason"] == "finished"
            # 24,000 bytes are a second.
            assert 90 <= len(listener.packets()) <= 105, listener


async def test_one_whose_sound_lies_behind_what_it_may_have_does_not_begin(tmp_path, media, site, new_session):
    tag = b"ID3\x04\0\0" + bytes([0, 3, 0x0D, 0x40]) + bytes(60 * 1_024 - 64)
    media.write("behind-a-tag.mp3", tag + media.bytes(MP3))
    options = ("--max-source-bytes", "50000")
    with Antiphon(tmp_path, media.root, allow=("127.0.0.1/32",), engine_options=options, router=False) as small:
        url = f"{small.engine.url}/session/{new_session()}/play"
        answer = await request("POST", url, {"url": f"{site.url}/chunked/behind-a-tag.mp3"})
        assert answer.status == 413 and answer.code == "source_too_large", answer
