"""What a session's messages do to its state: the vectors that all readers share, and the Python client's own part."""

import dataclasses
import json
import re
import subprocess

import pytest
from antiphon_client import SessionState

from processes import ROOT

TRACK = {"url": "media:a.opus", "title": "A", "duration_ms": 60_000, "codec": "opus"}
FOLDER = ROOT / "Tests" / "Vectors"
VECTORS = json.loads((FOLDER / "session-state.json").read_text())["vectors"]


class Clock:
    """Seconds."""

    now = 0.0

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


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_the_vectors(vector, clock):
    state = SessionState(clock)
    expected = {}
    for number, step in enumerate(vector["steps"]):
        clock.now += step.get("after_ms", 0) / 1_000
        if "message" in step:
            state.apply(step["message"])
        expected |= step["state"]
        wanted = expected | {"current": step["state"].get("current", expected["track"])}
        del wanted["track"]
        assert seen(state) == wanted, f"step {number}: {step}"


def seen(state):
    current = known(state.current)
    entry = current and {name: current.pop(name) for name in ("id", "requested_by") if name in current}
    return {
        "state": state.playback,
        "buffering": state.buffering,
        "sounding": state.is_sounding,
        "current": current,
        "position_ms": state.position_ms,
        "volume": state.volume,
        "engine_connected": state.engine_connected,
        "queue": {
            "current": entry | {"url": current["url"]} if entry else None,
            "tracks": [known(track) for track in state.queue],
            "total": state.total,
            "history_total": state.history_total,
            "loop": state.loop,
            "bitrate_kbps": state.bitrate_kbps,
        },
    }


def known(track):
    """Without what is unknown, false or empty."""
    if track is None:
        return None
    values = dataclasses.asdict(track) | ({"chapters": list(track.chapters)} if hasattr(track, "chapters") else {})
    return {name: value for name, value in values.items() if value}


def test_the_vectors_in_javascript():
    """The page's module and the Node client's, in Node."""
    done = subprocess.run(["node", "--test", FOLDER], capture_output=True, text=True)
    passed = re.search(r"^# pass (\d+)$", done.stdout, re.MULTILINE)
    assert done.returncode == 0 and int(passed[1]) == 2 * len(VECTORS), done.stdout + done.stderr


def test_the_vectors_and_the_table_have_every_message_and_every_state():
    steps = [step for vector in VECTORS for step in vector["steps"]]
    had = {step["message"]["type"] for step in steps if "message" in step}
    wire = (ROOT / "docs" / "wire-protocol.md").read_text()
    page = (ROOT / "docs" / "http-and-websocket.md").read_text()
    # The Router alone hears these.
    told = (types(wire, "### Events") | types(page, "## `GET /ws")) - {"hello", "listed", "burst"}
    assert len(told) > 20 and told <= had, "a message without a vector"
    assert told <= types(page, "### What each event does"), "a message without a line in the table"
    states = {step["state"]["state"] for step in steps if "state" in step["state"]}
    assert states == {"idle", "extracting", "streaming", "paused"}


def types(text, heading):
    """What the first column of the first table below a heading names."""
    head, _, *rows = re.search(r"(?:^\|.*\n)+", text.partition(heading)[2], re.MULTILINE)[0].splitlines()
    return {name for row in rows for name in re.findall(r"`([a-z]+)`", row.split("|")[1])}


def test_the_position_stops_at_the_end_and_goes_round_in_a_loop(state, clock):
    clock.now += 1_000
    assert state.position_ms == 60_000
    state.apply({"type": "ready", **TRACK, "loop": True, "volume": 1})
    state.apply({"type": "playing", "position_ms": 0})
    clock.now += 61.5
    assert state.position_ms == 1_500


def test_what_someone_said_of_a_track_goes_before_what_its_file_says(state):
    queue = {"current": {"id": "7", "url": TRACK["url"], "title": "Said", "requested_by": "ann"}, "total": 0}
    state.apply({"type": "queue", "queue": queue})
    current = state.current
    assert (current.id, current.title, current.requested_by) == ("7", "Said", "ann")
    assert (current.duration_ms, current.codec) == (60_000, "opus")
