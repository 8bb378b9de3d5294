"""Files made to do harm: whatever they say of themselves, the engine lives and nothing else notices."""

import asyncio
import os
import struct
from pathlib import Path

import pytest

from bombs import RICH
from client import connect_to_engine, listen, request
from containers import alac, indexed, mp3, wav
from media import WAV, tone_clip

MEBIBYTE = 1 << 20


@pytest.fixture(autouse=True)
async def engine_survives(antiphon, bystander):
    """After each of these files the same engine is there, in not much more memory, and answers."""
    before = _resident_bytes(antiphon.engine.pid)
    yield
    answer = await request("GET", f"{antiphon.engine.url}/health")
    assert answer.status == 200, answer
    assert antiphon.engine.is_running
    grown = _resident_bytes(antiphon.engine.pid) - before
    assert grown < 100 * MEBIBYTE, f"the engine grew by {grown >> 20} MiB"


async def test_a_stream_that_changes_its_rate(antiphon, media, new_session):
    """Each change flushes a resampler: what it held must be counted, or the end is miscounted."""
    pieces = [mp3(rate) for rate in (8_000, 11_025)]
    url = media.write("changing.mp3", b"".join(pieces * 20))
    async with listen(antiphon.router.url, new_session()) as listener:
        await listener.play(url)
        await listener.wait_packets(50)
        await listener.command("stop")
    async with connect_to_engine(antiphon.socket) as engine:
        session = new_session()
        # From near the end, so that the end is reached.
        answer = await engine.ask(type="play", session_id=session, url=url, start_ms=6_000)
        assert answer["type"] == "ready", answer
        ended = await engine.wait_event("ended")
        assert ended["reason"] == "finished", ended


@pytest.mark.parametrize("rate", [1, 10, 3_999, 800_000])
async def test_a_rate_that_nobody_records_at(antiphon, media, new_session, rate):
    url = media.write(f"rate-{rate}.wav", wav(rate, bytes(200_000)))
    answer = await request("POST", f"{antiphon.engine.url}/session/{new_session()}/play", {"url": url})
    assert answer.status in (415, 422), answer


async def test_a_file_of_half_a_billion_years(antiphon, media, new_session):
    """RF64 gives its data's size in 64 bits. What there is of it plays, and no duration is believed."""
    ds64 = b"ds64" + struct.pack("<IQQQI", 28, 2**60, 2**59, 2**59, 0)
    fmt = b"fmt " + struct.pack("<IHHIIHH", 16, 1, 1, 8_000, 8_000, 1, 8)
    rf64 = b"RF64" + b"\xff" * 4 + b"WAVE" + ds64 + fmt + b"data" + b"\xff" * 4 + bytes(8_000)
    url = media.write("ages.wav", rf64)
    answer = await request("POST", f"{antiphon.engine.url}/session/{new_session()}/play", {"url": url})
    assert answer.status == 200 and "duration_ms" not in answer.body, answer


async def test_a_title_without_end(antiphon, media, new_session):
    """Combining marks: one character of a million bytes."""
    title = ("a" + "\u0301" * 300_000).encode()
    info = b"INAM" + struct.pack("<I", len(title)) + title + b"\0" * (len(title) % 2)
    chunk = b"LIST" + struct.pack("<I", 4 + len(info)) + b"INFO" + info
    url = media.write("titled.wav", wav(8_000, bytes(16_000), chunk))
    async with listen(antiphon.router.url, new_session()) as listener:
        ready = await listener.play(url)
        assert len(ready.get("title") or "") <= 200
        await listener.wait_packets(20)
    answer = await request("GET", f"{antiphon.router.url}/health")
    assert answer.status == 200, "the engine's link must hold"


async def test_a_folder_of_long_names_is_cut_to_fit(antiphon, media):
    def make(folder: Path) -> None:
        folder.mkdir()
        for number in range(2_100):
            (folder / ("音" * 80 + f"{number:05}.mp3")).write_bytes(b"")

    # A busy disk takes seconds for it, in which the bystander must be read.
    await asyncio.to_thread(make, media.root / "crowded")
    for base in (f"{antiphon.router.url}/api/v1/media", f"{antiphon.engine.url}/media"):
        answer = await request("GET", f"{base}?path=crowded")
        assert answer.status == 200, answer
        assert answer.body["truncated"] is True
        assert len(answer.body["entries"]) > 300


