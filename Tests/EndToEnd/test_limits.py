"""What happens where a limit is reached: a clear error for the one who asked, and nothing for anyone else."""

import array
import asyncio
import fcntl
import json
import re
import socket
import termios

import aiohttp
import pytest

from client import connect_to_engine, listen, request
from frozen import threads
from hearing import until
from inbox import PATIENCE_SECONDS, assert_unbroken
from media import FLAC, MP3_CBR, OGG_OPUS, WAV, http_url, tone_clip
from metrics import figure, wait_figure
from processes import Antiphon
from web_server import WebServer

PASSTHROUGH = tone_clip(440, 20, OGG_OPUS)
SHORT = tone_clip(550, 3, FLAC)
LONG = tone_clip(660, 240, FLAC)
LONG_MP3 = tone_clip(770, 240, MP3_CBR, 44_100)


async def refused(url: str, body: dict) -> tuple[int, dict, str | None]:
    """A POST's status, body and Retry-After."""
    async with aiohttp.ClientSession() as http, http.post(url, json=body) as response:
        return response.status, await response.json(), response.headers.get("Retry-After")


# MARK: The worker pool


#: Of one client, as docs/limits-and-quality.md says.
CLIENT_THREADS = 128


async def test_an_exhausted_pool_says_so_and_recovers(tmp_path, media, new_session):
    """A client whose every thread waits for a server that never answers, and one place in its queue."""
    media.path(PASSTHROUGH)
    options = ("--max-workers", "1", "--max-queued-jobs", "1", "--source-timeout-seconds", "60")
    with (
        WebServer(media.root) as site,
        Antiphon(tmp_path, media.root, allow=("127.0.0.1/32",), engine_options=options) as antiphon,
    ):
        async with connect_to_engine(antiphon.socket) as engine:
            holders, waiter = [new_session() for _ in range(CLIENT_THREADS)], new_session()
            waiting_for_network = "antiphon_engine_productions_waiting"
            # Each at a volume of its own, or they would be one.
            for number, holder in enumerate(holders):
                volume = (number + 1) / CLIENT_THREADS
                hang = {"session_id": holder, "url": f"{site.url}/hang", "volume": volume}
                await engine.send(type="play", client="greedy", **hang)
                await wait_figure(antiphon.engine, waiting_for_network, lambda n, want=number + 1: n == want, "more")
            patient = {"session_id": waiter, "url": PASSTHROUGH.url, "volume": 0.5}
            waiting = await engine.send(type="play", client="greedy", **patient)
            await wait_figure(antiphon.engine, "antiphon_engine_jobs_queued", lambda n: n == 1, "1")
            url = http_url(f"{site.url}/files", "other.opus")
            answer = await engine.ask(type="play", session_id=new_session(), url=url, client="greedy")
            assert answer["type"] == "error" and answer["code"] == "workers_exhausted", answer
            assert "1 workers" in answer["message"] and "--max-workers" in answer["hint"], answer
            # Others do not notice.
            url = f"{antiphon.engine.url}/session/{new_session()}/play"
            assert (await request("POST", url, {"url": PASSTHROUGH.url})).status == 200
            async with listen(antiphon.router.url, new_session()) as listener:
                await listener.play(PASSTHROUGH.url)
                await listener.wait_packets(20)
            await engine.command(type="stop", session_id=holders[0])
            ready = await engine.wait_answer(waiting)
            assert ready["type"] == "ready", ready


# MARK: Sessions


