"""antiphon_client's picture of a session, by a clock that is set."""

import pytest
from antiphon_client import SessionState

TRACK = {"url": "media:a.opus", "title": "A", "duration_ms": 60_000, "codec": "opus"}


class Clock:
    """Seconds."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def state(clock):
    """One that plays at 10 s."""
    state = SessionState(clock)
    session = {"session_id": "s", "state": "streaming", "position_ms": 10_000, "volume": 1, **TRACK}
    queue = {"current": {"id": "1", "url": TRACK["url"]}, "tracks": [], "offset": 0, "total": 0, "loop": "off"}
    state.apply({"type": "session", "session": session, "queue": queue, "engine": {"connected": True}})
    return state


def test_the_position_moves_with_the_clock(state, clock):
    assert state.position_ms == 10_000
    clock.now += 2.5
    assert state.position_ms == 12_500


@pytest.mark.parametrize("kind, playback", [("paused", "paused"), ("buffering", "streaming")])
def test_it_stands_still_while_nothing_is_sent(state, clock, kind, playback):
    state.apply({"type": kind, "position_ms": 11_000})
    clock.now += 100
    assert (state.position_ms, state.playback, state.buffering) == (11_000, playback, kind == "buffering")
    state.apply({"type": "resumed" if kind == "paused" else "playing", "position_ms": 11_000})
    clock.now += 1
    assert (state.position_ms, state.playback, state.buffering) == (12_000, "streaming", False)


def test_a_seek_in_a_pause_stays_a_pause(state, clock):
    state.apply({"type": "paused", "position_ms": 11_000})
    state.apply({"type": "seeked", "position_ms": 30_000})
    clock.now += 5
    assert (state.position_ms, state.playback) == (30_000, "paused")


def test_it_stands_still_without_an_engine(state, clock):
    clock.now += 1
    state.apply({"type": "engine", "engine": {"connected": False, "message": "it went"}})
    clock.now += 60
    assert (state.position_ms, state.engine_connected) == (11_000, False)


def test_it_ends_at_the_end_and_goes_round_in_a_loop(state, clock):
    clock.now += 1_000
    assert state.position_ms == 60_000
    state.apply({"type": "ready", **TRACK, "loop": True, "volume": 1})
    state.apply({"type": "playing", "position_ms": 0})
    clock.now += 61.5
    assert state.position_ms == 1_500


def test_a_stream_without_an_end_goes_on(state, clock):
    state.apply({"type": "extracting", "url": "https://radio.example/"})
    state.apply({"type": "ready", "url": "https://radio.example/", "live": True, "volume": 1})
    state.apply({"type": "playing", "position_ms": 0})
    clock.now += 10_000
    assert state.position_ms == 10_000_000 and state.duration_ms is None


def test_what_someone_said_of_a_track_goes_before_what_its_file_says(state):
    queue = {"current": {"id": "7", "url": TRACK["url"], "title": "Said", "requested_by": "ann"}, "total": 0}
    state.apply({"type": "queue", "queue": queue})
    current = state.current
    assert (current.id, current.title, current.requested_by) == ("7", "Said", "ann")
    assert (current.duration_ms, current.codec) == (60_000, "opus")
    # The queue is ahead of the engine for a moment.
    state.apply({"type": "queue", "queue": {"current": {"id": "8", "url": "media:b.opus"}, "total": 0}})
    assert (state.current.id, state.current.title, state.current.duration_ms) == ("8", None, None)


def test_an_end(state):
    state.apply({"type": "ended", "reason": "stopped", "position_ms": 20_000})
    state.apply({"type": "queue", "queue": {"tracks": [], "offset": 0, "total": 0, "loop": "off"}})
    assert (state.playback, state.position_ms, state.current) == ("idle", 0, None)


def test_a_queue_without_its_tracks_is_not_an_empty_one(state):
    tracks = [{"id": str(number), "url": "media:a.opus"} for number in range(3)]
    state.apply({"type": "queue", "queue": {"tracks": tracks, "offset": 0, "total": 3}})
    for partial in ({"tracks": tracks[:1], "offset": 0}, {"tracks": tracks[1:], "offset": 1}, {"tracks": []}, {}):
        state.apply({"type": "queue", "queue": partial | {"total": 3}})
        assert [entry.id for entry in state.queue] == ["0", "1", "2"], partial


def test_events_that_are_not_known_change_nothing(state):
    before = (state.playback, state.current, state.queue, state.position_ms)
    state.apply({"type": "from_the_future", "position_ms": 7})
    assert (state.playback, state.current, state.queue, state.position_ms) == before