async def test_a_far_seek_wakes_a_resting_producer(tmp_path_factory, media, new_session):
    """Without a cache a producer rests 15 s ahead; a cursor put beyond that wakes it."""
    from processes import Antiphon

    clip = tone_clip(440, 40, WAV)
    media.path(clip)
    with Antiphon(tmp_path_factory.mktemp("far"), media.root, engine_options=("--cache-bytes", "0")) as running:
        async with listen(running.router.url, new_session()) as listener:
            await listener.play(clip.url)
            await listener.wait_packets(50)
            answer = await listener.command("seek", position_ms=16_500)
            assert answer["type"] == "seeked", answer
            since = listener.mark()
            await listener.wait_packets(50, since=since)


@pytest.mark.parametrize("rate", [4_000, 48_000])
async def test_frames_of_millions_of_samples(antiphon, media, new_session, rate):
    """A kilobyte of ALAC can say that it is 16 million samples of silence."""
    url = media.write(f"silence-{rate}.m4a", alac(rate, [4_096] * 12 + [(1 << 24) - 1] * 2))
    async with listen(antiphon.router.url, new_session()) as listener:
        await listener.play(url)
        await asyncio.sleep(3)


async def test_an_index_of_millions_that_is_not_there(antiphon, media, new_session):
    """Twelve at once, each with an index that takes libav 100 MiB: some are opened, and others are told why."""
    content, size = indexed(4_000_000)
    answers, sessions = [], [new_session() for _ in range(12)]
    for number, session in enumerate(sessions):
        url = media.write(f"indexed-{number}.m4a", content)
        os.truncate(media.root / f"indexed-{number}.m4a", size)
        answers.append(request("POST", f"{antiphon.engine.url}/session/{session}/play", {"url": url}))
    statuses = [answer.status for answer in await asyncio.gather(*answers)]
    assert set(statuses) <= {200, 413, 422, 503}, statuses
    for session in sessions:
        await request("POST", f"{antiphon.engine.url}/session/{session}/stop")
    await asyncio.sleep(1)


@pytest.mark.parametrize(
    ("name", "status", "word"), [("private.mp3", 200, "mp3"), ("texts.mp3", 200, "mp3"), ("comments.flac", 422, "flac")]
)
async def test_a_tag_with_tens_of_thousands_of_entries(antiphon, media, new_session, name, status, word):
    """It is read no further and the sound behind it plays, where there is any; that takes no longer than an ordinary
    file takes on a bad day."""
    url = media.write(name, RICH[name]())
    used = _cpu_seconds(antiphon.engine.pid)
    answer = await request("POST", f"{antiphon.engine.url}/session/{new_session()}/play", {"url": url})
    assert answer.status == status, answer
    assert answer.body["codec" if status == 200 else "message"].endswith(word), answer
    assert _cpu_seconds(antiphon.engine.pid) - used < 3


async def test_such_files_played_and_stopped_keep_nobody_waiting(antiphon, media, new_session):
    urls = [media.write(name, make()) for name, make in RICH.items()]
    clip = tone_clip(523, 3, WAV)
    media.path(clip)
    async with connect_to_engine(antiphon.socket) as greedy, connect_to_engine(antiphon.socket) as other:
        sessions = [(new_session(), url) for url in urls * 3]
        for session, url in sessions:
            await greedy.send(type="play", session_id=session, url=url, client="greedy")
        for session, _ in sessions:
            await greedy.send(type="stop", session_id=session, client="greedy")
        session = new_session()
        # It was half a minute; this machine may lose a moment by itself.
        async with asyncio.timeout(3):
            ready = await other.ask(type="play", session_id=session, url=clip.url, client="other")
        assert ready["type"] == "ready", ready
        await other.command(type="stop", session_id=session)


def _cpu_seconds(pid: int) -> float:
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def _resident_bytes(pid: int) -> int:
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * 4096