async def test_one_session_too_many_is_refused_and_the_others_play_on(tmp_path, media, new_session):
    media.path(PASSTHROUGH)
    with Antiphon(tmp_path, media.root, engine_options=("--max-sessions", "2"), router=False) as antiphon:
        async with connect_to_engine(antiphon.socket) as engine:
            first, second, third = (new_session() for _ in range(3))
            for session in (first, second):
                await engine.command(type="play", session_id=session, url=PASSTHROUGH.url)
            since = engine.mark()
            answer = await engine.ask(type="play", session_id=third, url=PASSTHROUGH.url)
            assert answer["type"] == "error" and answer["code"] == "too_many_sessions", answer
            assert "2 sessions" in answer["message"] and "--max-sessions" in answer["hint"], answer
            endpoint = f"{antiphon.engine.url}/session/{third}/play"
            assert (await request("POST", endpoint, {"url": PASSTHROUGH.url})).status == 503
            # Another track in a session that there is needs no place.
            await engine.command(type="play", session_id=first, url=PASSTHROUGH.url, volume=0.5)
            await engine.wait_packets(25, since=engine.mark(), session=first)
            assert len(engine.packets(since, session=second)) >= 25
            assert not engine.packets(session=third)
            assert_no_gap(engine, [second])
            await engine.command(type="stop", session_id=second)
            await engine.command(type="play", session_id=third, url=PASSTHROUGH.url)
            await engine.wait_packets(10, session=third)


async def test_what_sessions_held_is_freed_with_them(tmp_path, media, new_session):
    """A timeline where no cache keeps it for another; and each of twelve tracks' threads. Half a minute after the last
    there is none, and the next track plays."""
    media.make(LONG, PASSTHROUGH)
    with (
        WebServer(media.root) as site,
        Antiphon(
            tmp_path, media.root, allow=("127.0.0.1/32",), engine_options=("--cache-bytes", "0"), router=False
        ) as antiphon,
    ):

        async def wait_threads(count: int) -> None:
            await until(lambda: len(threads(antiphon.engine.pid, "worker")) == count, f"{count} workers")

        async with connect_to_engine(antiphon.socket) as engine:
            session = new_session()
            await engine.command(type="play", session_id=session, url=LONG.url)
            await engine.wait_packets(20, session=session)
            assert await figure(antiphon.engine, "antiphon_engine_timeline_bytes") > 0
            await engine.command(type="stop", session_id=session)
            sessions = [new_session() for _ in range(12)]
            for number, each in enumerate(sessions):
                await engine.send(type="play", session_id=each, url=f"{site.url}/hang", volume=(number + 1) / 12)
            await wait_threads(12)
            # On a busy machine some have waited for their sources' time limit.
            for each in sessions:
                await engine.ask(type="stop", session_id=each)
            for name in ("timelines", "timeline_bytes", "workers_busy", "productions_waiting"):
                await wait_figure(antiphon.engine, f"antiphon_engine_{name}", lambda n: n == 0, "0")
            await wait_threads(0)
            await engine.command(type="play", session_id=session, url=PASSTHROUGH.url)
            await engine.wait_packets(10, session=session, since=engine.mark())


# MARK: Commands that cannot be understood


async def test_invalid_commands_are_answered_and_do_not_fill_the_log(tmp_path, media):
    """Three thousand at once: every one is answered, and the log has a few lines that count them all."""
    count = 3_000
    with Antiphon(tmp_path, media.root, router=False) as antiphon:
        async with connect_to_engine(antiphon.socket) as engine:
            lines = [
                json.dumps({"type": "nonsense", "session_id": f"hostile{number}", "request_id": f"n{number}"})
                for number in range(count)
            ]
            await engine.write(("\n".join(lines) + "\n").encode())
            await engine.wait(lambda: len(engine.events("error")) >= count, f"{count} errors")
            codes = {event["code"] for event in engine.events("error")}
            assert codes == {"invalid_command"}, codes
            assert {event["request_id"] for event in engine.events("error")} == {f"n{n}" for n in range(count)}

            answer = await request("POST", f"{antiphon.engine.url}/session/over-http/seek", {"position_ms": "x"})
            assert answer.code == "invalid_command", answer
        await wait_figure(
            antiphon.engine, "antiphon_engine_refused_commands_total", lambda n: n == count + 1, f"{count + 1}"
        )

        def logged() -> list[str]:
            text = antiphon.engine.log.read_text()
            return [line for line in text.splitlines() if "refused" in line]

        def counted(lines: list[str]) -> int:
            return sum(int(found.group(1)) if (found := re.search(r"(\d+) more", line)) else 1 for line in lines)

        deadline = asyncio.get_running_loop().time() + PATIENCE_SECONDS
        while counted(logged()) < count + 1:
            assert asyncio.get_running_loop().time() < deadline, logged()
            await asyncio.sleep(0.1)
        assert counted(logged()) == count + 1, logged()
        assert len(logged()) < 30, f"{len(logged())} lines for {count} commands"
        assert all(re.search(r"session=(hostile\d+|over-http)$", line) for line in logged()), logged()


