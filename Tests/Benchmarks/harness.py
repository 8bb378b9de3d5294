"""What the benchmarks share: programs, media, processes and their figures, tables."""

import collections
import contextlib
import os
import pathlib
import platform
import re
import resource
import shutil
import signal
import socket
import statistics
import subprocess
import time
import urllib.error
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BINARIES = ROOT / ".build/release"
MEDIA = ROOT / ".build/benchmark-media"

PROGRAMS = ["limit", "engine-client", "pause-watch", "synthetic-engine", "websocket-load",
            "bare-router", "stopped-listeners", "soak-listeners"]
LIBAV = ["libavformat", "libavcodec", "libswresample", "libavutil", "opus"]

# A wake-up later than this without any load to blame: the machine itself stood still, and a latency measured
# meanwhile is not the program's. It is the target for lateness, so what is left can be judged against it.
PAUSE_LIMIT_US = 5000


# The same for what other programs take of the cores meanwhile, in cores: more, and the figure is partly theirs.
OTHERS_LIMIT_CORES = 0.1


class Failure(Exception):
    """A sentence for the one who ran the command."""


class Bench:
    """One run of the command: its options, its temporary directory, its programs."""

    def __init__(self, directory, options):
        self.directory = pathlib.Path(directory)
        self.quick = options.quick
        self.pairs = options.pairs
        self.sessions = options.sessions
        self.against = options.against
        self.packets = options.packets
        self.media_seconds = 20 if options.quick else 60
        self._build()

    def _build(self):
        flags = output("pkg-config", "--cflags", "--libs", *LIBAV).split()
        for name in PROGRAMS:
            subprocess.run(
                ["cc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-pthread", HERE / f"{name}.c", "-o",
                 self.program(name), *(flags if name == "limit" else [])], check=True)

    def program(self, name):
        return self.directory / name

    def binary(self, name):
        """AudioEngine or Router: a copy, so that a build meanwhile changes nothing in the middle of a run."""
        copy = self.program(name)
        if not copy.exists():
            if not (BINARIES / name).exists():
                raise Failure(f"{BINARIES / name} is missing: run `swift build -c release` first")
            shutil.copy2(BINARIES / name, copy)
            resources = f"antiphon_{name}Core.resources"  # yt-dlp's worker; the playground
            shutil.copytree(BINARIES / resources, self.directory / resources)
        return copy

    def media(self, kind, count, seconds=None):
        """The paths of `count` different files of music-like sound; made once and kept below .build."""
        seconds = seconds or self.media_seconds
        folder = MEDIA / f"{seconds}s"
        folder.mkdir(parents=True, exist_ok=True)
        paths = [folder / f"{index:02}.{kind}" for index in range(count)]
        for index, path in enumerate(paths):
            if not path.exists():
                make_media(path, index, seconds)
        return paths


def make_media(path, index, seconds):
    master = MEDIA / "master.wav"
    if not master.exists():
        tones = "0.3*sin(2*PI*(220+2*mod(t,30))*t)*(0.6+0.4*sin(2*PI*{}*t))+0.15*sin(2*PI*{}*t)"
        run_ffmpeg(
            master, "-f", "lavfi", "-i", "anoisesrc=d=200:c=pink:a=0.2:seed=1:r=44100", "-f", "lavfi", "-i",
            f"aevalsrc='{tones.format(2, 554)}|{tones.format(3, 831)}':d=200:s=44100", "-filter_complex",
            "[0]pan=stereo|c0=c0|c1=c0[n];[n][1]amix=2:normalize=0")
    codec = ["-c:a", "libmp3lame", "-b:a", "192k"]
    if path.suffix == ".opus":
        codec = ["-c:a", "libopus", "-b:a", "128k", "-ar", "48000"]
    elif path.suffix == ".flac":
        codec = ["-c:a", "flac"]
    # Each file begins elsewhere in the master, goes round in it, and is a little louder than the one before.
    run_ffmpeg(path, "-stream_loop", "-1", "-ss", str(2 * index % 180), "-t", str(seconds), "-i", master, "-af",
               f"volume={0.6 + 0.005 * index}", *codec)


def run_ffmpeg(path, *arguments):
    temporary = path.with_name("new-" + path.name)
    subprocess.run(["ffmpeg", "-v", "error", "-nostdin", "-y", *arguments, temporary], check=True)
    temporary.rename(path)


