"""What has been produced once is played again: from memory, from disk after a restart, and only while it is true."""

import asyncio
import os
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from analysis import dominant_frequency
from client import listen, request
from inbox import PATIENCE_SECONDS
from media import FLAC, MP3_CBR, OGG_OPUS, tone_clip
from opus import FRAME, decode
from processes import Antiphon
from web_server import WebServer

SONG = tone_clip(440, 2, FLAC)
OTHER = tone_clip(880, 2, FLAC)
PASSED_THROUGH = tone_clip(440, 2, OGG_OPUS)
FROM_THE_WEB = tone_clip(440, 2, MP3_CBR)
CLIPS = (SONG, OTHER, PASSED_THROUGH, FROM_THE_WEB)


@pytest.fixture
def start(tmp_path, media):
    """Starts an engine and a router on the test's own cache folder."""
    media.make(*CLIPS)

    def start(*options: str) -> Antiphon:
        cache = ("--cache-dir", str(tmp_path / "cache"), "--cache-dir-bytes", "100000000")
        return Antiphon(tmp_path, media.root, allow=("127.0.0.1/32",), engine_options=(*cache, *options))

    return start


async def figures(antiphon: Antiphon) -> dict[str, float]:
    """The engine's counters and gauges without labels, by name."""
    answer = await request("GET", f"{antiphon.engine.url}/metrics")
    families = text_string_to_metric_families(answer.body)
    samples = (sample for family in families for sample in family.samples if not sample.labels)
    return {sample.name.removeprefix("antiphon_engine_"): sample.value for sample in samples}


