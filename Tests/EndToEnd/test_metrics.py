"""/health, /ready and /metrics of both processes."""

import asyncio
import os
import shutil
import time

import pytest
from prometheus_client.parser import text_string_to_metric_families

from client import connect_to_engine, listen, raw_request, request
from inbox import PATIENCE_SECONDS
from media import OGG_OPUS, OGG_OPUS_LOUD, tone_clip
from processes import Antiphon

SONG = tone_clip(440, 20, OGG_OPUS)
LOUD = tone_clip(440, 10, OGG_OPUS_LOUD)

PROCESS = {
    "process_cpu_seconds",
    "process_resident_memory_bytes",
    "process_virtual_memory_bytes",
    "process_open_fds",
    "process_max_fds",
    "process_start_time_seconds",
}


async def samples(server) -> dict[tuple, float]:
    """Every sample by its name and labels."""
    answer = await request("GET", f"{server.url}/metrics")
    assert answer.status == 200, answer
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(answer.body)
        for sample in family.samples
    }


async def wait_sample(server, key: tuple, done) -> float:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not done(value := (await samples(server)).get(key, 0)):
        assert time.monotonic() < deadline, f"{key} is {value}"
        await asyncio.sleep(0.05)
    return value


async def test_metrics_are_prometheus_text(antiphon, media, new_session):
    media.path(SONG)
    async with listen(antiphon.router.url, new_session()) as listener:
        await listener.play(SONG.url)
        await listener.wait_packets(25)
        for server in (antiphon.engine, antiphon.router):
            answer = await request("GET", f"{server.url}/metrics")
            assert answer.status == 200 and isinstance(answer.body, str), answer
            families = list(text_string_to_metric_families(answer.body))
            assert len(families) >= 5, f"{server.name}: {len(families)} metrics"
            names = [(family.name, family.type) for family in families]
            assert len(names) == len(set(names)), f"{server.name}: {names}"
            for family in families:
                assert family.type != "unknown" and family.documentation, (
                    f"{server.name}: {family.name} has no TYPE or HELP"
                )
                assert family.name.startswith(("antiphon_", "process_")), f"{server.name}: {family.name}"
            assert any("session" in name for name, _ in names), f"{server.name}: {names}"
        await listener.command("stop")


async def test_health_tells_how_it_is(antiphon):
    router = await request("GET", f"{antiphon.router.url}/health")
    assert router.status == 200 and router.body["status"] == "ok" and router.body["engine"]["connected"] is True, router
    assert {"version", "uptime_s", "sessions", "listeners"} <= router.body.keys(), router
    engine = await request("GET", f"{antiphon.engine.url}/health")
    assert engine.status == 200 and engine.body["version"] == router.body["engine"]["version"], (engine, router)


async def test_ready_tells_that_it_is(antiphon):
    for server in (antiphon.router, antiphon.engine):
        answer = await request("GET", f"{server.url}/ready")
        assert answer.status == 200, answer
        assert answer.body["ready"] is True and answer.body["reasons"] == [], answer


async def test_an_engine_without_yt_dlp_is_ready_and_says_what_is_missing(tmp_path, media):
    with Antiphon(tmp_path, media.root, engine_options=("--yt-dlp-python", "/nowhere/python"), router=False) as running:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not (answer := await request("GET", f"{running.engine.url}/ready")).body["warnings"]:
            assert time.monotonic() < deadline, answer
            await asyncio.sleep(0.05)
        assert answer.status == 200 and "pages cannot be played" in answer.body["warnings"][0], answer


async def test_both_tell_of_their_processes(antiphon):
    for server in (antiphon.router, antiphon.engine):
        found = await samples(server)
        names = {key[0].removesuffix("_total") for key in found}
        assert names >= PROCESS, names
        assert abs(found[("process_start_time_seconds",)] - time.time()) < 600, found
        descriptors = len(os.listdir(f"/proc/{server.pid}/fd"))
        assert abs(found[("process_open_fds",)] - descriptors) <= 4, (found[("process_open_fds",)], descriptors)
        assert any(key[0].endswith("build_info") for key in found), names


