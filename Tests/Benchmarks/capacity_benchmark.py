"""One track in many sessions, what a session of each kind keeps in memory, and how many a core carries."""

import harness
from engine_benchmark import (
    CORES, MEMORY_HEAD, bare_loop, lateness_row, memory_row, play, print_lateness)
from harness import progress

# Later than this, and a client with 100 ms of buffer begins to notice what else is late.
LATENESS_LIMIT_US = 20_000
# Nothing but the load ends the climb.
UNLIMITED = ["--max-sessions", "1000000", "--max-workers", "1000", "--transcode-cpu-share", "100"]


def shared(bench):
    """100 and 500 sessions of one track: one production."""
    rows, lateness = [], []
    for count in bench.sessions or [100, 500]:
        for pair in range(bench.pairs):
            progress(f"shared, {count} sessions, run {pair + 1}")
            run = play(bench, bench.media("mp3", 1), count)
            metrics = run["metrics"]
            rows.append([f"{count:,}", f"{metrics['productions_total']:.0f}", f"{metrics['timeline_hits_total']:.0f}",
                         f"{run['cpu']:.2f}", f"{run['cost'] * 1000:.3f}", *memory_row(run, count)])
            lateness.append(lateness_row(f"{count:,} of one MP3 track", run))
    progress("")
    harness.table("Many sessions of one track",
                  ["sessions", "productions", "hits", "CPU s in all", "CPU ms per second of audio", *MEMORY_HEAD], rows)
    print_lateness(lateness)


def memory(bench):
    """What a session of each kind keeps, beside the idle engine."""
    kinds = {
        "60 transcoding, a file each, --cache-bytes 0": ("mp3", 60, 60, False, ["--cache-bytes", "0"]),
        "60 passing through, a file each, --cache-bytes 0": ("opus", 60, 60, False, ["--cache-bytes", "0"]),
        "1,000 cached, one track": ("mp3", 1, 1000, True, []),
    }
    rows = []
    for name, (kind, files, count, prime, flags) in kinds.items():
        for _ in range(bench.pairs):
            progress(f"memory, {name}")
            rows.append([name, *memory_row(play(bench, bench.media(kind, files), count, *flags, prime=prime), count)])
    progress("")
    harness.table("Memory by kind of session", ["sessions", *MEMORY_HEAD], rows)


def capacity(bench):
    """Raises the load until p99.9 lateness passes 20 ms, or a cursor finds nothing."""
    climbs = [transcoding(bench)]
    for name, kind, files, prime, flags in (("passing through", "opus", 60, False, ["--cache-bytes", "0"]),
                                            ("cached", "mp3", 1, True, [])):
        def run(count):
            return play(bench, bench.media(kind, files), count, *UNLIMITED, *flags, prime=prime)
        climbs.append(double(bench, name, run, 4000))
    harness.table("Raising the load",
                  ["sessions", "p99.9 ms", "worst", "dropped / buffering / rebased / errors", "engine, cores",
                   "carried", *harness.VERDICT_HEAD],
                  [step_row(name, count, run) for name, steps in climbs for count, run in steps])
    harness.table("Sessions per core", ["kind", "most that were carried", "engine, cores", "sessions per core",
                                        "by its CPU alone"],
                  [summary_row(name, steps) for name, steps in climbs])
    admission(bench)


def transcoding(bench):
    """By shares of what the bare loop could do with all cores in the same run."""
    cost = bare_loop(bench, bench.media("mp3", 10))
    bare = CORES / cost
    print(f"The bare loop: {cost * 1000:.2f} CPU ms per second of audio, so {1 / cost:.1f} sessions a core, "
          f"{bare:.0f} on {CORES}.\n")
    steps = []
    for share in (0.8, 0.85, 0.9, 0.95, 1.0, 1.05):
        count = round(bare * share)
        steps.append((count, attempt(bench, f"{count} transcoding", lambda: play(
            bench, bench.media("mp3", count), count, *UNLIMITED, "--cache-bytes", "0"))))
        if not is_carried(steps[-1][1]):
            break
    return f"transcoding (bare loop {bare:.0f})", steps


def double(bench, name, run, count):
    """Doubles the load until it is not carried, then halves the distance until it is known to a fifth."""
    steps, carried, refused = [], 0, None
    while refused is None or refused > carried * (1.4 if bench.quick else 1.15):
        steps.append((count, attempt(bench, f"{count} {name}", lambda: run(count))))
        if is_carried(steps[-1][1]):
            carried = count
        else:
            refused = count
        count = carried * 2 if refused is None else (carried + refused) // 2
    return name, steps


def attempt(bench, name, run):
    """A step that fails while the machine pauses or others work is tried again, twice."""
    for _ in range(1 if bench.quick else 3):
        progress(f"capacity, {name}")
        result = run()
        if is_carried(result) or harness.verdict(result)[-1] == "counts":
            break
    progress("")
    return result


def is_carried(run):
    losses = sum(run[key] for key in ("dropped", "buffering", "rebased", "errors"))
    return losses == 0 and run["lateness_us"]["p999"] <= LATENESS_LIMIT_US


def step_row(name, count, run):
    late = [f"{run['lateness_us'][point] / 1000:.1f}" for point in ("p999", "max")]
    losses = " / ".join(str(run[key]) for key in ("dropped", "buffering", "rebased", "errors"))
    return [f"{count:,} {name}", *late, losses, f"{run['cost'] * count:.2f}", "yes" if is_carried(run) else "no",
            *harness.verdict(run)]


def summary_row(name, steps):
    """What uses less than one core is not counted up to one; by CPU alone it would be as many as a core's time holds."""
    carried = [(count, run["cost"] * count) for count, run in steps if is_carried(run)]
    if not carried:
        return [name, "none", "", "", ""]
    count, cores = max(carried)
    return [name, f"{count:,}", f"{cores:.2f}", f"{count / max(1, cores):,.0f}", f"{count / cores:,.0f}"]


def admission(bench):
    """Twice what the machine can do is asked for, with the engine's own admission: what enters must sound."""
    count = round(2 * CORES / bare_loop(bench, bench.media("mp3", 10)))
    progress(f"admission, {count} sessions")
    run = play(bench, bench.media("mp3", count), count, "--cache-bytes", "0", "--max-workers", "1000", may_refuse=True)
    progress("")
    harness.table("Admission: twice as many transcodes as the bare loop could do",
                  ["asked for", "refused as overloaded", "p99.9 ms", "dropped", "buffering", "rebased", "engine, cores",
                   *harness.VERDICT_HEAD],
                  [[str(count), str(run["errors"]), f"{run['lateness_us']['p999'] / 1000:.1f}",
                    *(str(run[key]) for key in ("dropped", "buffering", "rebased")),
                    f"{run['cost'] * (count - run['errors']):.2f}", *harness.verdict(run)]])
