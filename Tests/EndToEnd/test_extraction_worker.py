"""The worker processes: what happens when they hang, die, are missing, or are asked for too much."""

import asyncio
import importlib.util
import os
import signal
import subprocess
import sys
import threading
import urllib.parse
from ipaddress import ip_address

import pytest

from client import connect_to_engine, listen, request
from extraction import COLD_SECONDS, figures, is_alive, workers
from media import MP3_CBR, tone_clip
from page_server import Asked, PageServer
from processes import ROOT, Antiphon

SONG = tone_clip(770, 3, MP3_CBR, 44_100)
SCRIPT = ROOT / "Sources" / "AudioEngine" / "Extraction" / "extraction_worker.py"
#: For a job, its worker's start included: long enough for a cold one on a busy machine.
LIMIT_SECONDS = 12


@pytest.fixture(scope="module")
def antiphon(tmp_path_factory, media):
    options = ("--extraction-timeout-seconds", str(LIMIT_SECONDS), "--source-timeout-seconds", "60")
    with Antiphon(
        tmp_path_factory.mktemp("workers"), media.root, allow=("127.0.0.1/32",), engine_options=options, router=False
    ) as running:
        yield running


@pytest.fixture
def site(media):
    with PageServer() as server:
        server.add("/song.mp3", lambda asked: asked.media(media.bytes(SONG)))
        server.add("/good", lambda asked: asked.page('<audio src="song.mp3"></audio>'))
        yield server


class Hanging:
    """A page that yt-dlp waits for, the first `times` times."""

    def __init__(self, times: int = 1_000_000) -> None:
        self.times = times
        self.asked = threading.Semaphore(0)

    def __call__(self, asked: Asked) -> None:
        if not asked.is_engine:
            self.times -= 1
            self.asked.release()
            if self.times >= 0:
                asked.wait()
        asked.page('<audio src="song.mp3"></audio>')

    async def wait_asked(self) -> None:
        assert await asyncio.to_thread(self.asked.acquire, timeout=COLD_SECONDS), "yt-dlp never asked"


async def play(engine, session: str, url: str) -> dict:
    asked = await engine.send(type="play", session_id=session, url=url)
    return await engine.wait(
        lambda: next(
            (
                event
                for event in engine.events()
                if event.get("request_id") == asked and event["type"] in ("ready", "error")
            ),
            None,
        ),
        f"an answer to play {url}",
        COLD_SECONDS + LIMIT_SECONDS,
    )


async def test_a_slow_page_is_given_up_and_its_worker_killed(antiphon, site, new_session):
    page = Hanging()
    url = site.add("/slow", page)
    async with connect_to_engine(antiphon.socket) as engine:
        before = await figures(antiphon)
        answer = asyncio.create_task(play(engine, new_session(), url))
        await page.wait_asked()
        hung = workers(antiphon)
        assert hung
        # Others are served meanwhile, by another process.
        assert (await play(engine, new_session(), f"{site.url}/good"))["type"] == "ready"
        report = await answer
        assert report["type"] == "error" and report["code"] == "source_timeout" and report["stage"] == "extract", report
        assert str(LIMIT_SECONDS) in report["message"] and report["hint"], report
        site.add("/next", site.pages["/good"])
        assert (await play(engine, new_session(), f"{site.url}/next"))["type"] == "ready"
        assert not all(is_alive(pid) for pid in hung), "the worker that hung is still there"
        assert (await figures(antiphon))["failures_total"] == before["failures_total"] + 1