async def test_commands_are_counted_by_what_came_of_them(antiphon, media, new_session):
    media.path(SONG)
    name = "antiphon_router_commands_total"

    async def counts() -> dict[str, float]:
        return {key[1][1]: value for key, value in (await samples(antiphon.router)).items() if key[0] == name}

    before = await counts()
    session = new_session()
    rest = f"{antiphon.router.url}/api/v1/sessions/{session}"
    async with listen(antiphon.router.url, session) as listener:
        await listener.play(SONG.url)
        await listener.command("pause")
        assert (await listener.ask("seek", position_ms="x"))["code"] == "invalid_command"
        assert (await listener.ask("play", url="media:nowhere.opus"))["code"] == "source_not_found"
    assert (await request("POST", f"{rest}/play", {"url": SONG.url})).status == 200
    assert (await request("POST", f"{rest}/stop")).status == 200
    assert (await request("POST", f"{rest}/play", {"url": "media:nowhere.opus"})).status == 404
    assert (await request("POST", f"{rest}/play", raw=b"{")).code == "invalid_json"
    after = await counts()
    grown = {code: after[code] - before.get(code, 0) for code in after if after[code] != before.get(code, 0)}
    assert grown == {"ok": 4, "invalid_command": 1, "source_not_found": 2, "invalid_json": 1}, grown


async def test_lateness_is_measured_where_it_is_heard(antiphon, media, new_session):
    """From the due time to the arrival at the Router."""
    media.path(SONG)
    async with listen(antiphon.router.url, new_session()) as listener:
        await listener.play(SONG.url)
        name = "antiphon_router_packet_lateness_seconds"
        before = await samples(antiphon.router)
        await listener.wait_packets(100)
        after = await samples(antiphon.router)
        count = after[(f"{name}_count",)] - before[(f"{name}_count",)]
        assert 50 <= count <= 400, count
        mean = (after[(f"{name}_sum",)] - before[(f"{name}_sum",)]) / count
        assert 0 < mean < 0.5, f"{mean:.4f} s"
        assert after[(f"{name}_bucket", ("le", "+Inf"))] == after[(f"{name}_count",)]


async def test_bytes_that_wait_are_seen_on_both_sides(tmp_path, media, new_session):
    """A router and a player that do not read."""
    media.path(LOUD)
    with Antiphon(tmp_path, media.root, engine_options=("--socket-buffer-bytes", "4096")) as running:
        session = new_session()
        async with (
            listen(running.router.url, session) as listener,
            connect_to_engine(running.socket, receive_buffer=1_024) as slow,
        ):
            await slow.wait_event("hello")
            slow.reads.clear()
            await listener.play(LOUD.url, loop=True)
            await wait_sample(running.engine, ("antiphon_engine_router_queue_bytes",), lambda value: value > 1_000)
            slow.reads.set()
            await wait_sample(running.engine, ("antiphon_engine_router_queue_bytes",), lambda value: value == 0)

            target = f"GET /listen/{session}.ogg?buffer_ms=5000 HTTP/1.1\n\r\n"
            with raw_request(running.router.address, target, receive_buffer=2_048):
                await wait_sample(
                    running.router, ("antiphon_router_listener_queue_bytes",), lambda value: value > 1_000
                )
            await wait_sample(running.router, ("antiphon_router_listener_queue_bytes",), lambda value: value == 0)


@pytest.mark.skipif(not shutil.which("promtool"), reason="promtool comes with Debian's package prometheus")
async def test_promtool_finds_nothing(antiphon):
    for server in (antiphon.router, antiphon.engine):
        text = (await request("GET", f"{server.url}/metrics")).body
        process = await asyncio.create_subprocess_exec(
            *("promtool", "check", "metrics"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await asyncio.wait_for(process.communicate(text.encode()), 30)
        assert process.returncode == 0 and not output.strip(), f"{server.name}: {output.decode()}"