# MARK: Socket buffers


@pytest.mark.parametrize(
    ("option", "least", "most"), [((), 20_000, 140_000), (("--socket-buffer-bytes", "4096"), 500, 12_000)]
)
async def test_the_kernel_holds_as_much_as_it_was_told(tmp_path, media, new_session, option, least, most):
    """A router that does not read: what waits in the kernel stays within the buffer."""
    media.path(PASSTHROUGH)
    with Antiphon(tmp_path, media.root, engine_options=option, router=False) as antiphon:
        async with connect_to_engine(antiphon.socket) as engine:
            deaf = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            with deaf:
                deaf.connect(antiphon.socket)
                sessions = [new_session() for _ in range(20)]
                for session in sessions:
                    await engine.command(type="play", session_id=session, url=PASSTHROUGH.url)
                # 20 sessions at 128 kbit/s: 140,000 bytes are passed in half a second.
                await engine.wait_packets(150, session=sessions[-1])
                waiting = array.array("i", [0])
                fcntl.ioctl(deaf, termios.FIONREAD, waiting)
                assert least < waiting[0] < most, f"{waiting[0]} bytes wait in the kernel"
            assert_no_gap(engine, sessions)


def assert_no_gap(engine, sessions, *kinds: str) -> None:
    for kind in kinds or ("buffering", "dropped", "error", "ended"):
        wrong = [event for event in engine.events(kind) if event.get("session_id") in sessions]
        assert not wrong, wrong[:5]


# MARK: Read-ahead


async def test_a_track_is_read_ahead_no_further_than_told(tmp_path, media, new_session):
    media.path(LONG)
    options = ("--read-ahead-ms", "2000", "--cache-bytes", "0")
    with Antiphon(tmp_path, media.root, engine_options=options, router=False) as antiphon:
        async with connect_to_engine(antiphon.socket) as engine:
            session = new_session()
            await engine.command(type="play", session_id=session, url=LONG.url)
            await engine.wait_packets(200, session=session)
            # 4 s played, of which 5 s at most may be kept behind, and 2 to 3 s ahead, at 16 kB a second.
            size = await figure(antiphon.engine, "antiphon_engine_timeline_bytes")
            assert size < 13 * 16_384, f"{size} bytes are kept of a track read 2 s ahead"
            assert_no_gap(engine, [session])


# MARK: Fairness


@pytest.mark.measures
async def test_a_new_track_starts_at_once_while_others_read_ahead(tmp_path, media, new_session):
    """Twenty-four long tracks are read to their end as fast as all cores can; new ones are begun meanwhile."""
    media.make(LONG, LONG_MP3, SHORT)
    long = [_copy(media, clip, number) for number in range(12) for clip in (LONG, LONG_MP3)]
    fresh = [_copy(media, clip, 100 + number) for number in range(3) for clip in (SHORT, LONG_MP3)]
    with Antiphon(tmp_path, media.root, engine_options=("--cache-bytes", str(4 << 30)), router=False) as antiphon:
        async with connect_to_engine(antiphon.socket) as engine:

            async def play(urls: list[str]) -> list[str]:
                asked = {}
                for url in urls:
                    session = new_session()
                    asked[session] = await engine.send(type="play", session_id=session, url=url)
                for request_id in asked.values():
                    answer = await engine.wait_answer(request_id)
                    assert answer["type"] == "ready", answer
                return list(asked)

            readers = await play(long)
            starters = []
            for url in fresh:
                # Every core is busy, and nearly everyone waits for one.
                await wait_figure(antiphon.engine, "antiphon_engine_workers_waiting", lambda n: n >= 18, "18 or more")
                starters += await play([url])
                await engine.wait_packets(5, session=starters[-1])
            await engine.wait_packets(50, since=engine.mark(), session=readers[0])
            # All of them were still being read when the last had begun.
            assert await figure(antiphon.engine, "antiphon_engine_workers_busy") >= len(readers)
            assert_no_gap(engine, readers + starters, "buffering", "stuck", "dropped", "error")
            assert await figure(antiphon.engine, "antiphon_engine_underruns_total") == 0