@pytest.mark.parametrize("times", [1, 2])
async def test_a_worker_killed_over_a_job(antiphon, site, new_session, times):
    """Once may be chance: the job is done again. Twice is the page's fault."""
    page = Hanging(times)
    url = site.add("/deadly", page)
    async with connect_to_engine(antiphon.socket) as engine:
        before = await figures(antiphon)
        answer = asyncio.create_task(play(engine, new_session(), url))
        for _ in range(times):
            await page.wait_asked()
            for pid in workers(antiphon):
                os.kill(pid, signal.SIGKILL)
        report = await answer
        assert report["type"] == "ready" if times == 1 else report.get("code") == "extraction_failed", report
        assert (await play(engine, new_session(), f"{site.url}/good"))["type"] == "ready"
        after = await figures(antiphon)
        assert after["worker_restarts_total"] > before["worker_restarts_total"], (before, after)


async def test_a_session_that_is_stopped_waits_no_longer(antiphon, site, new_session):
    page = Hanging()
    url = site.add("/stopped", page)
    session = new_session()
    async with connect_to_engine(antiphon.socket) as engine:
        waiting = await engine.send(type="play", session_id=session, url=url)
        await page.wait_asked()
        await engine.command(type="stop", session_id=session)
        answer = await engine.wait_answer(waiting)
        assert answer["code"] == "superseded", answer
        for _ in range(100):
            health = (await request("GET", f"{antiphon.engine.url}/health")).body
            if health["workers_busy"] == 0:
                break
            await asyncio.sleep(0.05)
        assert health["workers_busy"] == 0, f"a worker waits for nobody: {health}"
        assert any(is_alive(pid) for pid in workers(antiphon))


async def test_too_many_pages_at_once_are_refused(tmp_path, media, site):
    """Two at a time, 32 wait; the rest is told to come back. It all ends within the time limit."""
    url = site.add("/many", Hanging())
    options = ("--extraction-timeout-seconds", "3")
    with Antiphon(tmp_path, media.root, allow=("127.0.0.1/32",), engine_options=options, router=False) as alone:
        answers = await asyncio.gather(
            *(request("GET", f"{alone.engine.url}/resolve?query={url}?{number}") for number in range(50))
        )
        codes = [answer.code for answer in answers]
        assert set(codes) <= {"workers_exhausted", "source_timeout", "extractor_unavailable"}, codes
        assert codes.count("workers_exhausted") >= 16, codes
        assert {answer.status for answer in answers} <= {503, 504}, answers
        assert len(workers(alone)) <= 2
        # And then it works again.
        health = await request("GET", f"{alone.engine.url}/health")
        assert health.status == 200, health


async def test_without_yt_dlp_files_and_direct_links_play(tmp_path, media, site, new_session):
    media.path(SONG)
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True)
    for number, python in enumerate(["/nonexistent/python", str(bare / "bin" / "python")]):
        options = ("--yt-dlp-python", python)
        folder = tmp_path / f"engine{number}"
        with Antiphon(folder, media.root, allow=("127.0.0.1/32",), engine_options=options) as alone:
            async with listen(alone.router.url, new_session()) as listener:
                for url in (SONG.url, f"{site.url}/song.mp3"):
                    await listener.play(url)
                    await listener.wait_packets(5, since=listener.mark())
                for _ in range(2):
                    answer = await listener.ask("play", url=f"{site.url}/good")
                    assert answer.get("code") == "extractor_unavailable", answer
                    assert "is a page" in answer["message"] and "upgrade-yt-dlp" in answer["hint"], answer
                await listener.play(SONG.url)
            router = alone.router.url
            answer = await request("POST", f"{router}/api/v1/sessions/x/play", {"url": f"{site.url}/good"})
            assert answer.status == 503 and answer.code == "extractor_unavailable", answer
            answer = await request("GET", f"{router}/api/v1/resolve?query=words")
            assert answer.status == 503 and answer.code == "extractor_unavailable", answer
            answer = await request("GET", f"{router}/api/v1/resolve?query={site.url}/song.mp3")
            assert answer.status == 200 and answer.body["entries"] == [{"url": f"{site.url}/song.mp3"}], answer
            health = await request("GET", f"{alone.engine.url}/health")
            assert health.status == 200 and health.body["extractor"]["available"] is False, health
            assert health.body["extractor"]["message"], health


