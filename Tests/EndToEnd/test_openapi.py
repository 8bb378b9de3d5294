"""The API is what `openapi.yaml` says: the document is valid, has every route, and real answers are as described."""

import os
import re
import subprocess
import sys

import aiohttp
import openapi_spec_validator
import pytest
import yaml

from client import listen, request
from media import FLAC, OGG_OPUS, tone_clip
from openapi import FILE, Description, closed, load, operations
from processes import ROOT, Antiphon
from scores import drone, tones

LONG = tone_clip(440, 120, OGG_OPUS)
SHORT = tone_clip(550, 5, FLAC)


@pytest.fixture(scope="module")
def antiphon(tmp_path_factory, media):
    (media.root / "song.flac").write_bytes(media.bytes(SHORT))
    with Antiphon(tmp_path_factory.mktemp("openapi"), media.root, router_options=("--log-level", "debug")) as running:
        yield running


@pytest.fixture(scope="module")
def description() -> Description:
    return Description()


def test_the_document_is_valid():
    openapi_spec_validator.validate(load())
    identifiers = [operation["operationId"] for _, _, operation in operations(load()).values()]
    assert len(identifiers) == len(set(identifiers)), identifiers
    assert (ROOT / "docs" / "openapi.yaml").samefile(FILE)


def test_error_codes_are_those_of_the_table():
    """Of docs/wire-protocol.md, with the statuses that the descriptions of the responses name them at."""
    text = (ROOT / "docs" / "wire-protocol.md").read_text()
    table = dict(re.findall(r"^\| `([a-z_]+)` \| (\d{3}) \|", text, re.M))
    document = load()
    codes = document["components"]["schemas"]["Error"]["properties"]["code"]["x-extensible-enum"]
    assert set(codes) == set(table), set(codes) ^ set(table)
    responses = document["components"]["responses"]
    statuses = {
        answer["$ref"].rpartition("/")[2]: status
        for _, _, operation in operations(document).values()
        for status, answer in operation["responses"].items()
        if "$ref" in answer
    }
    for name, response in responses.items():
        if int(statuses[name]) >= 400:
            for code in re.findall(r"`([a-z]+(?:_[a-z]+)*)`", response["description"]):
                assert table.get(code) == statuses[name], f"{code} is described at {statuses[name]}: {table.get(code)}"


async def test_it_is_served(antiphon):
    url = f"{antiphon.router.url}/api/v1/openapi.yaml"
    async with aiohttp.ClientSession() as http:
        async with http.get(url) as response:
            assert response.status == 200 and response.content_type == "application/yaml", response
            assert await response.read() == FILE.read_bytes()
            tag = response.headers["ETag"]
        async with http.get(url, headers={"If-None-Match": tag}) as response:
            assert response.status == 304 and not await response.read(), response


def test_it_has_every_route_and_no_other(antiphon):
    """The Router lists its routes in its log, at the level debug, and what each asks for."""
    routes = dict(re.findall(r"\broute ([A-Z]+ /\S*): ([a-z, ]+)$", antiphon.router.log.read_text(), re.M))
    document = load()
    described = {
        f"{method} {path}": ACCESS[str(operation.get("security", document["security"]))]
        for method, path, operation in operations(document).values()
    }
    assert routes.keys() - described.keys() == set(), "there, and not described"
    assert described.keys() - routes.keys() == set(), "described, and not there"
    assert {name: access.removesuffix(" of its session") for name, access in routes.items()} == described


#: How the log says what the description says.
ACCESS = {
    "[]": "open",
    "[{'bearer': ['listen']}, {}]": "listen",
    "[{'bearer': ['control']}, {}]": "control",
    "[{'bearer': ['admin']}, {}]": "admin",
    "[{'bearer': ['listen']}, {'ticket': ['listen']}, {}]": "listen, by ticket too",
}


