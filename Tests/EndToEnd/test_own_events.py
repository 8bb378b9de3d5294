"""`POST /webhooks/event`: music of anything that is not GitHub."""

import itertools
import json

import pytest

import github
from client import listen, request
from github import SECRET
from processes import Antiphon, wait_ready

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def options(tmp_path_factory) -> tuple[str, ...]:
    folder = tmp_path_factory.mktemp("secret")
    (folder / "secret").touch(mode=0o600)
    (folder / "secret").write_text(SECRET)
    (folder / "silent-door.json").write_text(json.dumps({"events": {"event": {"silent": True}}}))
    return ("--github-secret-file", str(folder / "secret"), "--music-mappings", str(folder))


@pytest.fixture(scope="module")
def antiphon(tmp_path_factory, media, options):
    with Antiphon(tmp_path_factory.mktemp("own"), media.root, router_options=options) as running:
        yield running


@pytest.fixture
def source() -> str:
    return f"door-{next(_numbers)}"


async def send(router: str, body: dict | bytes, signature: str | None = ""):
    """An empty signature is replaced with the right one."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"}
    if signature is not None:
        headers["X-Hub-Signature-256"] = signature or github.signature(raw)
    return await request("POST", f"{router}/webhooks/event", raw=raw, headers=headers)


async def test_a_doorbell_is_heard(antiphon, source):
    router = antiphon.router.url
    body = {"source": source, "id": "1", "title": "Somebody is at the door", "actor": "front door", "magnitude": 0.4}
    # As everywhere: a newer client may send it.
    body["colour"] = "red"
    answer = await send(router, body)
    assert (answer.status, answer.body) == (202, {"status": "queued", "repository": source, "number": 1}), answer
    async with listen(router, source) as listener:
        await listener.wait_event("playing")
        assert (await send(router, body | {"id": "2", "outcome": "failure", "kind": "check_run"})).status == 202
        # The first may sound only now.
        music = await listener.wait(
            lambda: next((each for each in listener.events("music") if each["event"]["kind"] == "check_run"), None),
            "the second's music",
        )
    event = music["event"]
    assert (event["kind"], event["outcome"], event["sender"]) == ("check_run", "failure", "front door"), event
    assert event["title"] == "Somebody is at the door" and event["repository"] == source and music["notes"]


async def test_an_event_is_taken_once(tmp_path, media, options):
    with Antiphon(tmp_path, media.root, router_options=options) as antiphon:
        router = antiphon.router.url
        body = {"source": "door", "id": "ring-1", "title": "T"}
        assert (await send(router, body)).body["status"] == "queued"
        assert (await send(router, body)).body == {"status": "duplicate"}
        # The same ID of another source is another event.
        assert (await send(router, body | {"source": "gate"})).body["status"] == "queued"
        antiphon.router.kill()
        antiphon.router.start()
        wait_ready(antiphon.router)
        assert (await send(router, body)).body == {"status": "duplicate"}


async def test_the_mapping_file_says_how_it_sounds(antiphon):
    router = antiphon.router.url
    assert (await send(router, {"source": "silent-door", "id": "1", "title": "T"})).status == 202
    assert (await send(router, {"source": "silent-door", "id": "2", "title": "T", "kind": "star"})).status == 202
    async with listen(router, "silent-door") as listener:
        await listener.wait_event("playing")
        for number, kind in ((3, "event"), (4, "star")):
            await send(router, {"source": "silent-door", "id": str(number), "title": "T", "kind": kind})
        assert (await listener.wait_event("music"))["event"]["kind"] == "star"


async def test_who_does_not_know_the_secret_is_not_believed(antiphon, source):
    body = json.dumps({"source": source, "id": "1", "title": "T"}).encode()
    wrong = ["sha256=" + "0" * 64, github.signature(body, "another secret of length"), github.signature(body + b" ")]
    for signature in (None, "nonsense", *wrong):
        answer = await send(antiphon.router.url, body, signature)
        assert (answer.status, answer.code) == (401, "unauthorized"), answer
    answer = await request("GET", f"{antiphon.router.url}/api/v1/repositories/{source}")
    assert answer.status == 404, answer


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (b"", 400, "object"),
        (b"[1]", 400, "object"),
        (b"[" * 60_000, 400, ""),
        (b'{"source": "\xff"}', 400, "UTF-8"),
        (b'{"title": "' + "\u0301".encode() * 20_000 + b'"}', 400, "combining"),
        (b'{"title": "' + b"x" * 70_000 + b'"}', 413, "65536"),
        ({"id": "1", "title": "T"}, 422, "source"),
        ({"source": "no/source", "id": "1", "title": "T"}, 400, '"/"'),
        ({"source": "a", "id": "1", "title": "T", "kind": "ring"}, 422, "deployment_status"),
        ({"source": "a", "id": "1", "title": "T", "magnitude": 2}, 422, "magnitude"),
    ],
    ids=str,
)
async def test_what_is_wrong_is_named(antiphon, body, status, words):
    answer = await send(antiphon.router.url, body)
    assert answer.status == status and words in answer.body["message"], answer


async def test_one_that_runs_wild_is_slowed(antiphon, source):
    router = antiphon.router.url
    for number in range(400):
        answer = await send(router, {"source": source, "id": str(number), "title": "T", "kind": "star"})
        if answer.status != 202:
            break
    assert (answer.status, answer.code) == (429, "rate_limited") and number >= 120, answer
    assert int(answer.headers["Retry-After"]) >= 1
    assert (await send(router, {"source": f"{source}-other", "id": "1", "title": "T"})).status == 202


async def test_trying_it_gives_a_source_no_other_name(antiphon, source):
    router = antiphon.router.url
    await send(router, {"source": source, "id": "1", "title": "T"})
    tried = await request("POST", f"{router}/stream/{source}/test", {"event": "star"})
    assert tried.status == 202, tried
    answer = await request("GET", f"{router}/api/v1/repositories/{source}")
    assert answer.body["name"] == source and answer.body["events"] == 2, answer


async def test_github_has_no_such_event(antiphon):
    answer = await github.deliver(antiphon.router.url, "event", {"source": "door", "id": "1", "title": "T"})
    assert (answer.status, answer.body) == (202, {"status": "ignored"}), answer
    answer = await request("POST", f"{antiphon.router.url}/stream/door/test", {"event": "event"})
    assert answer.status == 400, answer
