"""Router: CPU, memory and latency of a delivered message, against the bare loop and the seed's Node design."""

import contextlib
import json
import os
import re
import time
import urllib.request

import harness
from harness import median, progress, spread

# (sessions, listeners of each); the first with one session, without whose listeners a router is idle.
LOADS = [(1, 1_000), (100, 5), (1_000, 1)]
AUDIO_BYTES = 320
WARM_UP_SECONDS = 2
SECONDS = 8
#: Listeners that read nothing, and how long each stays: longer than a router takes to close it.
STOPPED, STOPPED_SECONDS = 100, 15
#: Of `antiphon.timed.v1`.
THREE = "Antiphon, three packets a message"


def fan_out(bench):
    """A synthetic engine feeds each load to the routers in turn."""
    kinds = {"Antiphon": antiphon, "bare loop": bare, "Node with ws": node, THREE: antiphon}
    idle = {}
    for load in LOADS:
        runs = {kind: [] for kind in kinds}
        for pair in range(bench.pairs):
            for kind in list(kinds)[::1 if pair % 2 == 0 else -1]:
                progress(f"router, {load[0]} × {load[1]}, pair {pair + 1}: {kind}")
                runs[kind].append(measure(bench, kinds[kind], *load, frames=3 if kind == THREE else 0))
        progress("")
        for kind, found in runs.items():
            idle.setdefault(kind, median(found, "private_before"))
        report(*load, runs, idle)


def report(sessions, listeners, runs, idle):
    """One table a load: medians of the pairs; ratios are of each pair."""
    costs = {kind: [run["cpu_us_per_message"] for run in found] for kind, found in runs.items()}
    ratios = {kind: spread([a / b for a, b in zip(costs[kind], costs["bare loop"], strict=True)]) for kind in costs}
    harness.table(
        f"Router: sessions × listeners {sessions:,} × {listeners:,}, {sessions * listeners * 50:,} messages a second",
        ["router", "CPU µs a packet", "to the bare loop", "in the kernel", "private MiB",
         "KiB a listener, its session included", "p50 ms", "p99", "p99.9", "delivered",
         "missing / foreign / closed", *harness.VERDICT_HEAD],
        [[kind, spread(costs[kind]), ratios[kind], f"{median(found, 'kernel_share'):.0%}",
          f"{median(found, 'private'):.1f}",
          f"{(median(found, 'private') - idle[kind]) * 1024 / sessions / listeners:.1f}",
          *(f"{median(found, 'latency_us', point) / 1000:.2f}" for point in ("p50", "p99", "p999")),
          f"{median(found, 'delivered') / median(found, 'expected'):.4f}",
          " / ".join(str(sum(run[key] for run in found)) for key in ("missing", "foreign", "closed")),
          *harness.verdict({key: max(run[key] for run in found) for key in ("worst_pause_us", "others")})]
         for kind, found in runs.items()])
    print(f"Antiphon / Node: {spread([a / b for a, b in zip(costs['Antiphon'], costs['Node with ws'], strict=True)])}\n")


def stalls(bench):
    """1,000 listeners alone and beside 100 that read nothing, in turn."""
    runs = {0: [], STOPPED: []}
    for pair in range(bench.pairs):
        for stopped in (0, STOPPED) if pair % 2 == 0 else (STOPPED, 0):
            progress(f"stalls, pair {pair + 1}, {stopped} stopped listeners")
            runs[stopped].append(measure(bench, antiphon, 1_000, 1, frames=0, stopped=stopped))
    progress("")
    harness.table(
        "Listeners that read nothing, beside 1,000 that do: latency of these, ms",
        ["stopped", "p50", "p99", "p99.9", "missing / foreign / closed", "CPU µs a packet", *harness.VERDICT_HEAD],
        [[str(stopped), *(spread([run["latency_us"][point] / 1000 for run in found]) for point in ("p50", "p99", "p999")),
          " / ".join(str(sum(run[key] for run in found)) for key in ("missing", "foreign", "closed")),
          spread([run["cpu_us_per_message"] for run in found]),
          *harness.verdict({key: max(run[key] for run in found) for key in ("worst_pause_us", "others")})]
         for stopped, found in runs.items()])
    worst = [median(found, "latency_us", "p999") / 1000 for found in runs.values()]
    print(f"p99.9 beside {STOPPED} stopped listeners: {worst[1] - worst[0]:+.2f} ms\n")


