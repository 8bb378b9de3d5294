"""Router: CPU and latency of a delivered message, against the seed's Node design."""

import json
import os
import time

import harness
from harness import median, progress, spread

SESSIONS = 100
CLIENTS_PER_SESSION = 5
AUDIO_BYTES = 320
WARM_UP_SECONDS = 3


def fan_out(bench):
    """A synthetic engine feeds 100 sessions × 5 clients; both routers in turn."""
    kinds = {"Antiphon": antiphon, "Node with ws": node}
    runs = {kind: [] for kind in kinds}
    for pair in range(bench.pairs):
        for kind in list(kinds)[::1 if pair % 2 == 0 else -1]:
            progress(f"router, pair {pair + 1}: {kind}")
            runs[kind].append(kinds[kind](bench))
    progress("")
    costs = {kind: [run["cpu_us_per_message"] for run in runs[kind]] for kind in kinds}
    ours, theirs = costs.values()
    harness.table(
        f"Router: {SESSIONS} sessions × {CLIENTS_PER_SESSION} listeners, "
        f"{SESSIONS * CLIENTS_PER_SESSION * 50:,} messages a second",
        ["router", "CPU µs a message", "of it in the kernel", "private MiB", "resident MiB"],
        [[kind, spread(costs[kind]), f"{median(runs[kind], 'system'):.0%}",
          *(f"{median(runs[kind], key):.1f}" for key in ("private", "resident"))] for kind in kinds])
    print(f"Antiphon / Node: {spread([a / b for a, b in zip(ours, theirs)])}\n")
    harness.table(
        "Router: from the engine's write to the listener's read, ms; each run",
        ["router", "p50", "p99", "p99.9", "worst", "delivered", "missing / foreign / closed",
         *harness.VERDICT_HEAD],
        [latency_row(kind, run) for pair in zip(*([(kind, run) for run in runs[kind]] for kind in kinds))
         for kind, run in pair])


def antiphon(bench):
    def router(socket, port):
        return [bench.binary("Router"), "--engine-socket", socket, "--listen", f"127.0.0.1:{port}",
                "--state", bench.directory / f"state-{port}"], {}
    return measure(bench, "antiphon", router)


def node(bench):
    def router(socket, port):
        return ["node", harness.HERE / "node-router.js", socket, port], {
            "env": {**os.environ, "NODE_PATH": "/usr/share/nodejs"}}
    return measure(bench, "seed", router)


def measure(bench, protocol, router):
    socket, port = bench.directory / "synthetic.sock", harness.free_port()
    command, options = router(socket, port)
    engine = [bench.program("synthetic-engine"), socket, SESSIONS, AUDIO_BYTES, protocol]
    with harness.process(*engine) as synthetic, open(bench.directory / "router.log", "w") as log:
        synthetic.stdout.readline()
        with harness.process(*command, stderr=log, **options) as child:
            harness.wait_until("the router's readiness", lambda: harness.is_ready(port))
            time.sleep(0.5)
            seconds = 5 if bench.quick else 20
            load = [bench.program("websocket-load"), port, SESSIONS, CLIENTS_PER_SESSION, WARM_UP_SECONDS, seconds,
                    child.pid]
            others = harness.OthersLoad(child.pid, synthetic.pid)
            result = json.loads(harness.output(*load))
            result["others"] = others.cores()
            result["private"], result["resident"], _ = harness.memory(child.pid)
            result["system"] = harness.system_share(child.pid)
    return result


def latency_row(kind, run):
    late = run["latency_us"]
    figures = [f"{late[point] / 1000:.2f}" for point in ("p50", "p99", "p999", "max")]
    share = f"{run['delivered'] / run['expected']:.4f}"
    losses = " / ".join(str(run[key]) for key in ("missing", "foreign", "closed"))
    return [kind, *figures, share, losses, *harness.verdict(run)]
