"""Seeks, and what a cut in the middle of the sound costs when many sessions ask for one at once."""

import json
import random
import socket
import time

import harness
import services
from harness import point, progress

LONG_SECONDS, LOOP_SECONDS = 300, 20
SESSIONS = 60
NAMES = {"flac": "FLAC", "mp3": "MP3", "opus": "Opus"}


def seek(bench):
    """Command to `seeked` and to the first packet of the new place, inside what is produced and beyond it."""
    rows = []
    others = harness.OthersLoad()
    with services.PauseWatch(bench) as watch:
        for kind in NAMES:
            path = bench.media(kind, 1, LONG_SECONDS)[0]
            for where, flags in (("inside what is produced", []), ("beyond it", ["--cache-bytes", "0"])):
                progress(f"seek, {kind}, {where}")
                with services.antiphon(bench, path.parent, *flags) as (engine, router):
                    measured = seeks(bench, engine, router, watch, path, flags)
                    rows.append(seek_row(f"{NAMES[kind]} file, {where}", measured))
    progress("")
    harness.table("Seeking, ms at the WebSocket client",
                  ["source", "seeks (void)", "to `seeked`, p50", "p90", "to the first packet, p50", "p90"], rows)
    print(f"Other programs meanwhile: {others.cores():.2f} cores.\n")
    cuts(bench)


def seeks(bench, engine, router, watch, path, flags):
    measured = []
    with services.Listener(router, "seeks") as listener:
        listener.send("play", url=f"media:{path.name}")
        listener.wait("packet")
        if not flags:
            engine.wait_produced()
        for number in range(10 if bench.quick else 30):
            for _ in range(25):
                listener.wait("packet")
            # People do not wait for a packet: anywhere between two.
            time.sleep(random.uniform(0, 0.02))
            watch.worst_us()
            # Each place is at least 16 s, more than the read-ahead, from all before it.
            asked = listener.send("seek", position_ms=(40 + 97 * number) % 280 * 1000 + 500)
            answered, _ = listener.wait("seeked")
            heard, _ = listener.wait("packet")
            measured.append(((answered - asked) * 1000, (heard - asked) * 1000, watch.worst_us()))
    return measured


def seek_row(name, measured):
    good = [one for one in measured if one[2] <= harness.PAUSE_LIMIT_US] or measured
    figures = [f"{point([one[which] for one in good], share):.1f}" for which in (0, 1) for share in (0.5, 0.9)]
    return [name, f"{len(measured)} ({len(measured) - len(good)})", *figures]


def cuts(bench):
    """All sessions pause, go on and seek in the same moment; how many cuts came without their fade."""
    rows = []
    with services.PauseWatch(bench) as watch:
        for kind in ("mp3", "opus"):
            for count in (1, SESSIONS):
                progress(f"cuts, {count} sessions, {kind}")
                paths = bench.media(kind, count, LOOP_SECONDS)
                with services.engine(bench, paths[0].parent) as engine:
                    rows += cut_rows(bench, engine, watch, paths)
    progress("")
    harness.table("Cuts asked for by all sessions at once: ms from the command to its answer on the engine's socket",
                  ["sessions", "command", "p50", "p90", "worst", "without fade", *harness.VERDICT_HEAD], rows)


def cut_rows(bench, engine, watch, paths):
    name = f"{len(paths)} {'transcoded' if paths[0].suffix == '.mp3' else 'passed through'}"
    with Sessions(bench, len(paths)) as sessions:
        sessions.ask("playing", lambda index: {
            "type": "play", "url": f"media:{paths[index].name}", "loop": True})
        engine.wait_produced()
        answers = {"pause": "paused", "resume": "resumed", "seek": "seeked"}
        times = {command: [] for command in answers}
        figures = {command: {"cuts": 0, "cuts_without_fade": 0, "worst_pause_us": 0.0, "others": 0.0} for command in answers}
        for turn in range(3 if bench.quick else 8):
            for command, answer in answers.items():
                sessions.read_for(0.3)
                before, others = engine.metrics(), harness.OthersLoad(engine.pid)
                watch.worst_us()
                times[command] += sessions.ask(answer, lambda index: {
                    "type": command, **({"position_ms": 3000 + (turn * 7 + index) % 14 * 1000} if command == "seek" else {})})
                figure = figures[command]
                figure["worst_pause_us"] = max(figure["worst_pause_us"], watch.worst_us())
                figure["others"] = max(figure["others"], others.cores())
                for key in ("cuts", "cuts_without_fade"):
                    figure[key] += engine.metrics()[f"{key}_total"] - before[f"{key}_total"]
    return [[name, command, *(f"{point(times[command], share):.1f}" for share in (0.5, 0.9, 1)),
             f"{figure['cuts_without_fade']:.0f} of {figure['cuts']:.0f}", *harness.verdict(figure)]
            for command, figure in figures.items()]


class Sessions:
    """A light router: many sessions on one connection to the engine."""

    def __init__(self, bench, count):
        self._count = count
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(str(bench.directory / "engine.sock"))
        self._buffer = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._socket.close()

    def ask(self, answer, command):
        """Sends all sessions' commands in one write; how long each waited for its answer, in ms."""
        lines = [json.dumps({**command(index), "session_id": f"c{index}"}) + "\n" for index in range(self._count)]
        asked = time.monotonic()
        self._socket.sendall("".join(lines).encode())
        waited = {}
        while len(waited) < self._count:
            arrived, events = self._receive(30)
            for event in events:
                if event["type"] == "error":
                    raise harness.Failure(f"instead of {answer}: {event}")
                if event["type"] == answer:
                    waited.setdefault(event["session_id"], (arrived - asked) * 1000)
        return list(waited.values())

    def read_for(self, seconds):
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            try:
                self._receive(left)
            except TimeoutError:
                return

    def _receive(self, seconds):
        """(when, the events); packets are passed over."""
        self._socket.settimeout(seconds)
        received = self._socket.recv(1 << 20)
        arrived = time.monotonic()
        if not received:
            raise harness.Failure("the engine closed the connection")
        buffer, at, events = self._buffer + received, 0, []
        while len(buffer) - at >= 4:
            if buffer[at] == 0:
                end = at + 4 + int.from_bytes(buffer[at:at + 4], "big")
                if end > len(buffer):
                    break
            else:
                end = buffer.find(b"\n", at) + 1
                if end == 0:
                    break
                events.append(json.loads(buffer[at:end]))
            at = end
        self._buffer = buffer[at:]
        return arrived, events