def antiphon(bench, socket, port):
    return [bench.binary("Router"), "--engine-socket", socket, "--listen", f"127.0.0.1:{port}",
            "--state", bench.directory / f"state-{port}"], "antiphon", {}


def bare(bench, socket, port):
    return [bench.program("bare-router"), socket, port], "antiphon", {}


def node(_, socket, port):
    return ["node", harness.HERE / "node-router.js", socket, port], "seed", {
        "env": {**os.environ, "NODE_PATH": "/usr/share/nodejs"}}


@contextlib.contextmanager
def fed(bench, router, sessions, protocol=None):
    """A router that is ready, and the synthetic engine that feeds it: (the router's process, the engine's, the port)."""
    socket, port = bench.directory / "synthetic.sock", harness.free_port()
    command, spoken, options = router(bench, socket, port)
    engine = [bench.program("synthetic-engine"), socket, sessions, AUDIO_BYTES, protocol or spoken]
    with harness.process(*engine) as synthetic, open(bench.directory / "router.log", "w") as log:
        synthetic.stdout.readline()
        with harness.process(*command, stderr=log, **options) as child:
            harness.wait_until("the router's readiness", lambda: harness.is_ready(port))
            yield child, synthetic, port


def measure(bench, router, sessions, listeners, frames, stopped=0):
    """One run of one router."""
    with fed(bench, router, sessions) as (child, synthetic, port):
        time.sleep(0.5)
        before, _, _ = harness.memory(child.pid)
        crowd = stopped_listeners(bench, port, stopped) if stopped else contextlib.nullcontext()
        load = [bench.program("websocket-load"), port, sessions, listeners, WARM_UP_SECONDS,
                3 if bench.quick else SECONDS, child.pid, frames, "synthetic"]
        with crowd as pid:
            others = harness.OthersLoad(child.pid, synthetic.pid, *([pid] if pid else []))
            result = json.loads(harness.output(*load).removeprefix("measuring\n"))
            result["others"] = others.cores()
        result["private"] = result["router_private_kib"] / 1024
        result["private_before"] = before
    return result


@contextlib.contextmanager
def stopped_listeners(bench, port, count):
    """Listeners that read nothing, from when the router has begun to drop their audio."""
    with harness.process(bench.program("stopped-listeners"), port, count, STOPPED_SECONDS) as listeners:
        if listeners.stdout.readline() != "listening\n":
            raise harness.Failure("the stopped listeners were not let in")
        harness.wait_until("a full socket", lambda: dropped_frames(port) > 0, 60)
        yield listeners.pid


def dropped_frames(port):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        found = re.search(r"^antiphon_router_dropped_frames_total (\d+)", answer.read().decode(), re.MULTILINE)
    return int(found[1])


def soak(bench):
    """1,000 listeners that join, leave and stop reading at random, of sessions that seek: every packet is of its session,
    and next in order."""
    sessions, packets = 1_000, bench.packets or (500_000 if bench.quick else 10_000_000)
    seed = time.time_ns() % 1_000_000
    with fed(bench, antiphon, sessions, protocol="seeks") as (_, _, port):
        progress(f"soak, seed {seed}")
        found = json.loads(harness.output(bench.program("soak-listeners"), port, sessions, sessions, packets, seed))
        dropped = dropped_frames(port)
    progress("")
    keys = ["packets", "joins", "seeks", "stalls", "closed", "foreign", "doubled", "lost", "missing"]
    harness.table(f"Soak, seed {seed}", [*keys, "dropped, as the Router says"],
                  [[*(f"{found[key]:,}" for key in keys), f"{dropped:,}"]])
    # A machine that is busy stops listeners too: what the Router has dropped is counted, whichever side was late.
    if not found["seeks"] or found["foreign"] or found["doubled"] or found["lost"] + found["missing"] > dropped:
        raise harness.Failure(f"packets are in the wrong place: {found}, {dropped} dropped")