def _copy(media, clip, number: int) -> str:
    """The same sound as another track."""
    link = media.root / f"copy-{number}-{clip.file}"
    if not link.exists():
        link.hardlink_to(media.path(clip))
    return f"media:{link.name}"


# MARK: Admission


@pytest.fixture
def small(tmp_path, media):
    """An engine that may use almost nothing for transcoding, and does not keep a long track."""
    options = ("--transcode-cpu-share", "0.001", "--cache-bytes", str(4 << 20))
    media.make(LONG, LONG_MP3, SHORT, PASSTHROUGH)
    with Antiphon(tmp_path, media.root, engine_options=options) as running:
        yield running


async def _measured(antiphon) -> None:
    await wait_figure(antiphon.engine, "antiphon_engine_transcode_packet_seconds", lambda n: n > 0, "a measurement")


async def test_what_cannot_be_carried_is_refused_and_all_else_enters(small, new_session):
    url = small.router.url
    async with (
        listen(url, new_session()) as first,
        listen(url, new_session()) as second,
        listen(url, new_session()) as third,
        listen(url, new_session()) as fourth,
    ):
        # Produced to its end, and kept.
        await second.play(SHORT.url)
        await _measured(small)
        await wait_figure(small.engine, "antiphon_engine_transcodes", lambda n: n == 0, "0")
        await second.command("stop")

        await first.play(LONG.url)
        begun = first.mark()
        request_error = await second.ask("play", url=LONG_MP3.url)
        assert request_error["type"] == "error" and request_error["code"] == "overloaded", request_error
        assert re.search(r"1 tracks .* at 0\.\d+ cores each, .* 0\.\d+ cores", request_error["message"]), request_error
        assert "--transcode-cpu-share" in request_error["hint"], request_error
        assert (await second.wait_event("ended", second.index(request_error)))["reason"] == "loadFailed"
        others = [new_session(), new_session()]
        for endpoint in (f"{url}/api/v1/sessions/{others[0]}", f"{small.engine.url}/session/{others[1]}"):
            status, body, retry_after = await refused(f"{endpoint}/play", {"url": LONG_MP3.url})
            assert status == 503 and body["code"] == "overloaded" and int(retry_after) > 0, (status, body, retry_after)
        assert await figure(small.engine, "antiphon_engine_transcodes_refused_total") == 3
        assert await figure(small.engine, "antiphon_engine_transcode_demand_cores") > await figure(
            small.engine, "antiphon_engine_transcode_capacity_cores"
        )

        assert (await third.play(PASSTHROUGH.url))["passthrough"] is True
        await second.play(SHORT.url)
        assert (await fourth.play(LONG.url))["type"] == "ready"
        for listener in (first, second, third, fourth):
            assert_unbroken(await listener.wait_packets(50, since=listener.mark()), listener.name)
            assert not listener.stalls(), listener.stalls()
        assert_unbroken(first.packets(begun), "the transcode that was there first")
        for other in others:
            # What had no room is asked for again, and would take the place.
            await request("POST", f"{url}/api/v1/sessions/{other}/stop")
        for listener in (first, third, fourth):
            await listener.command("stop")

        # Nothing is being transcoded any more: the place is free.
        await wait_figure(small.engine, "antiphon_engine_transcodes", lambda n: n == 0, "0")
        await first.play(LONG_MP3.url)
        await first.command("stop")