async def test_health_tells_which_yt_dlp_it_is(antiphon):
    installed = subprocess.run(
        [sys.executable, "-c", "import yt_dlp.version; print(yt_dlp.version.__version__)"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    for _ in range(200):
        health = (await request("GET", f"{antiphon.engine.url}/health")).body
        if "version" in health["extractor"]:
            break
        await asyncio.sleep(0.05)
    assert health["extractor"] == {"available": True, "version": installed}, health


async def test_a_dead_engine_leaves_no_worker(tmp_path, media, site, new_session):
    """Neither one that waits nor one in the middle of a job."""
    page = Hanging()
    url = site.add("/left", page)
    with Antiphon(tmp_path, media.root, allow=("127.0.0.1/32",), router=False) as alone:
        async with connect_to_engine(alone.socket) as engine:
            await engine.send(type="play", session_id=new_session(), url=url)
            await page.wait_asked()
            assert (await play(engine, new_session(), f"{site.url}/good"))["type"] == "ready"
            left = workers(alone)
            assert len(left) == 2, left
            alone.engine.kill()
        for _ in range(200):
            if not any(is_alive(pid) for pid in left):
                break
            await asyncio.sleep(0.05)
        assert not [pid for pid in left if is_alive(pid)]


# MARK: The worker alone


@pytest.fixture(scope="module")
def worker():
    spec = importlib.util.spec_from_file_location("extraction_worker", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_its_address_policy_is_the_engines(worker):
    """The addresses of AddressPolicyTests.swift, judged by the list that the engine hands over."""
    swift = (ROOT / "Sources" / "AudioEngine" / "Inputs" / "AddressPolicy.swift").read_text()
    refused = swift.partition("refusedNetworks = [")[2].partition("]")[0]
    tests = (ROOT / "Tests" / "AudioEngineTests" / "AddressPolicyTests.swift").read_text()
    private, public = (part.partition("])")[0] for part in tests.split("@Test(arguments: [")[1:3])

    def quoted(text: str) -> list[str]:
        return text.split('"')[1::2]

    assert len(quoted(refused)) > 20 and len(quoted(private)) > 20 and len(quoted(public)) > 5
    policy = worker.AddressPolicy([], quoted(refused))
    assert [text for text in quoted(private) if policy.permits(ip_address(text))] == []
    assert [text for text in quoted(public) if not policy.permits(ip_address(text))] == []
    policy = worker.AddressPolicy(["127.0.0.1/32"], quoted(refused))
    permitted = [
        text for text in ("127.0.0.1", "::ffff:127.0.0.1", "127.0.0.2", "::1") if policy.permits(ip_address(text))
    ]
    assert permitted == ["127.0.0.1", "::ffff:127.0.0.1"]


@pytest.mark.parametrize(
    "attempt",
    [
        "socket.create_connection(('127.0.0.1', 9))",
        "socket.create_connection(('localhost', 9))",
        "socket.socket().connect_ex(('localhost', 9))",
        "socket.socket(socket.AF_INET6).connect(('::ffff:127.0.0.1', 9))",
        "socket.socket(socket.AF_UNIX).connect('/run/some.sock')",
        "socket.socket(type=socket.SOCK_DGRAM).sendto(b'', ('127.0.0.1', 9))",
        "subprocess.run(['true'])",
        "os.system('true')",
        "os.posix_spawn('/bin/true', ['true'], {})",
    ],
)
def test_it_can_make_no_connection_that_is_not_checked(attempt):
    """Not even by code that means to: there is no way to take the hook away."""
    program = f"""
import importlib.util, os, socket, subprocess, sys
spec = importlib.util.spec_from_file_location("worker", {str(SCRIPT)!r})
worker = importlib.util.module_from_spec(spec)
spec.loader.exec_module(worker)
sys.addaudithook(worker.AddressPolicy([], ["127.0.0.0/8", "::1/128"]).audit)
try:
    {attempt}
except worker.Refused:
    print("refused")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "refused\n", done


ORDERS = "#__youtubedl_smuggle=%7B%22to_generic%22%3A%201%7D"


@pytest.mark.parametrize(
    "tail",
    [ORDERS, "?u=" + urllib.parse.quote(f"http://a.example/{ORDERS}", safe=""), ORDERS.replace("#", "%23"), ORDERS * 2],
)
async def test_orders_for_yt_dlp_in_an_address_are_refused(antiphon, site, new_session, tail):
    async with connect_to_engine(antiphon.socket) as engine:
        answer = await engine.ask(type="resolve", query=f"{site.url}/good{tail}")
        assert answer["type"] == "error" and answer["code"] == "source_forbidden", answer
        assert "orders for yt-dlp" in answer["message"]


async def test_orders_for_yt_dlp_in_a_redirect_or_a_link_are_refused(antiphon, site, new_session):
    site.add("/away", lambda asked: asked.redirect(f"{site.url}/good{ORDERS}"))
    async with connect_to_engine(antiphon.socket) as engine:
        answer = await engine.ask(type="resolve", query=f"{site.url}/away")
        assert answer["type"] == "error" and answer["code"] == "source_forbidden", answer


def test_its_own_orders_are_understood(worker):
    import yt_dlp
    import yt_dlp.utils

    kept = {name: getattr(yt_dlp.utils, name) for name in ("smuggle_url", "unsmuggle_url")}
    try:
        orders = worker.Orders(yt_dlp)
        address = yt_dlp.utils.smuggle_url("http://a.example/", {"a": 1})
        assert yt_dlp.utils.unsmuggle_url(yt_dlp.utils.smuggle_url(address, {"b": 2})) == (
            "http://a.example/",
            {"a": 1, "b": 2},
        )
        assert yt_dlp.utils.unsmuggle_url("http://a.example/#b", {}) == ("http://a.example/#b", {})
        for foreign in (f"http://a.example/{ORDERS}", address.replace("secret=", "secret=0")):
            with pytest.raises(worker.Refused):
                yt_dlp.utils.unsmuggle_url(foreign)
        nested = f"http://a.example/{ORDERS}"
        for _ in range(5):
            assert orders.has_foreign(nested)
            nested = "http://a.example/?u=" + urllib.parse.quote(nested, safe="")
        assert not orders.has_foreign("http://a.example/?q=100%25&smuggle=1#there")
    finally:
        for module in list(sys.modules.values()):
            if getattr(module, "__name__", "").startswith("yt_dlp"):
                for name, function in kept.items():
                    if name in vars(module):
                        setattr(module, name, function)


def test_segments_are_chosen_where_there_is_nothing_plain(worker):
    """The best is last, as yt-dlp sorts. DASH without a manifest's address is made of fragments, which are not read."""
    plain = {"format_id": "p", "protocol": "https", "url": "https://a.example/p.webm", "vcodec": "none"}
    hls = {"format_id": "h", "protocol": "m3u8_native", "url": "https://a.example/h.m3u8", "vcodec": "none"}
    dash = {
        "format_id": "d",
        "protocol": "http_dash_segments",
        "url": "https://a.example/base/",
        "manifest_url": "https://a.example/d.mpd",
        "vcodec": "none",
    }
    fragments = {**dash, "format_id": "f", "manifest_url": None}
    foreign = {**dash, "format_id": "x", "manifest_url": "file:///etc/passwd"}

    def chosen(*formats: dict, format_id: str | None = None) -> list[str]:
        return [worker.stream_url(item) for item in worker.choose_format([*formats], format_id)]

    assert chosen(plain, hls, dash) == ["https://a.example/p.webm"]
    assert chosen(hls, dash, fragments, foreign) == ["https://a.example/d.mpd"]
    assert chosen(hls, dash, format_id="h") == ["https://a.example/h.m3u8"]
    assert chosen(fragments, foreign) == []
