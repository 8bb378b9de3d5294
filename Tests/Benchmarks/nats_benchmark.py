"""What NATS costs beside the Unix socket, and how several engines share sessions."""

import json

import services
from capacity_benchmark import FILE_SECONDS, UNLIMITED, UNLIMITED_CLIENTS, heard

import harness
from harness import median, progress

SESSIONS = 900
ENGINES = (1, 2, 3)
PACKETS_PER_SECOND = 50
FLAGS = [*UNLIMITED, "--cache-bytes", "0"]


def nats(bench):
    """Sessions that pass through, one listener each: over the Unix socket, and by one, two and three engines at NATS."""
    count = (bench.sessions or [SESSIONS])[0]
    paths = bench.media("opus", 60, FILE_SECONDS)
    runs = {engines: [] for engines in (0, *ENGINES)}
    for pair in range(bench.pairs):
        for engines in runs if pair % 2 == 0 else reversed(runs):
            progress(f"nats, {engines or 'no'} engines at NATS, run {pair + 1}")
            runs[engines].append(at_nats(bench, paths, engines, count) if engines else at_socket(bench, paths, count))
    progress("")
    socket = median(runs[0], "all")
    harness.table(f"{count:,} sessions that pass through, one listener each: CPU µs a delivered packet",
                  ["engines", "engines' CPU", "NATS server's", "Router's", "all", "to the Unix socket",
                   "sessions by engine", "cores by engine", "packets delivered", *harness.VERDICT_HEAD],
                  [row(engines, found, socket) for engines, found in runs.items()])


def at_socket(bench, paths, count):
    with services.antiphon(bench, paths[0].parent, *FLAGS, router_flags=UNLIMITED_CLIENTS) as (engine, router):
        return measured(bench, paths, [engine], router, None, count)


def at_nats(bench, paths, engines, count):
    with services.cluster(bench, paths[0].parent, engines, *FLAGS, router_flags=UNLIMITED_CLIENTS) as running:
        return measured(bench, paths, *running, count)


def measured(bench, paths, engines, router, server, count):
    running = [*engines, router, *([server] if server else [])]
    result, cores = heard(bench, paths, router, running, count, 1)
    by_engine = cores[:len(engines)]
    parts = {"engines": sum(by_engine), "router": cores[len(engines)], "server": sum(cores[len(engines) + 1:])}
    sessions = [len(json.loads(engine.request("GET", "/sessions"))["sessions"]) for engine in engines]
    return result | parts | {"all": sum(cores), "sessions": sessions, "cores": [core * count for core in by_engine]}


def row(engines, runs, socket):
    last = runs[-1]
    return [f"{engines} at NATS" if engines else "1 at the Unix socket",
            *(f"{median(runs, part) / PACKETS_PER_SECOND * 1e6:.2f}" for part in ("engines", "server", "router", "all")),
            f"{median(runs, 'all') / socket:.2f}", " ".join(map(str, last["sessions"])),
            " ".join(f"{core:.3f}" for core in last["cores"]), f"{median(runs, 'share'):.4f}",
            *harness.verdict({key: max(run[key] for run in runs) for key in ("worst_pause_us", "others")})]
