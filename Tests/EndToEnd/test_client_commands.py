"""antiphon_client: every command, what it makes of the state, and errors."""

import pytest
from antiphon_client import AntiphonError, Session

from hearing import until
from media import OGG_OPUS, tone_clip

SONGS = [tone_clip(frequency, 60, OGG_OPUS) for frequency in (300, 400, 500)]
FIRST, SECOND, THIRD = SONGS


@pytest.fixture
async def session(antiphon, media, new_session):
    media.make(*SONGS)
    async with Session(antiphon.router.url, new_session()) as session:
        yield session


async def test_an_idle_session(session):
    state = session.state
    assert state.connected and state.engine_connected and state.error is None
    assert (state.playback, state.current, state.position_ms, state.duration_ms) == ("idle", None, 0, None)
    assert (state.queue, state.total, state.loop, state.volume) == ((), 0, "off", 1)


async def test_what_plays(session):
    state = session.state
    answer = await session.play(FIRST.url, start_ms=10_000, volume=0.5)
    assert answer["type"] == "ready" and answer["title"] == FIRST.name
    await until(lambda: state.playback == "streaming", "sound")
    assert state.volume == 0.5 and state.current.url == FIRST.url and state.current.codec == "opus"
    assert abs(state.duration_ms - 60_000) < 50 and 10_000 <= state.position_ms < 30_000, state.position_ms
    assert (await session.seek(50_000))["type"] == "seeked"
    assert 50_000 <= state.position_ms < 60_000, state.position_ms
    assert (await session.volume(2.5))["type"] == "status"
    assert state.volume == 2.5
    assert (await session.status())["session"]["state"] == "streaming"
    assert (await session.why())["summary"]
    assert (await session.pause())["type"] == "paused" and state.playback == "paused"
    position = state.position_ms
    assert (await session.resume())["position_ms"] == position
    assert (await session.stop())["type"] == "ended"
    assert (state.playback, state.position_ms) == ("idle", 0)
    await until(lambda: state.current is None, "end of the track")


async def test_the_queue(session):
    state = session.state
    first = (await session.queue_add(url=FIRST.url, title="one", requested_by="ann"))["queue"]["added"]
    await until(lambda: state.playback == "streaming", "sound")
    assert (state.current.id, state.current.title, state.current.requested_by) == (first[0], "one", "ann")
    tracks = [{"url": SECOND.url, "title": "two", "requested_by": "bob"}, {"url": THIRD.url}]
    two, three = (await session.queue_add(tracks=tracks))["queue"]["added"]
    assert [entry.id for entry in state.queue] == [two, three] and state.total == 2
    assert (state.queue[0].title, state.queue[0].requested_by, state.queue[1].title) == ("two", "bob", None)
    (four,) = (await session.queue_add(query=FIRST.url, next=True))["queue"]["added"]
    assert [entry.id for entry in state.queue] == [four, two, three]
    (five,) = (await session.queue_add(url=FIRST.url, position=1))["queue"]["added"]
    assert [entry.id for entry in state.queue] == [four, five, two, three]
    await session.queue_move(four, 3)
    assert [entry.id for entry in state.queue] == [five, two, three, four]
    page = (await session.queue(offset=1, limit=2))["queue"]
    assert [entry["id"] for entry in page["tracks"]] == [two, three]
    assert [entry.id for entry in state.queue] == [five, two, three, four], "a page that was looked at is not the queue"
    await session.queue_remove(five)
    await session.queue_shuffle()
    assert sorted(entry.id for entry in state.queue) == sorted([two, three, four]) and state.total == 3
    await session.queue_loop("queue")
    assert state.loop == "queue"
    await session.queue_loop("off")
    await session.quality(64)
    assert state.bitrate_kbps == 64
    await session.quality(None)
    assert state.bitrate_kbps is None

    await session.skip_to(three)
    await until(lambda: state.current and state.current.id == three and state.playback == "streaming", "the third")
    await session.previous()
    await until(lambda: state.current.id == first[0] and state.playback == "streaming", "the first again")
    await session.skip()
    await until(lambda: state.current.id != first[0] and state.playback == "streaming", "the next")
    history = await session.history(limit=1)
    assert len(history["tracks"]) == 1 and history["total"] == state.history_total >= 1
    await session.queue_clear()
    assert (state.queue, state.total) == ((), 0)
    await until(lambda: state.playback == "streaming", "sound without a queue")


async def test_what_others_do_is_seen(antiphon, session):
    async with Session(antiphon.router.url, session.session_id) as other:
        await other.queue_add(tracks=[{"url": FIRST.url}, {"url": SECOND.url}])
        await until(lambda: session.state.total == 1 and session.state.playback == "streaming", "what the other added")
        await other.volume(0.25)
        await until(lambda: session.state.volume == 0.25, "the other's volume")
        await other.pause()
        await until(lambda: session.state.playback == "paused", "the other's pause")


async def test_searching_and_looking(session):
    resolved = await session.resolve(FIRST.url, limit=1)
    assert [entry["url"] for entry in resolved["entries"]] == [FIRST.url], resolved
    listing = await session.media()
    assert FIRST.url in [entry.get("url") for entry in listing["entries"]]


@pytest.mark.parametrize(
    "type, fields, code",
    [
        ("seek", {"position_ms": 1}, "no_such_session"),
        ("play", {"url": "media:none.opus"}, "source_not_found"),
        ("play", {"url": "ftp://example.org/a"}, "invalid_source"),
        ("queue_remove", {"id": "none"}, "not_found"),
        ("volume", {"level": 11}, "invalid_command"),
        ("queue_loop", {"mode": "sideways"}, "invalid_command"),
        ("dance", {}, "invalid_command"),
    ],
)
async def test_an_error_has_a_code_and_a_hint(session, type, fields, code):
    with pytest.raises(AntiphonError) as refused:
        await session.command(type, **fields)
    error = refused.value
    assert error.code == code and error.message and error.hint, repr(error)
    assert str(error) == f"{code}: {error.message} ({error.hint})"
    assert (await session.status())["type"] == "status", "the connection is lost by an error"


async def test_a_key_of_the_askers_own_is_kept(session):
    for _ in range(2):
        await session.command("queue_add", tracks=[{"url": FIRST.url}, {"url": SECOND.url}], idempotency_key="mine")
    assert session.state.total == 1
