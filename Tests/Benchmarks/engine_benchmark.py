"""AudioEngine: transcoding against ffmpeg processes and the bare loop, passing through, and lateness."""

import json
import os
import statistics
import subprocess
import threading
import time

import harness
import services
from harness import median, progress, spread

CORES = os.cpu_count()


def limit(bench):
    """The bare loop alone: what one second of audio costs on this machine, one and all cores at work."""
    rows = []
    for processes in sorted({1, CORES}):
        paths = bench.media("mp3", processes)
        runs = [bare_loop(bench, paths) for _ in range(bench.pairs)]
        rows.append([str(processes), spread([run * 1000 for run in runs]), f"{1 / median(runs):.0f}"])
    harness.table("The bare loop: demux, decode, resample, encode",
                  ["processes at once", "CPU ms per second of audio", "seconds of audio per second of core"], rows)


def transcoding(bench):
    """N sessions of N different MP3 files against N `ffmpeg -re` and against the bare loop."""
    cost, lateness = [], []
    for count in bench.sessions or [1, 10, 60]:
        paths = bench.media("mp3", count)
        kinds = {"engine": lambda: play(bench, paths, count), "ffmpeg": lambda: ffmpeg(paths),
                 "limit": lambda: bare_loop(bench, paths[:10])}
        runs = {kind: [] for kind in kinds}
        for pair in range(bench.pairs):
            for kind in list(kinds)[::1 if pair % 2 == 0 else -1]:
                progress(f"transcoding, {count} sessions, pair {pair + 1}: {kind}")
                runs[kind].append(kinds[kind]())
        progress("")
        cost.append(cost_row(count, runs))
        lateness += [lateness_row(f"{count} transcoding", run) for run in runs["engine"]]
    harness.table("Transcoding: CPU ms per second of audio, whole files",
                  ["sessions", "engine", "bare loop", "engine / bare loop", "ffmpeg -re", "engine / ffmpeg",
                   "ffmpeg private MiB each"], cost)

    count = max(bench.sessions or [60])
    progress(f"memory, {count} sessions")
    runs = [play(bench, bench.media("mp3", count), count, "--cache-bytes", "0") for _ in range(bench.pairs)]
    progress("")
    harness.table("Transcoding with --cache-bytes 0: read-ahead 15 s, memory",
                  ["sessions", *MEMORY_HEAD, "CPU ms per second of audio"],
                  [[str(count), *memory_row(run, count), f"{run['cost'] * 1000:.2f}"] for run in runs])
    lateness += [lateness_row(f"{count} transcoding, no cache", run) for run in runs]
    print_lateness(lateness)


def passthrough(bench):
    """Ogg Opus passed on unaltered: 60 files, and 1,000 sessions that share them."""
    rows, lateness = [], []
    paths = bench.media("opus", 60)
    for count in bench.sessions or [60, 1000]:
        for pair in range(bench.pairs):
            progress(f"passthrough, {count} sessions, run {pair + 1}")
            run = play(bench, paths, count)
            share = run["cost"]
            rows.append([f"{count:,}", f"{share * 1000:.3f}", f"{1 / share:,.0f}", *memory_row(run, count)])
            lateness.append(lateness_row(f"{count:,} passthrough", run))
    progress("")
    harness.table("Passing Opus through",
                  ["sessions", "CPU ms per second of audio", "sessions per core, extrapolated", *MEMORY_HEAD], rows)
    print_lateness(lateness)


