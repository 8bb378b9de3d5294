"""Another build of the engine against this one, in turn, in one run: what a change costs."""

import harness
from engine_benchmark import play
from harness import median, progress, spread


def transcoding(bench):
    """CPU and memory of N sessions of N different MP3 files, whole files."""
    if not bench.against:
        raise harness.Failure("versus compares with another build: --against FOLDER, which holds its AudioEngine")
    rows = []
    for count in bench.sessions or [1, 10, 60]:
        paths = bench.media("mp3", count)
        runs = {"before": [], "now": []}
        for pair in range(bench.pairs):
            for kind in list(runs)[::1 if pair % 2 == 0 else -1]:
                progress(f"{count} sessions, pair {pair + 1}: {kind}")
                # Kept short of the cache, memory shows what is at work rather than what was made.
                run = play(bench, paths, count, "--cache-bytes", "0",
                           binaries=bench.against if kind == "before" else None)
                run["idle_mebibytes"] = run["idle"][0]
                run["session"] = (run["memory"][0] - run["idle"][0]) / count
                runs[kind].append(run)
        before, now = ([run["cost"] * 1000 for run in runs[kind]] for kind in runs)
        rows.append([str(count), spread(before), spread(now), spread([b / a for a, b in zip(before, now)]),
                     *(f"{median(runs[kind], figure):.2f}" for figure in ("idle_mebibytes", "session") for kind in runs)])
    progress("")
    harness.table(f"This build against {bench.against}: CPU ms per second of audio, private memory in MiB",
                  ["sessions", "before", "now", "now / before", "idle before", "idle now", "a session before",
                   "a session now"], rows)
