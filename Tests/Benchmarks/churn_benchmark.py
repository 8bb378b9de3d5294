"""Sixty sessions under everything people do at once: how late the Router's packets come, and what one who only
listens hears of it."""

import array
import contextlib
import random
import re
import subprocess
import threading
import time
import urllib.error
from concurrent.futures import ThreadPoolExecutor

import harness
import services
from harness import point, progress

SESSIONS, COMMANDS_A_SECOND = 60, 18
SECONDS, QUICK_SECONDS = 60, 15
FILES, FILE_SECONDS = 20, 120
SEED = 22
#: How often each is asked for.
COMMANDS = {"play": 4, "seek": 4, "volume": 4, "skip": 2, "pause": 1, "resume": 1, "listen": 4}
#: A listener that comes stays for so long, and reads nothing: it takes nothing of the machine.
STAY_SECONDS = (0.2, 2)
FRAME = 2 * 960
#: A tone of -9 dB: a frame that is never louder than this is silent.
QUIET = 1_000


def churn(bench):
    """Lateness at the Router, restarts of the schedule, a bystander's sound and both processes' memory."""
    seconds = QUICK_SECONDS if bench.quick else SECONDS
    paths = bench.media("mp3", FILES, FILE_SECONDS)
    tone = paths[0].parent / "tone.opus"
    if not tone.exists():
        harness.run_ffmpeg(tone, "-f", "lavfi", "-i", "sine=523:duration=600", "-af", "volume=9dB", "-c:a", "libopus",
                           "-ac", "2")
    rows = []
    with services.PauseWatch(bench) as watch:
        for number in range(bench.pairs):
            progress(f"churn, run {number + 1} of {bench.pairs}")
            # No room in the cache: whatever is played anew is decoded and encoded anew, and nothing is refused.
            flags = ("--cache-bytes", "0", "--transcode-cpu-share", "100")
            with services.antiphon(bench, tone.parent, *flags) as (engine, router):
                rows.append(Churn(bench, engine, router, paths, SEED + number).run(seconds, watch))
    progress("")
    harness.table(
        f"Churn: {SESSIONS} sessions, {COMMANDS_A_SECOND} commands a second, {seconds} s",
        ["commands (refused)", "packets at the Router", "over 5 ms late", "20", "50", "100", "p99.9 below, ms",
         "rebased", "without fade", "bystander: largest gap, ms", "p99.9", "silent frames", "engine MiB", "Router MiB",
         "engine, cores", *harness.VERDICT_HEAD], rows)


