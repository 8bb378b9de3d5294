"""One track in many sessions, what a session of each kind keeps in memory, and how many a core carries."""

import json
import time

import harness
import services
from engine_benchmark import CORES, MEMORY_HEAD, bare_loop, lateness_row, memory_row, play, print_lateness
from harness import median, progress

#: The loads of `capacity`, sessions and packets a message: the first says what a core carries as bots listen, the others how
#: the cost of a session grows. Where each packet is a message, 4,000 listeners take more of a small machine than it has.
ONE, FEW, MANY = LOADS = [(1_000, 1), (1_000, 3), (4_000, 3)]
FILE_SECONDS = 120
WARM_UP_SECONDS, SECONDS = 2, 8
# Nothing but the processors bounds the load.
UNLIMITED = ["--max-sessions", "1000000", "--max-workers", "1000", "--transcode-cpu-share", "100"]
UNLIMITED_CLIENTS = ["--client-limits", "100"]


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
    """CPU of both processes for a session with one listener, at two counts: what a core carries, and how that grows."""
    rows, router = [], []
    for name, kind, files, prime, flags in (("passing through", "opus", 60, False, ["--cache-bytes", "0"]),
                                            ("cached", "mp3", 1, True, [])):
        paths = bench.media(kind, files, FILE_SECONDS)
        runs = {load: [] for load in LOADS}
        for pair in range(bench.pairs):
            for load in LOADS:
                progress(f"capacity, {load[0]:,} {name}, {load[1]} packets a message, run {pair + 1}")
                runs[load].append(delivered(bench, paths, *load, prime, *flags))
        router.append(median(runs[ONE], "router"))
        for count, frames in LOADS:
            smallest = median(runs[FEW], "both") if (count, frames) == MANY else None
            rows.append(capacity_row(f"{count:,} {name}, {frames} a message", runs[count, frames], smallest))
    progress("capacity, transcoding")
    run = play(bench, bench.media("mp3", 60), 60, "--cache-bytes", "0")
    cores = {"engine": run["cost"], "router": router[0]}
    rows.append(capacity_row("60 transcoding", [run | cores | {"both": sum(cores.values()), "share": 1.0}], None))
    progress("")
    harness.table("Sessions per core, one listener each, both processes",
                  ["sessions", "engine, CPU ms a second", "Router", "sessions per core", "growth of a session's cost",
                   "packets delivered", *harness.VERDICT_HEAD], rows)
    admission(bench)


def delivered(bench, paths, count, frames, prime, *flags):
    """One run of both processes with a listener for each session; cores by process for a session."""
    with services.antiphon(bench, paths[0].parent, *UNLIMITED, *flags, router_flags=UNLIMITED_CLIENTS) as (
            engine, router):
        if prime:
            router.request("POST", "/api/v1/sessions/prime/play", url=f"media:{paths[0].name}")
            engine.wait_produced()
            router.request("POST", "/api/v1/sessions/prime/stop")
        result, cores = heard(bench, paths, router, [engine, router], count, frames)
    return result | {"engine": cores[0], "router": cores[1], "both": sum(cores)}


def heard(bench, paths, router, running, count, frames):
    """A listener for each of so many sessions: what they heard, and the cores that each process took for a session."""
    seconds = 3 if bench.quick else SECONDS
    load = [bench.program("websocket-load"), router.port, count, 1, WARM_UP_SECONDS, seconds, router.pid, frames, "real"]
    router.request_all([(f"/api/v1/sessions/{number}/play", {"url": f"media:{paths[number % len(paths)].name}"})
                        for number in range(count)])
    with harness.process(*load) as listeners:
        if listeners.stdout.readline() != "measuring\n":
            raise harness.Failure(f"the listeners did not begin; see {bench.directory}/router.log")
        others = harness.OthersLoad(listeners.pid, *(service.pid for service in running))
        before = [harness.cpu_seconds(service.pid) for service in running]
        started = time.monotonic()
        result = json.loads(listeners.stdout.readline())
        span = (time.monotonic() - started) * count
        cores = [(harness.cpu_seconds(service.pid) - cpu) / span for service, cpu in zip(running, before, strict=True)]
        result["others"] = others.cores()
    return result | {"share": result["delivered"] / result["expected"]}, cores


def capacity_row(name, runs, smallest):
    both = median(runs, "both")
    return [name, *(f"{median(runs, part) * 1000:.3f}" for part in ("engine", "router")), f"{1 / both:,.0f}",
            f"{both / smallest:.2f}" if smallest else "", f"{median(runs, 'share'):.4f}",
            *harness.verdict({key: max(run[key] for run in runs) for key in ("worst_pause_us", "others")})]


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