def play(bench, paths, count, *flags, prime=False, may_refuse=False, binaries=None):
    """Plays `count` sessions of `paths` to their end; the engine's CPU, memory and lateness for it.

    With `prime`, the one file is in the cache before. `binaries` is where another build of the engine lies.
    """
    with services.engine(bench, paths[0].parent, *flags, binaries=binaries) as engine:
        if prime:
            engine.request("POST", "/session/prime/play", url=f"media:{paths[0].name}")
            engine.wait_produced()
            engine.request("POST", "/session/prime/stop")
        time.sleep(1.5)
        idle = harness.memory(engine.pid)
        before, others = harness.cpu_seconds(engine.pid), harness.OthersLoad(engine.pid)
        client = [bench.program("engine-client"), bench.directory / "engine.sock", count, len(paths),
                  f"media:%02d{paths[0].suffix}", max(1000, count // 5)]
        with harness.process(*client, stderr=subprocess.DEVNULL if may_refuse else None) as reader:
            if reader.stdout.readline() != "playing\n":
                raise harness.Failure(f"not every session sounds; see {bench.directory}/engine.log")
            samples = sample_memory(engine.pid, reader)
            result = json.loads(reader.stdout.read())
            reader.wait()
        cpu = harness.cpu_seconds(engine.pid) - before
        result["others"], result["metrics"] = others.cores(), engine.metrics()
    steady = samples[len(samples) // 8:len(samples) // 2] or samples
    result.update(idle=idle, memory=[statistics.median(kind) for kind in zip(*steady)],
                  peak=[max(kind) for kind in zip(*samples)], cpu=cpu, cost=cpu / result["audio_seconds"])
    return result


def sample_memory(pid, reader):
    """Two looks a second until the reader is done."""
    samples = []
    finished = threading.Event()
    threading.Thread(target=lambda: (reader.wait(), finished.set()), daemon=True).start()
    while not samples or not finished.wait(0.5):
        samples.append(harness.memory(pid))
    return samples


def ffmpeg(paths):
    """One process a file, in real time, as the seeds have it."""
    children = [
        subprocess.Popen(["ffmpeg", "-v", "error", "-nostdin", "-re", "-i", path, "-c:a", "libopus", "-b:a", "128k",
                          "-f", "ogg", "pipe:"], stdout=subprocess.DEVNULL) for path in paths]
    time.sleep(8)
    private = sum(harness.memory(child.pid)[0] for child in children) / len(children)
    cpu = 0.0
    for child in children:
        _, child.returncode, usage = os.wait4(child.pid, 0)
        cpu += usage.ru_utime + usage.ru_stime
    return {"cost": cpu / sum(map(duration, paths)), "private": private}


def duration(path):
    return float(harness.output("ffprobe", "-v", "error", "-show_entries", "format=duration", "-of", "csv=p=0", path))


def bare_loop(bench, paths):
    """CPU seconds per second of audio, on as many cores as there are files."""
    shares = [paths[core::CORES] for core in range(CORES)]
    children = [subprocess.Popen([bench.program("limit"), *share], stdout=subprocess.PIPE)
                for share in shares if share]
    results = [json.loads(child.communicate()[0]) for child in children]
    return sum(each["cpu_seconds"] for each in results) / sum(each["audio_seconds"] for each in results)


def cost_row(count, runs):
    engine, process = ([run["cost"] * 1000 for run in runs[kind]] for kind in ("engine", "ffmpeg"))
    bare = [run * 1000 for run in runs["limit"]]
    return [str(count), spread(engine), spread(bare), spread([a / b for a, b in zip(engine, bare)]), spread(process),
            spread([a / b for a, b in zip(engine, process)]), f"{median(runs['ffmpeg'], 'private'):.1f}"]


MEMORY_HEAD = ["idle private MiB", "private MiB", "private MiB a session (peak)", "of it written to (peak)",
               "resident MiB"]


def memory_row(run, count):
    def share(kind):
        each = [(run[when][kind] - run["idle"][kind]) / count for when in ("memory", "peak")]
        return f"{each[0]:.3f} ({each[1]:.3f})"
    return [f"{run['idle'][0]:.1f}", f"{run['memory'][0]:.1f}", share(0), share(2), f"{run['memory'][1]:.1f}"]


def lateness_row(name, run):
    late = run["lateness_us"]
    figures = [f"{late[point] / 1000:.2f}" for point in ("p50", "p99", "p999", "max")]
    losses = " / ".join(str(run[key]) for key in ("dropped", "buffering", "rebased", "errors"))
    return [name, *figures, f"{run['start_us']['p50'] / 1000:.0f}", losses, *harness.verdict(run)]


def print_lateness(rows):
    harness.table("Lateness of packets at the client, ms; each run",
                  ["sessions", "p50", "p99", "p99.9", "worst", "play to playing, p50",
                   "dropped / buffering / rebased / errors", *harness.VERDICT_HEAD], rows)