async def wait_for(antiphon: Antiphon, name: str, value: float) -> dict[str, float]:
    """Writing goes on for a moment after the track is heard."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while (found := await figures(antiphon))[name] != value:
            await asyncio.sleep(0.05)
    return found


async def play(antiphon: Antiphon, session: str, url: str) -> list[bytes]:
    """Plays to the end; every packet that was heard."""
    async with listen(antiphon.router.url, session) as listener:
        await listener.play(url)
        ended = await listener.wait_event("ended")
        assert ended["reason"] == "finished" and not listener.events("error"), listener
        return [packet.audio for packet in listener.packets()]


def tracks(folder: Path) -> list[Path]:
    return sorted((folder / "cache").glob("*.track"))


async def test_a_track_is_found_on_disk_after_a_restart(start, tmp_path, new_session):
    for clip in (SONG, PASSED_THROUGH):
        with start() as antiphon:
            before = await figures(antiphon)
            heard = await play(antiphon, new_session(), clip.url)
            after = await wait_for(antiphon, "disk_cache_writes_total", 1)
            assert after["productions_total"] - before["productions_total"] == 1, after
        with start() as antiphon:
            async with listen(antiphon.router.url, new_session()) as listener:
                ready = await listener.play(clip.url)
                assert ready["title"] == clip.name and ready["passthrough"] == (clip is PASSED_THROUGH), ready
                await listener.wait_event("ended")
                assert [packet.audio for packet in listener.packets()] == heard, "the packets are others"
            now = await figures(antiphon)
            assert now["productions_total"] == 0 and now["disk_cache_hits_total"] == 1, now
            assert now["disk_cache_bytes"] == sum(path.stat().st_size for path in tracks(tmp_path)), now
            # Inside of it, at a place that nobody began at.
            async with listen(antiphon.router.url, new_session()) as listener:
                ready = await listener.play(clip.url, start_ms=1_000)
                packets = await listener.wait_packets(20)
                # The first four are faded in.
                assert [packet.audio for packet in packets[4:]] == heard[54:70]
            assert (await figures(antiphon))["productions_total"] == 0


async def test_a_broken_copy_is_produced_anew(start, tmp_path, new_session):
    with start() as antiphon:
        heard = await play(antiphon, new_session(), SONG.url)
        await wait_for(antiphon, "disk_cache_writes_total", 1)
    (track,) = tracks(tmp_path)
    whole = track.read_bytes()
    for broken in (whole[: len(whole) // 2], whole[:-100] + bytes(100), b"", b"RIFF" * 10_000):
        track.write_bytes(broken)
        with start() as antiphon:
            assert await play(antiphon, new_session(), SONG.url) == heard
            now = await wait_for(antiphon, "disk_cache_writes_total", 1)
            assert now["productions_total"] == 1 and now["disk_cache_hits_total"] == 0, now
            assert now["disk_cache_rejections_total"] == 1, now
        assert tracks(tmp_path) == [track] and track.read_bytes() == whole


@pytest.mark.parametrize("restarts", [False, True], ids=["memory", "disk"])
async def test_a_replaced_file_is_heard_anew(start, media, tmp_path, new_session, restarts):
    name = f"replaced-{restarts}.flac"
    url = media.write(name, media.bytes(SONG))

    def pitch(packets: list[bytes]) -> float:
        return dominant_frequency(decode(packets)[5 * FRAME : 90 * FRAME, 0])

    antiphon = start()
    with antiphon:
        assert abs(pitch(await play(antiphon, new_session(), url)) - 440) < 3
        await wait_for(antiphon, "disk_cache_writes_total", 1)
        if not restarts:
            replace(media.root / name, media.bytes(OTHER))
            assert abs(pitch(await play(antiphon, new_session(), url)) - 880) < 3
            # A second time from memory.
            assert abs(pitch(await play(antiphon, new_session(), url)) - 880) < 3
            assert (await figures(antiphon))["productions_total"] == 2
    if restarts:
        replace(media.root / name, media.bytes(OTHER))
        with start() as antiphon:
            assert abs(pitch(await play(antiphon, new_session(), url)) - 880) < 3
            now = await figures(antiphon)
            assert now["productions_total"] == 1 and now["disk_cache_rejections_total"] == 1, now


def replace(path: Path, data: bytes) -> None:
    """As an editor saves a file: whole, under another name, and then renamed."""
    new = path.with_name(f".new-{path.name}")
    new.write_bytes(data)
    os.replace(new, path)


async def test_two_sessions_of_a_track_cost_one_production(start, new_session):
    with start() as antiphon:
        first, second = await asyncio.gather(
            play(antiphon, new_session(), SONG.url), play(antiphon, new_session(), SONG.url)
        )
        assert first == second
        now = await wait_for(antiphon, "disk_cache_writes_total", 1)
        assert now["productions_total"] == 1 and now["timeline_hits_total"] == 1, now
        # And anyone who comes after both.
        assert await play(antiphon, new_session(), SONG.url) == first
        now = await figures(antiphon)
        assert now["productions_total"] == 1 and now["timeline_hits_total"] == 2, now


async def test_what_came_from_the_web_is_asked_for_again_after_a_time(start, media, new_session):
    with WebServer(media.root) as site:
        url = f"{site.url}/files/{FROM_THE_WEB.file}"
        with start("--web-cache-seconds", "4") as antiphon:
            heard = await play(antiphon, new_session(), url)
            await wait_for(antiphon, "disk_cache_writes_total", 1)
        with start("--web-cache-seconds", "600") as antiphon:
            asked = len(site.requests)
            assert await play(antiphon, new_session(), url) == heard
            assert len(site.requests) == asked, site.requests
        # It took two seconds to play it.
        with start("--web-cache-seconds", "1") as antiphon:
            assert await play(antiphon, new_session(), url) == heard
            assert len(site.requests) > asked, "what is too old was played from disk"
            asked = len(site.requests)
            assert await play(antiphon, new_session(), url) == heard
            assert len(site.requests) > asked, "what is too old was played from memory"


async def test_a_cache_folder_that_cannot_be_used_is_said_at_the_start(tmp_path, media):
    (tmp_path / "cache").write_text("a file")
    running = Antiphon(tmp_path, media.root, engine_options=("--cache-dir", str(tmp_path / "cache")), router=False)
    with pytest.raises(AssertionError, match="--cache-dir"):
        running.__enter__()
