"""Small files that ask for much, two at once and in a queue: the others' sound goes on, and new tracks begin."""

import asyncio
import contextlib
import itertools
import os
import statistics
import time

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from analysis import assert_unbroken_tone
from bombs import BOMBS, make_bomb
from client import connect_to_engine, listen
from containers import chained
from decoders import decoders
from figures import Figures, Footprint
from inbox import assert_unbroken
from media import FLAC, tone_clip
from opus import FRAME, decode
from outcome import outcome
from processes import Antiphon
from signals import AMPLITUDE

TONES = {frequency: tone_clip(frequency, 240, FLAC, 44_100) for frequency in (440, 620)}
HONEST = tone_clip(880, 3, FLAC)
ENOUGH_PACKETS = 25
#: Packets until an encoder has settled.
ONSET = 5

#: It takes all cores for many seconds, in which tests beside it would starve what has to be heard here.
HEAVIEST = "indexes.avi"
#: Two of each of these at once; of any other, one shows what it does to a decoder.
PAIRED = (HEAVIEST, "squeezed.mp3", "index.m4a", "seektable.flac", "streams.mka", "laces.mka", "chained.ogg")
#: So many share two who listen.
OTHERS = [name for name in BOMBS if name != HEAVIEST]
GROUPS = [OTHERS[first : first + 6] for first in range(0, len(OTHERS), 6)]
#: One of each kind of container, whatever it ends in: what each does to a decoder is tried by itself.
QUEUED = ("squeezed.mp3", "index.m4a", "seektable.flac", "streams.mka", "chained.ogg", "adpcm.wav", "packets.caf")
QUEUED += ("seek-table.tta", "seek-table.ape", "seek-table.mpc")

ENGINE_MEBIBYTES = 400
#: `DecoderProcessMain.memoryByteCount`, and what its libraries have touched.
DECODER_MEBIBYTES = 768 + 64
#: Of all: each shared one may be full at once, and each bomb may have one to itself.
SHARED_DECODERS = os.cpu_count() + 1
#: Of most starts, and generous, since this is no test of time: what is printed is to be looked at.
START_SECONDS = 3.0


@pytest.fixture(scope="module")
def antiphon(tmp_path_factory, media):
    media.make(*TONES.values(), HONEST)
    # Little is read ahead, so that all are produced all the time.
    options = ("--cache-bytes", "0", "--read-ahead-ms", "3000")
    folder = tmp_path_factory.mktemp("bombs")
    with Antiphon(folder, media.root, engine_options=options, allow=("127.0.0.1/32",)) as running:
        yield running


@pytest.fixture(scope="module")
def starts():
    """How long honest tracks have taken to begin, in seconds."""
    taken: list[float] = []
    yield taken
    if taken:
        print(f"\n{len(taken)} honest tracks began beside bombs: median {statistics.median(taken):.3f} s, ", end="")
        print(f"nine of ten within {sorted(taken)[int(len(taken) * 0.9)]:.3f} s, slowest {max(taken):.3f} s")


class Beside:
    """Two who listen, somebody who begins new tracks, and what all processes have taken meanwhile."""

    def __init__(self, antiphon: Antiphon, media, new_session, starts: list[float]) -> None:
        self.figures = Figures()
        self._antiphon = antiphon
        self._media = media
        self._new_session = new_session
        self._starts = starts
        self._sum = self._largest = 0.0

    async def look(self) -> None:
        while True:
            taken = [0.0]
            for pid in decoders(self._antiphon.engine.pid):
                with contextlib.suppress(OSError):
                    taken.append(Footprint(pid).mebibytes())
            self._sum, self._largest = max(self._sum, sum(taken)), max(self._largest, *taken)
            await asyncio.sleep(0.05)

    async def begin_tracks(self) -> None:
        """One after the other, each of a file that nobody has played."""
        while True:
            async with listen(self._antiphon.router.url, self._new_session()) as listener:
                begun = time.monotonic()
                await listener.play(self._media.fresh(HONEST))
                await listener.wait_packets(1)
                self._starts.append(time.monotonic() - begun)
                await listener.command("stop")
            await asyncio.sleep(0.2)

    def hold(self, bombs: int, pid: int, listeners: dict, starts: int) -> None:
        hold = self.figures.hold
        hold("engine, MiB", Footprint(pid).peak_mebibytes(), at_most=ENGINE_MEBIBYTES)
        hold("largest decoder, MiB", self._largest, at_most=DECODER_MEBIBYTES)
        hold("all decoders, MiB", self._sum, at_most=(SHARED_DECODERS + bombs) * DECODER_MEBIBYTES)
        hold("honest tracks begun", len(self._starts) - starts, at_least=1)
        hold("median start, s", statistics.median(self._starts[starts:] or [0]), at_most=START_SECONDS)
        hold("the engine is another process", self._antiphon.engine.pid != pid, at_most=0)
        hold("the engine runs", self._antiphon.engine.is_running, at_least=1)
        for frequency, (listener, begun) in listeners.items():
            what = f"the {frequency} Hz listener"
            with self.figures.check(what):
                packets = listener.packets()
                assert_unbroken(packets, what)
                for kind in ("dropped", "buffering", "ended", "error"):
                    # What is heard of a track's own beginning is not the bombs'.
                    events = listener.events(kind, begun)
                    assert not events, f"{what} got {events[:3]}"
                sound = decode(packet.audio for packet in packets)[ONSET * FRAME :, 0]
                assert_unbroken_tone(sound, frequency, AMPLITUDE, what)