@contextlib.contextmanager
def process(*command, **options):
    """A child that does not outlive the block. What it says to standard error is shown if it dies on its own."""
    child = subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, text=True, **options)
    try:
        yield child
        if child.poll() not in (None, 0):
            raise Failure(f"{command[0]} ended with status {child.returncode}")
    finally:
        if child.poll() is None:
            child.send_signal(signal.SIGTERM)
            try:
                child.wait(10)
            except subprocess.TimeoutExpired:
                child.kill()
        child.wait()


def family(pid):
    """A process and what it has started: the engine's decoders and its extraction worker belong to it."""
    found = [pid]
    for children in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += [member for child in children.read_text().split() for member in family(int(child))]
    return found


def cpu_seconds(pid):
    """CPU time of a process and what it has started: all their threads, those that have ended too.

    Of a process it is the same sum as utime + stime in /proc/PID/stat, in nanoseconds rather than ticks.
    """
    own = sum(time.clock_gettime((~member << 3) | 2) for member in family(pid))
    ended = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[13:15]
    return own + sum(map(int, ended)) / os.sysconf("SC_CLK_TCK")


class OthersLoad:
    """What the rest of the machine does, from now on, while the processes under test run."""

    def __init__(self, *pids):
        self.pids = pids
        self.started, self.before = time.monotonic(), self._others()

    def _others(self):
        # user, nice, system, idle, iowait, irq, softirq, steal
        ticks = [int(field) for field in pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
        busy = (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return busy - time.process_time() - children.ru_utime - children.ru_stime - sum(map(cpu_seconds, self.pids))

    def cores(self):
        return max(0.0, (self._others() - self.before) / (time.monotonic() - self.started))


def verdict(run):
    """Whether a latency run may be believed."""
    quiet = run["worst_pause_us"] <= PAUSE_LIMIT_US and run["others"] <= OTHERS_LIMIT_CORES
    return [f"{run['worst_pause_us'] / 1000:.1f}", f"{run['others']:.2f}", "counts" if quiet else "void"]


VERDICT_HEAD = ["longest machine pause", "other programs, cores", ""]


def memory(pid):
    """(private, resident, of private written to) in MiB, of a process and what it has started."""
    sums = collections.Counter()
    for member in family(pid):
        text = pathlib.Path(f"/proc/{member}/smaps_rollup").read_text()
        sums.update({name: int(size) for name, size in re.findall(r"^(\w+):\s+(\d+) kB", text, re.MULTILINE)})
    clean, dirty = sums["Private_Clean"], sums["Private_Dirty"]
    return (clean + dirty) / 1024, sums["Rss"] / 1024, dirty / 1024


def wait_until(what, condition, seconds=15):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise Failure(f"{what} did not happen within {seconds} s")
        time.sleep(0.02)


def is_ready(port):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/ready", timeout=2) as answer:
            return answer.status == 200
    except (urllib.error.URLError, OSError):
        return False


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def output(*command):
    return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True).stdout


def machine():
    """The machine in a few lines, for anyone who reads the figures later."""
    cpu = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    kib = int(re.search(r"MemTotal:\s+(\d+)", pathlib.Path("/proc/meminfo").read_text())[1])
    system = platform.freedesktop_os_release()["PRETTY_NAME"]
    yield f"* {cpu[1] if cpu else platform.machine()}, {os.cpu_count()} cores, {kib / 2**20:.1f} GiB"
    yield f"* {system}, Linux {platform.release()}"
    yield f"* {output('ffmpeg', '-version').splitlines()[0].split(' Copyright')[0]}, " \
          f"libopus {output('pkg-config', '--modversion', 'opus').strip()}" \
          + (f", Node {output('node', '--version').strip()}" if shutil.which("node") else "")
    yield f"* load average before: {load_average()} (for figures to keep: a quiet machine, below 0.3)"


def load_average():
    return f"{os.getloadavg()[0]:.2f}"


def table(title, head, rows):
    """Prints a Markdown table; the median of several figures stands for them."""
    print(f"## {title}\n\n| {' | '.join(head)} |\n|{'---|' * len(head)}")
    for row in rows:
        print(f"| {' | '.join(row)} |")
    print(flush=True)


def median(rows, *path):
    def value(row):
        for key in path:
            row = row[key]
        return row
    return statistics.median(value(row) for row in rows)


def point(values, share):
    """A percentile of measurements that were all kept."""
    return sorted(values)[round(share * (len(values) - 1))]


def spread(values):
    """The median, with the smallest and largest where there are several."""
    text = f"{statistics.median(values):.2f}"
    return text if len(values) == 1 else f"{text} ({min(values):.2f}–{max(values):.2f})"


def progress(text):
    if os.isatty(2):
        print(f"\r\033[K{text}", end="", file=os.sys.stderr, flush=True)
