"""What a router that does not read costs the engine's pacer."""

import contextlib
import pathlib
import socket
import statistics
import time

import harness
import services
from harness import progress, spread

SESSIONS = 1000
# Two seconds of audio and a little more: from then on there is something to be dropped in every round.
FILL_SECONDS = 3
MEASURED_SECONDS = 5


def outbox(bench):
    """The pacer's CPU with a stalled router, and without one, in turn, beside a router that reads."""
    count = (bench.sessions or [SESSIONS])[0]
    paths = bench.media("opus", 1, 20 + 2 * bench.pairs * (FILL_SECONDS + MEASURED_SECONDS))
    costs = {False: [], True: []}
    others = harness.OthersLoad()
    with services.engine(bench, paths[0].parent) as engine:
        client = [bench.program("engine-client"), bench.directory / "engine.sock", count, 1, f"media:{paths[0].name}"]
        with harness.process(*client) as reader:
            if reader.stdout.readline() != "playing\n":
                raise harness.Failure(f"not every session sounds; see {bench.directory}/engine.log")
            engine.wait_produced()
            for pair in range(bench.pairs):
                for is_stalled in (False, True) if pair % 2 == 0 else (True, False):
                    progress(f"outbox, pair {pair + 1}, {'with' if is_stalled else 'without'} a stalled router")
                    costs[is_stalled].append(round_cost(bench, engine, is_stalled))
            reader.terminate()
    progress("")
    harness.table(f"The pacer with {count:,} sessions, µs of CPU a round",
                  ["a router that reads", "and one that does not", "difference of the medians"],
                  [[spread(costs[False]), spread(costs[True]),
                    f"{statistics.median(costs[True]) - statistics.median(costs[False]):.2f}"]])
    print(f"Other programs meanwhile: {others.cores():.2f} cores.\n")


def round_cost(bench, engine, is_stalled):
    with stalled_router(bench) if is_stalled else contextlib.nullcontext():
        time.sleep(FILL_SECONDS)
        before, rounds = pacer_seconds(engine.pid), engine.metrics()["lateness_seconds_count"]
        time.sleep(MEASURED_SECONDS)
        spent = pacer_seconds(engine.pid) - before
        return spent * 1e6 / (engine.metrics()["lateness_seconds_count"] - rounds)


@contextlib.contextmanager
def stalled_router(bench):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(bench.directory / "engine.sock"))
        yield


def pacer_seconds(pid):
    """What its thread has been on a CPU (proc(5), schedstat)."""
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        if (task / "comm").read_text() == "pacer\n":
            return int((task / "schedstat").read_text().split()[0]) / 1e9
    raise harness.Failure("the engine has no pacer")