@pytest.fixture
def beside(antiphon, media, new_session, starts):
    """What goes on beside so many bombs at once, and is judged at the end."""

    @contextlib.asynccontextmanager
    async def around(bombs: int):
        pid, before = antiphon.engine.pid, len(starts)
        Footprint(pid).reset()
        others = Beside(antiphon, media, new_session, starts)
        async with contextlib.AsyncExitStack() as stack:
            listeners = {}
            for frequency, clip in TONES.items():
                listener = await stack.enter_async_context(listen(antiphon.router.url, new_session()))
                await listener.play(clip.url)
                await listener.wait_packets(25)
                listeners[frequency] = listener, listener.mark()
            tasks = [asyncio.create_task(work()) for work in (others.look, others.begin_tracks)]
            try:
                yield
                # What goes wrong at the last is heard when what was read ahead is at its end.
                await asyncio.gather(*(each.wait_packets(160, since=each.mark()) for each, _ in listeners.values()))
            finally:
                for task in tasks:
                    task.cancel()
                ends = await asyncio.gather(*tasks, return_exceptions=True)
            others.hold(bombs, pid, listeners, before)
            with others.figures.check("beside"):
                for end in ends:
                    assert isinstance(end, asyncio.CancelledError), repr(end)
            others.figures.judge()

    return around


async def blow(antiphon, session: str, url: str) -> None:
    """Plays it; that must end in sound or in an error that says why."""
    begun = time.monotonic()
    async with connect_to_engine(antiphon.socket) as engine:
        came = await outcome(engine, session, url, ENOUGH_PACKETS, also=("overloaded",))
    print(f"\n{url}: {came} after {time.monotonic() - begun:.1f} s", end="")


@pytest.mark.parametrize("names", [pytest.param([HEAVIEST], marks=pytest.mark.measures), *GROUPS], ids=" ".join)
async def test_one_or_two_at_once(antiphon, media, new_session, beside, names):
    """Some beside themselves: two that ask for the same at the same moment."""
    # Before anybody listens: to write some of them takes seconds.
    pairs = [
        (make_bomb(media, name), *([media.alias(name, f"other-{name}")] if name in PAIRED else [])) for name in names
    ]
    async with beside(2):
        for urls in pairs:
            await asyncio.gather(*(blow(antiphon, new_session(), url) for url in urls))


async def test_a_queue_of_nothing_else(antiphon, media, new_session, beside):
    """And then an honest track, which plays."""
    urls = [make_bomb(media, name) for name in QUEUED]
    last = media.fresh(HONEST)
    async with beside(1), listen(antiphon.router.url, new_session()) as listener:
        await listener.command("queue_add", tracks=[{"url": url} for url in [*urls, last]])

        def current() -> str | None:
            told = [event["queue"]["current"] for event in listener.events("queue")]
            return told[-1] and told[-1]["url"]

        while (now := current()) != last:
            since = listener.mark()
            await listener.wait(
                lambda: current() != now or len(listener.packets(since)) >= ENOUGH_PACKETS, f"sound or an end of {now}"
            )
            if current() == now:
                await listener.command("skip")
        await listener.wait_packets(100, since=listener.mark())


async def test_chained_files_without_end_over_http(antiphon, new_session, beside):
    links = b"".join(itertools.islice(chained(), 300))

    async def serve(question: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse(headers={"Content-Type": "audio/ogg"})
        await answer.prepare(question)
        with contextlib.suppress(ConnectionError):
            while True:
                await answer.write(links)
                # A reader that is fast enough never makes a write wait, and the listeners are read by this loop too.
                await asyncio.sleep(0)
        return answer

    server = TestServer(web.Application())
    server.app.router.add_get("/endless.ogg", serve)
    async with server, beside(1):
        await blow(antiphon, new_session(), str(server.make_url("/endless.ogg")))