async def test_real_answers_are_as_described(antiphon, media, new_session, description):
    """A session's life over REST, and every message of its WebSocket."""
    media.path(LONG)
    session = new_session()

    async def call(operation: str, body=None, status: int = 200, query: str = "", **path: str):
        method, template, _ = description.operations[operation]
        target = template.format(id=session, **path)
        answer = await request(method, antiphon.router.url + target + query, body)
        assert answer.status == status, (operation, answer)
        description.check_answer(operation, answer.status, answer.body)
        return answer.body

    async with listen(antiphon.router.url, session) as listener:
        await call("getSession")
        await call("pause", status=404)
        await call("play", {"url": LONG.url})
        await listener.wait_packets(5)
        await call("seek", {"position_ms": 30_000})
        await call("setVolume", {"level": 0.5})
        await call("pause", {})
        await call("resume")
        await call("why")
        await call("setQuality", {"bitrate_kbps": 64})
        track = {"url": "media:song.flac", "title": "Song", "artist": "A", "duration_ms": 5_000}
        added = await call("addToQueue", {"tracks": [track | {"requested_by": "Ada"}] * 3})
        await call("addToQueue", {"query": "media:song.flac", "next": True})
        await call("moveInQueue", {"position": 0}, entry=added["added"][2])
        await call("removeFromQueue", entry=added["added"][0])
        await call("removeFromQueue", entry="nothing", status=404)
        await call("shuffleQueue")
        await call("loopQueue", {"mode": "queue"})
        await call("getQueue", query="?offset=1&limit=1")
        await call("prepare", {"url": "media:song.flac"})
        await call("unprepare")
        since = listener.mark()
        await call("skipTo", {"id": added["added"][2]})
        await listener.wait_event("playing", since)
        await call("previous")
        await call("skip")
        await call("getHistory", query="?limit=2")
        await call("play", {"score": drone(57)})
        await call("perform", {"score": tones(69)})
        await call("mute", {"voices": ["melody"]})
        await call("getSession")
        await call("listSessions")
        await call("listMedia")
        await call("resolve", query="?query=media:song.flac")
        await call("clearQueue")
        await call("play", {"url": "media:nothing.flac"}, status=404)
        await call("getHealth")
        for command in ("status", "why", "queue", "history", "media"):
            await listener.ask(command)
        await listener.ask("ping", t=1)
        await listener.ask("resolve", query="media:song.flac")
        await listener.ask("dance")
        antiphon.engine.kill()
        await listener.wait_event("engine")
        await call("pause", status=503)
        antiphon.engine.start()
        await listener.wait(lambda: len(listener.events("engine")) + len(listener.events("session")) >= 3, "the engine")
        events = listener.events()
    for event in events:
        description.check_event(event)
    kinds = {event["type"] for event in events}
    assert kinds >= {"session", "queue", "history", "engine", "ready", "playing", "status", "why", "error"}, kinds


async def test_what_is_unknown_is_ignored(antiphon, new_session):
    """Unknown fields and query parameters: a newer client may send them."""
    base = f"{antiphon.router.url}/api/v1/sessions/{new_session()}"
    answer = await request("POST", f"{base}/volume?colour=blue", {"level": 0.5, "colour": "blue", "deep": {"a": [1]}})
    assert answer.status == 200, answer
    answer = await request("POST", f"{base}/queue", {"url": "media:song.flac", "colour": "blue"})
    assert answer.status == 200 and "colour" not in str(answer.body), answer
    answer = await request("GET", f"{base}/queue?colour=blue&limit=1")
    assert answer.status == 200, answer
    async with listen(antiphon.router.url, new_session()) as listener:
        assert (await listener.ask("queue", colour="blue"))["type"] == "queue"


#: Endless, no HTTP in the end, or signed.
LEFT_OUT = ("listen", "connect", "stream", "receiveGitHubDelivery", "receiveEvent")


def test_schemathesis_finds_nothing(antiphon, tmp_path):
    """Good and bad requests made from the document, the same on every run, and what is said of the answers."""
    document = tmp_path / "openapi.yaml"
    document.write_text(yaml.safe_dump(closed(load()), sort_keys=False))
    command = [sys.executable, "-m", "schemathesis.cli", "run", str(document), "--url", antiphon.router.url]
    options = [
        "--checks=all",
        # Nobody is asked for a token here, and what plays is up to the files that there are.
        "--exclude-checks=ignored_auth,positive_data_acceptance",
        "--phases=examples,coverage,fuzzing",
        "--max-examples=2",
        "--generation-deterministic",
        "--request-timeout=60",
        "--max-response-time=60",
        "--no-color",
    ]
    for operation in LEFT_OUT:
        options.append(f"--exclude-operation-id={operation}")
    done = subprocess.run(
        command + options,
        cwd=tmp_path,
        env=os.environ | {"SCHEMATHESIS_HOOKS": "schemathesis_hooks", "PYTHONPATH": str(ROOT / "Tests" / "EndToEnd")},
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr
    assert antiphon.router.is_running and antiphon.engine.is_running