@pytest.mark.measures
async def test_a_rush_of_plays_is_answered_one_by_one(tmp_path, media):
    """Right at the start, before any track could be measured: some enter, the others are refused, all are told."""
    media.path(LONG)
    options = ("--cache-bytes", "0", "--max-workers", "200", "--transcode-cpu-share", "0.25")
    with Antiphon(tmp_path, media.root, engine_options=options, router=False) as antiphon:
        # Another bit rate is another production.
        answers = await asyncio.gather(
            *(
                request("POST", f"{antiphon.engine.url}/session/{kbps}/play", {"url": LONG.url, "bitrate_kbps": kbps})
                for kbps in range(60, 180)
            )
        )
        request_errors = [answer for answer in answers if answer.status != 200]
        assert 0 < len(request_errors) < len(answers), f"{len(request_errors)} of {len(answers)} were refused"
        assert all(answer.status == 503 and answer.code == "overloaded" for answer in request_errors), request_errors[0]
        assert await figure(antiphon.engine, "antiphon_engine_transcodes_refused_total") == len(request_errors)


async def test_a_session_that_plays_is_not_refused_its_own_place(small, new_session):
    """A seek, a volume and another track of its own: the old timeline still has its place when it asks."""
    async with listen(small.router.url, new_session()) as listener:
        await listener.play(LONG.url)
        await _measured(small)
        for command, fields in (
            ("seek", {"position_ms": 200_000}),
            ("volume", {"level": 0.5}),
            ("seek", {"position_ms": 1_000}),
            ("volume", {"level": 1}),
            ("play", {"url": LONG_MP3.url}),
            ("play", {"url": LONG.url}),
        ):
            answer = await listener.command(command, **fields)
            await listener.wait_packets(20, since=listener.index(answer))
        await listener.command("stop")
        assert await figure(small.engine, "antiphon_engine_transcodes_refused_total") == 0


async def test_a_queue_waits_for_its_place(small, new_session):
    """What the engine cannot carry now is not skipped: it is asked for again."""
    async with listen(small.router.url, new_session()) as first, listen(small.router.url, new_session()) as second:
        await first.play(LONG.url)
        await _measured(small)
        await second.command("queue_add", url=LONG_MP3.url)
        error = await second.wait_event("error")
        assert error["code"] == "overloaded", error
        await second.command("queue_add", url=PASSTHROUGH.url)
        await first.command("stop")
        ready = await second.wait_event("ready")
        assert ready["url"] == LONG_MP3.url, ready
        await second.command("stop")


# MARK: One production that fails


async def test_of_three_sessions_one_source_breaks(antiphon, media, new_session):
    whole = [tone_clip(frequency, 6, encoding) for frequency, encoding in ((500, FLAC), (900, MP3_CBR))]
    media.make(*whole, tone_clip(700, 6, WAV))
    data = media.bytes(tone_clip(1_100, 6, FLAC))
    broken = media.write("breaks-off.flac", data[: len(data) // 2])
    url = antiphon.router.url
    async with (
        listen(url, new_session()) as first,
        listen(url, new_session()) as breaking,
        listen(url, new_session()) as last,
    ):
        await asyncio.gather(first.play(whole[0].url), breaking.play(broken), last.play(whole[1].url))
        error = await breaking.wait_event("error")
        assert error["code"] in ("source_truncated", "source_corrupt"), error
        assert (await breaking.wait_event("ended"))["reason"] == "finished"
        for listener in (first, last):
            await listener.wait_packets(50, since=listener.mark())
            assert_unbroken(listener.packets(), listener.name)
            for kind in ("error", "ended", "buffering", "dropped"):
                assert not listener.events(kind), listener
            await listener.command("stop")
        # And the session whose source broke plays something else as if nothing had been.
        await breaking.play(whole[0].url)
        await breaking.wait_packets(10, since=breaking.mark())
        await breaking.command("stop")