class Churn:
    """One run."""

    def __init__(self, bench, engine, router, paths, seed):
        self._bench, self._engine, self._router, self._paths = bench, engine, router, paths
        self._dice = random.Random(seed)
        self._sent, self._refused = 0, 0
        self._pool = ThreadPoolExecutor(32)

    def run(self, seconds, watch):
        with Bystander(self._bench, self._router) as bystander:
            for number in range(SESSIONS):
                self._do(self._command("play", number))
            time.sleep(3)
            before, rebases = lateness(self._router), self._engine.metrics()
            cpu, others = harness.cpu_seconds(self._engine.pid), harness.OthersLoad(self._engine.pid, self._router.pid)
            self._sent = self._refused = 0
            watch.worst_us()
            bystander.begin()
            started = time.monotonic()
            for number in range(seconds * COMMANDS_A_SECOND):
                time.sleep(max(0, started + number / COMMANDS_A_SECOND - time.monotonic()))
                kind = self._dice.choices(list(COMMANDS), COMMANDS.values())[0]
                self._pool.submit(self._do, self._command(kind, self._dice.randrange(SESSIONS)))
            gaps, silent = bystander.end()
            after, figures = lateness(self._router), self._engine.metrics()
            late = {bound: after[bound] - before[bound] for bound in after}
            run = {"worst_pause_us": watch.worst_us(), "others": others.cores()}
            cores = (harness.cpu_seconds(self._engine.pid) - cpu) / seconds
        self._pool.shutdown(wait=False, cancel_futures=True)
        total = late["+Inf"]

        def over(bound):
            return f"{100 * (total - late[bound]) / max(1, total):.2f} %"

        def change(name):
            return f"{figures[name] - rebases[name]:.0f}"

        return [
            f"{self._sent} ({self._refused})", f"{total:.0f}", over("0.005"), over("0.02"), over("0.05"), over("0.1"),
            percentile(late, 0.999), change("rebases_total"),
            f"{change('cuts_without_fade_total')} of {change('cuts_total')}", f"{gaps[-1]:.1f}",
            f"{point(gaps, 0.999):.1f}", str(silent), *(f"{harness.memory(one.pid)[1]:.0f}" for one in
                                                        (self._engine, self._router)),
            f"{cores:.2f}", *harness.verdict(run)]

    def _command(self, kind, number):
        """(kind, the session, its requests or how long a listener stays); all of it from the one seed."""
        start = self._dice.randrange(FILE_SECONDS - 60) * 1_000
        track = {"url": f"media:{self._dice.choice(self._paths).name}", "start_ms": start}
        requests = {
            "play": [("play", track)],
            "seek": [("seek", {"position_ms": start})],
            "volume": [("volume", {"level": self._dice.randrange(2, 8) / 4})],
            "skip": [("queue", track), ("skip", {})],
            "listen": self._dice.uniform(*STAY_SECONDS),
        }
        return kind, f"c{number}", requests.get(kind, [(kind, {})])

    def _do(self, command):
        kind, session, requests = command
        self._sent += 1
        try:
            if kind == "listen":
                with services.Listener(self._router, session):
                    time.sleep(requests)
                return
            for path, body in requests:
                self._router.request("POST", f"/api/v1/sessions/{session}/{path}", **body)
        except (urllib.error.HTTPError, harness.Failure, OSError):
            # One that cannot be seeked because it is being opened, or resumed because it plays.
            self._refused += 1


class Bystander:
    """Who only listens to a tone: when its packets come, and what a player decodes of it."""

    def __init__(self, bench, router):
        self._router, self._sound = router, bench.directory / "bystander.raw"
        self._arrivals, self._stopped = [], False

    def __enter__(self):
        self._router.request("POST", "/api/v1/sessions/bystander/play", url="media:tone.opus", loop=True)
        self._listener = services.Listener(self._router, "bystander")
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()
        address = f"http://127.0.0.1:{self._router.port}/listen/bystander.ogg"
        self._player = subprocess.Popen(
            ["ffmpeg", "-v", "error", "-nostdin", "-y", "-i", address, "-f", "s16le", "-ar", "48000", "-ac", "2",
             self._sound])
        return self

    def __exit__(self, *_):
        self._stopped = True
        self._player.terminate()
        self._player.wait()

    def begin(self):
        self._arrivals.clear()

    def end(self):
        """Sorted times between its packets, in ms, and how many frames of its sound are silent."""
        arrivals = list(self._arrivals)
        self._player.terminate()
        self._player.wait()
        sound = array.array("h", self._sound.read_bytes()[: self._sound.stat().st_size // (2 * FRAME) * 2 * FRAME])
        # The first frame is a decoder's that has just begun.
        frames = [sound[at:at + FRAME] for at in range(FRAME, len(sound), FRAME)]
        silent = sum(max(frame) < QUIET for frame in frames)
        return sorted((after - before) * 1_000 for before, after in zip(arrivals, arrivals[1:])), silent

    def _read(self):
        with contextlib.suppress(harness.Failure, OSError), self._listener:
            while not self._stopped:
                self._arrivals.append(self._listener.wait("packet")[0])


def lateness(router):
    """How many packets were no later than each bound, in seconds."""
    found = re.findall(r'^antiphon_router_packet_lateness_seconds_bucket\{le="([^"]+)"\} (\S+)$',
                       router.request("GET", "/metrics"), re.MULTILINE)
    return {bound: float(count) for bound, count in found}


def percentile(late, share):
    """The lowest bound that so many were within."""
    for bound, count in late.items():
        if count >= share * late["+Inf"]:
            return f"{float(bound) * 1_000:g}"
    raise harness.Failure("the Router counted no packet")
