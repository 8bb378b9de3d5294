"""Scores rendered offline: how much faster than they sound, and what a piece weighs in every encoding."""

import concurrent.futures
import json
import random
import statistics
import urllib.request

import harness
import services
from harness import progress

RATE = 48_000
SECONDS = 12
EFFECTS = {"reverb_s": 2.5, "delay": 18_000, "delay_feedback": 0.35, "chorus_hz": 0.6}
#: Of the samples that `POST /stream/ID/test` makes.
KINDS = ("push", "pull_request", "pull_request_review", "check_run", "workflow_run", "deployment_status", "issues",
         "issue_comment", "release", "star", "fork")
ENCODINGS = ("opus", "pcm16", "wav", "json-deflate", "json")


def render(bench):
    """`POST /render` of a typical piece: six voices, twelve notes a second, every effect."""
    rounds = 5 if bench.quick else 25
    folder = bench.directory / "no-media"
    folder.mkdir(exist_ok=True)
    others = harness.OthersLoad()
    with services.engine(bench, folder) as engine:
        rows = [speed_row(engine, "one after the other", 1, rounds, 0), speed_row(engine, "two at once", 2, rounds, 1)]
        sizes = size_rows(engine)
    with services.antiphon(bench, folder) as (engine, router):
        composed = composed_rows(engine, compose(router), 2 if bench.quick else 8)
    progress("")
    harness.table(f"Rendering a piece of {SECONDS} s (six voices, twelve notes a second, all effects) to pcm16",
                  ["renderings", "CPU ms a piece", "× real time on one core", "ms at the client, p50", "p90"], rows)
    harness.table("Rendering what the composer makes of the sample events to pcm16, one after the other",
                  ["kind of event", "seconds", "notes a second", "CPU ms", "× real time on one core"], composed)
    print(f"Other programs meanwhile: {others.cores():.2f} cores.\n")
    harness.table(f"The same piece in every encoding, {SECONDS} s",
                  ["encoding", "bytes", "kbit/s", "of the JSON, %", "ms to render and encode"], sizes)


def speed_row(engine, name, parallel, rounds, family):
    progress(f"render, {name}")
    post(engine, piece(-1 - family), "pcm16")  # waveforms are made with the first note
    before = harness.cpu_seconds(engine.pid)
    with concurrent.futures.ThreadPoolExecutor(parallel) as pool:
        scores = [piece(1_000 * family + number) for number in range(rounds * parallel)]
        answers = list(pool.map(lambda score: post(engine, score, "pcm16"), scores))
    cpu = (harness.cpu_seconds(engine.pid) - before) / len(answers)
    times = [took for _, took in answers]
    return [name, f"{cpu * 1000:.0f}", f"{SECONDS / cpu:.0f}", f"{statistics.median(times):.0f}",
            f"{harness.point(times, 0.9):.0f}"]


def compose(router):
    """A score of each kind: its voices and notes, with the effects of a typical one."""
    for kind in KINDS:
        router.request("POST", "/stream/bench/test", event=kind)
    events = []

    def are_composed():
        events[:] = json.loads(router.request("GET", "/api/v1/repositories/bench/events?limit=20"))["events"]
        return len(events) == len(KINDS)

    harness.wait_until("the pieces", are_composed)
    scores = {}
    for music in reversed(events):
        notes = [[voice, 48 * start, 48 * length, pitch, velocity]
                 for voice, start, length, pitch, velocity in music["notes"]]
        sends = {"gain": 0.8, "pan": 0, "reverb": 0.4, "delay": 0.2, "chorus": 0.1}
        scores[music["event"]["kind"]] = {
            "seed": 1, "beat": 24_000, "length": max(note[1] + note[2] for note in notes) + 2 * RATE, "effects": EFFECTS,
            "voices": [{**voice, **sends} for voice in music["voices"]], "notes": notes}
    return scores


def composed_rows(engine, scores, rounds):
    rows, whole = [], [0, 0, 0]
    for kind, score in scores.items():
        progress(f"render, {kind}")
        post(engine, {**score, "seed": 2}, "pcm16")
        before = harness.cpu_seconds(engine.pid)
        for seed in range(rounds):
            post(engine, {**score, "seed": 3 + seed}, "pcm16")
        cpu = (harness.cpu_seconds(engine.pid) - before) / rounds
        row = [score["length"] / RATE, len(score["notes"]), cpu]
        whole = [a + b for a, b in zip(whole, row, strict=True)]
        rows.append(composed_row(kind, *row))
    return [*rows, composed_row("all", *whole)]


def composed_row(kind, seconds, notes, cpu):
    return [kind, f"{seconds:.1f}", f"{notes / seconds:.1f}", f"{cpu * 1000:.0f}", f"{seconds / cpu:.0f}"]


def size_rows(engine):
    found = {encoding: post(engine, piece(0), encoding) for encoding in ENCODINGS}
    plain = found["json"][0]
    return [[encoding, f"{count:,}", f"{count * 8 / SECONDS / 1000:.0f}", f"{100 * count / plain:.1f}", f"{took:.0f}"]
            for encoding, (count, took) in found.items()]


def post(engine, score, encoding):
    """The answer's length in bytes, and what the engine says it took in milliseconds."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{engine.port}/render?encoding={encoding}", data=json.dumps(score).encode(),
        headers={"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return len(answer.read()), int(answer.headers["X-Render-Milliseconds"])


def piece(seed):
    """Four chords: a tune, broken chords, a pad, strings, a bass and drums."""
    dice = random.Random(seed)
    parts = [("pluck", "melody"), ("electric_piano", "harmony"), ("pad", "harmony"), ("strings", "bed"),
             ("bass", "bass"), ("drums", "percussion")]
    voices = [{"role": role, "instrument": instrument, "gain": 0.8, "pan": (index - 2) / 4, "reverb": 0.3,
               "delay": 0.3 if index == 0 else 0, "chorus": 0.3 if index in (1, 2) else 0}
              for index, (instrument, role) in enumerate(parts)]
    beat, notes = 24_000, []
    for bar in range(5):
        start = bar * 4 * beat
        chord = ((50, 57, 62), (47, 54, 59), (43, 50, 55), (45, 52, 57))[bar % 4]
        for pitch in chord:
            notes += [[2, start, 4 * beat, pitch, 80]]
        notes += [[3, start, 4 * beat, chord[2] + 12, 80]]
        for step in range(8):
            notes += [[0, start + step * beat // 2, beat // 2, dice.choice(chord) + 24, dice.randint(70, 110)]]
        for step in range(4):
            notes += [[1, start + step * beat, beat, chord[step % 3] + 12, 80],
                      [4, start + step * beat, beat - 2_000, chord[0] - 12, 95],
                      [5, start + step * beat, 3_000, (36, 38)[step % 2], 100]]
    return {"seed": abs(seed), "beat": beat, "length": SECONDS * RATE,
            "effects": EFFECTS,
            "voices": voices, "notes": notes}
