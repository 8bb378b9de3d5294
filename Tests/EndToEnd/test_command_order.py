"""Commands that follow one another faster than a fade: each does what it says, and none keeps others waiting."""

import json
import time
from itertools import pairwise

import pytest

from client import EngineConnection, connect_to_engine, listen
from inbox import Event
from media import FLAC, OGG_OPUS, tone_clip
from page_server import Asked, PageServer
from processes import Antiphon

LONG = tone_clip(440, 60, OGG_OPUS)
FIRST = tone_clip(440, 20, OGG_OPUS)
SECOND = tone_clip(523, 3, OGG_OPUS)
THIRD = tone_clip(659, 3, FLAC)


async def send_at_once(connection: EngineConnection, session: str, *commands: dict) -> list[Event]:
    """Sends several in one write; their answers."""
    requests = [f"{session}-{connection.mark()}-{number}" for number in range(len(commands))]
    lines = [
        json.dumps({"session_id": session, "request_id": request, **command}).encode() + b"\n"
        for request, command in zip(requests, commands, strict=True)
    ]
    await connection.write(b"".join(lines))
    return [await connection.wait_answer(request) for request in requests]


@pytest.fixture
async def engine(antiphon, media):
    media.make(LONG, FIRST, SECOND, THIRD)
    async with connect_to_engine(antiphon.socket) as connection:
        yield connection


@pytest.fixture
async def playing(engine, new_session):
    """A session that plays, and the others' timelines in the cache."""
    session = new_session()
    for clip in (SECOND, FIRST):
        await engine.command(type="play", session_id=session, url=clip.url)
        await engine.wait_packets(10, session=session, since=engine.mark())
    return session


async def test_a_play_and_what_is_asked_of_it_at_once(engine, playing):
    """The track that begins in its middle begins, whatever comes before its fade is there."""
    for command in ({"type": "seek", "position_ms": 500}, {"type": "volume", "level": 0.5}):
        play = {"type": "play", "url": SECOND.url, "start_ms": 1_000}
        since = engine.mark()
        answers = await send_at_once(engine, playing, play, command)
        assert [answer["type"] for answer in answers] == ["ready", {"seek": "seeked"}.get(command["type"], "status")]
        await engine.wait_event("playing", since=since, session_id=playing)
        await engine.wait_packets(20, session=playing, since=engine.index(answers[1]))
        await engine.command(type="play", session_id=playing, url=FIRST.url)


async def test_what_is_prepared_follows_the_track_asked_for_before(engine, playing):
    play, prepare = {"type": "play", "url": SECOND.url}, {"type": "prepare", "url": THIRD.url}
    since = engine.mark()
    answers = await send_at_once(engine, playing, play, prepare)
    assert [answer["type"] for answer in answers] == ["ready", "prepared"], answers
    await engine.wait_event("playing", since=engine.index(await engine.wait_event("extracting", since, url=THIRD.url)))
    urls = [event["url"] for event in engine.events("extracting", since) if event["session_id"] == playing]
    assert urls == [SECOND.url, THIRD.url]
    await engine.command(type="stop", session_id=playing)


async def test_nothing_behind_the_end_is_heard_in_a_cut(engine, new_session):
    """A part of one packet, gone round and round: every cut comes at its end."""
    session = new_session()
    await engine.command(type="play", session_id=session, url=FIRST.url, end_ms=20, loop=True)
    for _ in range(10):
        await engine.wait_packets(3, session=session, since=engine.mark())
        paused = await engine.command(type="pause", session_id=session)
        assert paused["position_ms"] <= 20, paused
        await engine.command(type="resume", session_id=session)
    await engine.command(type="stop", session_id=session)
    # Between two anchors there is the one packet, and never one behind it.
    anchors = [
        index
        for index, item in enumerate(engine.received)
        if isinstance(item, dict) and item.get("session_id") == session and item["type"] in ("playing", "resumed")
    ]
    assert all(len(engine.packets(one, other, session)) <= 1 for one, other in pairwise(anchors))


async def test_a_loop_waits_silently_for_its_beginning(tmp_path, media, new_session):
    """Its beginning has to be fetched again, which takes a moment: nothing behind `end_ms` is heard meanwhile."""
    data = media.bytes(LONG)

    def slow(asked: Asked) -> None:
        time.sleep(0.3)
        asked.media(data, kind="audio/ogg")

    options = ("--cache-bytes", "0", "--read-ahead-ms", "1000")
    with (
        PageServer() as site,
        Antiphon(tmp_path / "slow", media.root, allow=("127.0.0.1/32",), engine_options=options) as antiphon,
    ):
        url = site.add("/song.opus", slow)
        async with listen(antiphon.router.url, new_session()) as listener:
            await listener.play(url, end_ms=40_000, loop=True)
            since = listener.index(await listener.command("seek", position_ms=39_700))
            await listener.wait_event("playing", since=since, position_ms=0)
            positions = [packet.position_ms for packet in listener.packets(since)]
            assert max(positions) == 39_980, f"heard up to {max(positions)} ms"
            await listener.wait_packets(20, since=listener.mark())


@pytest.mark.measures
async def test_a_flood_of_seeks_delays_no_other_session(engine, new_session):
    """Every seek is two fades to render; another's pause does not wait for a thousand of them."""
    flooded, other = new_session(), new_session()
    for session in (flooded, other):
        await engine.command(type="play", session_id=session, url=LONG.url)
    await engine.wait_packets(100, session=other, since=engine.mark())
    seeks = [{"type": "seek", "session_id": flooded, "position_ms": 20 * number} for number in range(1_000)]
    await engine.write(b"".join(json.dumps(seek).encode() + b"\n" for seek in seeks))
    since = engine.mark()
    await engine.command(type="pause", session_id=other)
    # Rendering all of them takes seconds; a packet is 20 ms.
    assert len(engine.packets(since, session=other)) <= 40
    for session in (flooded, other):
        await engine.command(type="stop", session_id=session)
