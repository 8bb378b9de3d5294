"""Command to first packet at a WebSocket client: cold and warm, by source, with the share of each stage."""

import collections
import sys

import harness
import services
from harness import point, progress

# The web server of the end-to-end tests.
sys.path.append(str(harness.ROOT / "Tests/EndToEnd"))
from page_server import PageServer

STAGES = ["queued", "extract", "resolve", "connect", "probe", "first_packet", "total"]
FIRST = "the first play of an engine, cold"


def start(bench):
    """Every round has a fresh engine that plays each source once cold, and once when it is in the cache."""
    rounds = 8 if bench.quick else 28
    flags = ["--allow-network", "127.0.0.0/8"]
    if (python := harness.ROOT / ".venv/bin/python").exists():
        flags += ["--yt-dlp-python", python]
    plays = collections.defaultdict(list)
    others = harness.OthersLoad()
    with PageServer() as site, services.PauseWatch(bench) as watch:
        sources = publish(bench, site)
        files = [name for name in sources if not name.startswith("page")]
        for number in range(rounds):
            progress(f"start, round {number + 1} of {rounds}")
            turn = number % len(files)
            with services.antiphon(bench, bench.media("mp3", 1)[0].parent, *flags) as (engine, router):
                order = [*files[turn:], *files[:turn], *(name for name in sources if name not in files)]
                for place, name in enumerate(order):
                    cold = FIRST if place == 0 else f"{name}, cold"
                    with services.Listener(router, f"s{place}") as listener:
                        plays[cold].append(play(listener, watch, sources[name]))
                        engine.wait_produced()
                        stop(listener)
                        plays[f"{name}, warm"].append(play(listener, watch, sources[name]))
                        stop(listener)
    progress("")
    rows = [row(name, plays[name]) for name in [FIRST, *(f"{name}, {how}" for how in ("cold", "warm") for name in sources)]]
    harness.table(f"Command to first packet at the WebSocket client, ms; {rounds} engines",
                  ["source", "plays (void)", "p50", "p90", *STAGES, "from there to the client"], rows)
    print(f"Other programs meanwhile: {others.cores():.2f} cores.\n")


def publish(bench, site):
    """The sources by name. The page that comes first starts yt-dlp's worker; the second finds it at work."""
    flac, mp3, opus = (bench.media(kind, 1)[0] for kind in ("flac", "mp3", "opus"))
    sound = mp3.read_bytes()

    def page(number):
        media = site.add(f"/page-{number}.mp3", lambda asked: asked.media(sound))
        return site.add(f"/page-{number}", lambda asked: asked.page(f'<title>A page</title><audio src="{media}"></audio>'))

    return {"FLAC file": f"media:{flac.name}", "MP3 file": f"media:{mp3.name}", "Opus file": f"media:{opus.name}",
            "MP3 over HTTP": site.add("/direct.mp3", lambda asked: asked.media(sound)),
            "page, and yt-dlp's start": page(1), "page": page(2)}


def play(listener, watch, url):
    watch.worst_us()
    asked = listener.send("play", url=url)
    _, ready = listener.wait("ready")
    arrived, _ = listener.wait("packet")
    return {"client": (arrived - asked) * 1000, "pause_us": watch.worst_us(), **ready["timings_ms"]}


def stop(listener):
    listener.send("stop")
    listener.wait("ended")


def row(name, plays):
    """A play during which the machine stood still says nothing."""
    good = [play for play in plays if play["pause_us"] <= harness.PAUSE_LIMIT_US] or plays
    client = [play["client"] for play in good]
    # A stage that did not happen is absent; from the cache, those of the production that filled it are told again.
    shown = ["total"] if name.endswith("warm") else STAGES
    stages = [[play[stage] for play in good if stage in shown and stage in play] for stage in STAGES]
    rest = [play["client"] - play["total"] for play in good]
    return [name, f"{len(plays)} ({sum(play not in good for play in plays)})", f"{point(client, 0.5):.1f}",
            f"{point(client, 0.9):.1f}", *(f"{point(times, 0.5):.1f}" if times else "" for times in stages),
            f"{point(rest, 0.5):.1f}"]
