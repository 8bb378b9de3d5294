"""GitHub's deliveries: who is believed, what is read of them, and that each is taken once and not lost."""

import asyncio
import itertools
import json
import socket

import pytest

import github
from client import bearer, request
from github import EVENTS, SECRET, accepted, deliver
from inbox import PATIENCE_SECONDS
from processes import Antiphon, wait_ready

_numbers = itertools.count(1_296_269)


@pytest.fixture(scope="module")
def options(tmp_path_factory) -> tuple[str, ...]:
    file = tmp_path_factory.mktemp("secret") / "github.secret"
    file.touch(mode=0o600)
    file.write_text(SECRET + "\n")
    return ("--github-secret-file", str(file))


@pytest.fixture(scope="module")
def antiphon(tmp_path_factory, media, options):
    with Antiphon(tmp_path_factory.mktemp("webhooks"), media.root, router_options=options) as running:
        yield running
        assert SECRET not in running.router.log.read_text(errors="replace"), "the log has the secret"


@pytest.fixture
def number() -> int:
    """A repository that no other test uses."""
    return next(_numbers)


async def events(router: str, number: int, count: int) -> list[dict]:
    """The repository's events, the newest first, when there are so many that have become music."""
    deadline = asyncio.get_running_loop().time() + PATIENCE_SECONDS
    while True:
        answer = await request("GET", f"{router}/api/v1/repositories/{number}/events")
        found = answer.body["events"] if answer.status == 200 else []
        if len(found) >= count:
            return found
        assert asyncio.get_running_loop().time() < deadline, answer
        await asyncio.sleep(0.02)


async def metric(router: str, name: str) -> float:
    answer = await request("GET", f"{router}/metrics")
    return next((float(line.split()[-1]) for line in answer.body.splitlines() if line.startswith(name)), 0)


@pytest.mark.parametrize("kind", EVENTS)
async def test_every_kind_becomes_music(antiphon, number, kind):
    router = antiphon.router.url
    answer = accepted(await deliver(router, kind, EVENTS[kind](number)))
    assert answer.body == {"status": "queued", "repository": str(number), "number": 1}
    [music] = await events(router, number, 1)
    assert music["event"]["kind"] == kind and music["event"]["sender"] == "octocat"
    assert music["event"]["repository"] == "octocat/Hello-World" and music["event"]["title"]
    assert music["session_id"] == str(number) and music["number"] == 1
    assert music["notes"] and 4_000 <= music["duration_ms"] <= 25_000
    assert all(0 <= voice < len(music["voices"]) for voice, *_ in music["notes"])
    counted = f'antiphon_router_webhook_deliveries_total{{answer="queued",event="{kind}"}}'
    assert await metric(router, counted) >= 1


async def test_what_events_say(antiphon, number):
    """What is read of payloads, seen in what listeners are shown."""
    cases = [
        ("push", github.push(number, "One", "Two\n\nThree"), {"title": "Two", "commits": 2, "branch": "main"}),
        ("push", github.push(number), {"commits": 0, "title": "deleted main"}),
        (
            "pull_request",
            github.pull_request(number, "closed", merged=True),
            {"outcome": "success", "action": "closed"},
        ),
        ("pull_request", github.pull_request(number, "closed"), {"outcome": "neutral"}),
        ("pull_request_review", github.pull_request_review(number, "changes_requested"), {"outcome": "failure"}),
        ("check_run", github.check_run(number, "created", None), {"outcome": "pending", "branch": "changes"}),
        ("workflow_run", github.workflow_run(number), {"outcome": "failure", "title": "Build: Update README.md"}),
        ("deployment_status", github.deployment_status(number, "error"), {"outcome": "failure"}),
        ("issues", github.issues(number, "closed", "not_planned"), {"outcome": "neutral"}),
        ("release", github.release(number), {"title": "v1.0.0 Overture", "branch": "v1.0.0"}),
        ("star", github.star(number, "deleted"), {"title": "took a star back"}),
        ("fork", github.fork(number), {"title": "forked to hubot/Hello-World"}),
    ]
    for kind, payload, _ in cases:
        accepted(await deliver(antiphon.router.url, kind, payload))
    found = list(reversed(await events(antiphon.router.url, number, len(cases))))
    for (kind, _, expected), music in zip(cases, found, strict=True):
        shown = {name: music["event"].get(name) for name in expected}
        assert shown == expected, (kind, music["event"])


async def test_ping_and_what_is_not_known_play_nothing(antiphon, number):
    router = antiphon.router.url
    answer = await deliver(router, "ping", github.ping(number))
    assert (answer.status, answer.body) == (200, {"status": "pong"})
    for event in ("watch", "member", "security_advisory"):
        answer = await deliver(router, event, {"anything": True})
        assert (answer.status, answer.body) == (202, {"status": "ignored"})
    assert (await request("GET", f"{router}/api/v1/repositories/{number}")).code == "not_found"


async def test_forms_are_read(antiphon, number):
    payload = github.push(number, "Größe & Maß = 100 % + ü")
    accepted(await deliver(antiphon.router.url, "push", payload, form=True))
    [music] = await events(antiphon.router.url, number, 1)
    assert music["event"]["title"] == "Größe & Maß = 100 % + ü"
    answer = await deliver(
        antiphon.router.url, "push", b"nothing=1", changed={"Content-Type": "application/x-www-form-urlencoded"}
    )
    assert answer.status == 400 and "payload" in answer.body["message"], answer


async def test_only_github_is_believed(antiphon, number):
    router, payload = antiphon.router.url, json.dumps(github.push(number, "No")).encode()
    good = github.signature(payload)
    cases = {
        "none": None,
        "empty": "",
        "no prefix": good.removeprefix("sha256="),
        "another hash": good.replace("sha256=", "sha1="),
        "cut short": good[:-1],
        "one more": good + "0",
        "no digits": "sha256=" + "g" * 64,
        "another secret": github.signature(payload, "another secret of length"),
        "of another body": github.signature(payload + b" "),
        "a flipped bit": good[:-1] + ("0" if good[-1] != "0" else "1"),
        "not ASCII": "sha256=" + "é" * 32,
    }
    for what, value in cases.items():
        answer = await deliver(router, "push", payload, changed={"X-Hub-Signature-256": value})
        assert (answer.status, answer.code) == (401, "unauthorized"), (what, answer)
    tampered = payload.replace(b'"No"', b'"Na"')
    assert tampered != payload
    answer = await deliver(router, "push", tampered, changed={"X-Hub-Signature-256": good})
    assert (answer.status, answer.code) == (401, "unauthorized"), answer
    # Garbage is not even looked at before the signature.
    answer = await deliver(router, "push", b"{", secret="another secret of length")
    assert (answer.status, answer.code) == (401, "unauthorized"), answer
    assert (await request("GET", f"{router}/api/v1/repositories/{number}")).code == "not_found"


async def test_headers_that_github_does_not_send(antiphon, number):
    router, payload = antiphon.router.url, github.push(number, "No")
    cases = [
        ("X-GitHub-Delivery", None, 400),
        ("X-GitHub-Delivery", "a" * 65, 400),
        ("X-GitHub-Delivery", "../../etc", 400),
        ("X-GitHub-Event", None, 400),
        ("X-GitHub-Event", "push push", 400),
        ("Content-Type", "text/plain", 415),
        ("Content-Type", "multipart/form-data; boundary=x", 415),
    ]
    for name, value, status in cases:
        answer = await deliver(router, "push", payload, changed={name: value})
        assert answer.status == status and name in answer.body["message"], (name, value, answer)


def without(payload: dict, path: str) -> dict:
    copy = json.loads(json.dumps(payload))
    *folders, name = path.split(".")
    place = copy
    for folder in folders:
        place = place[folder]
    del place[name]
    return copy


def replaced(payload: dict, path: str, value) -> dict:
    copy = json.loads(json.dumps(payload))
    *folders, name = path.split(".")
    place = copy
    for folder in folders:
        place = place[folder]
    place[name] = value
    return copy


async def test_payloads_that_make_no_sense_are_refused_by_name(antiphon, number):
    router, push = antiphon.router.url, github.push(number, "No")
    cases = [
        ("push", without(push, "repository"), "repository"),
        ("push", without(push, "repository.id"), "repository.id"),
        ("push", replaced(push, "repository.id", -1), "repository.id"),
        ("push", replaced(push, "repository.id", 1.5), "repository.id"),
        ("push", replaced(push, "repository.id", "a name"), "repository.id"),
        ("push", replaced(push, "repository.id", "name"), "repository.id"),
        ("push", replaced(push, "repository.full_name", "x"), "repository.full_name"),
        ("push", replaced(push, "repository.full_name", "a/<script>"), "repository.full_name"),
        ("push", replaced(push, "repository.full_name", "a/" + "b" * 200), "repository.full_name"),
        ("push", without(push, "ref"), "ref"),
        ("push", replaced(push, "ref", 7), "ref"),
        ("push", replaced(push, "commits", {}), "commits"),
        ("push", replaced(push, "commits", None), "commits"),
        ("pull_request", without(github.pull_request(number), "pull_request.title"), "pull_request.title"),
        ("pull_request_review", without(github.pull_request_review(number), "review"), "review"),
        ("check_run", without(github.check_run(number), "check_run.status"), "check_run.status"),
        ("workflow_run", replaced(github.workflow_run(number), "workflow_run", None), "workflow_run"),
        ("deployment_status", without(github.deployment_status(number), "deployment_status.state"), "state"),
        ("issues", without(github.issues(number), "action"), "action"),
        ("issue_comment", without(github.issue_comment(number), "comment"), "comment"),
        ("release", without(github.release(number), "release.tag_name"), "release.tag_name"),
        ("star", without(github.star(number), "action"), "action"),
        ("fork", without(github.fork(number), "forkee"), "forkee"),
    ]
    for event, payload, name in cases:
        answer = await deliver(router, event, payload)
        assert answer.status == 422 and name in answer.body["message"], (name, answer)
    for garbage in (b"", b"{", b"[]", b"null", b"\xff\xfe", b"[" * 100_000, b'{"repository": ' * 5_000):
        answer = await deliver(router, "push", garbage)
        assert answer.status in (400, 422) and answer.code in ("invalid_json", "invalid_command"), (
            garbage[:20],
            answer,
        )
    assert (await request("GET", f"{router}/api/v1/repositories/{number}")).code == "not_found"


async def test_strangers_words_are_cleaned(antiphon, number):
    router = antiphon.router.url
    title = "\u202egnp.exe\u2066 \x00\x1b[31mred\x07 \u200b" + "long " * 100
    payload = github.pull_request(number)
    payload = replaced(payload, "pull_request.title", title)
    payload = replaced(payload, "pull_request.html_url", "javascript:alert(1)")
    payload = replaced(payload, "pull_request.additions", -5)
    payload = replaced(payload, "sender.login", "<b>\n\n\t" + "x" * 1_000)
    accepted(await deliver(router, "pull_request", payload))
    [music] = await events(router, number, 1)
    shown = music["event"]
    assert shown["title"].startswith("gnp.exe [31mred long long") and len(shown["title"]) == 200
    assert shown["title"].endswith("…") and shown["title"].isprintable(), shown
    assert "url" not in shown and len(shown["sender"]) == 64 and shown["sender"].isprintable()


async def test_a_delivery_is_taken_once(antiphon, number):
    router, payload = antiphon.router.url, github.push(number, "Once")
    answers = await asyncio.gather(*(deliver(router, "push", payload, delivery=f"once-{number}") for _ in range(8)))
    statuses = sorted(answer.body["status"] for answer in answers)
    assert statuses == ["duplicate"] * 7 + ["queued"] and {answer.status for answer in answers} == {202}
    assert (await deliver(router, "push", payload, delivery=f"once-{number}")).body == {"status": "duplicate"}
    # The same again under another name is another event.
    accepted(await deliver(router, "push", payload))
    assert len(await events(router, number, 2)) == 2


async def test_a_delivery_is_known_after_a_restart(tmp_path, media, options, number):
    with Antiphon(tmp_path, media.root, router_options=options) as antiphon:
        router, payload = antiphon.router.url, github.push(number, "Once")
        accepted(await deliver(router, "push", payload, delivery="restart"))
        [before] = await events(router, number, 1)
        for stop in (antiphon.router.terminate, antiphon.router.kill):
            stop()
            antiphon.router.start()
            wait_ready(antiphon.router)
            assert (await deliver(router, "push", payload, delivery="restart")).body == {"status": "duplicate"}
            assert await events(router, number, 1) == [before]


async def test_nothing_that_was_answered_is_lost(tmp_path, media, options, number):
    """The Router dies the moment it has answered."""
    with Antiphon(tmp_path, media.root, router_options=options) as antiphon:
        for count in range(1, 6):
            answers = await asyncio.gather(
                *(deliver(antiphon.router.url, "push", github.push(number, f"{count}.{each}")) for each in range(4))
            )
            antiphon.router.kill()
            assert all(accepted(answer) for answer in answers)
            antiphon.router.start()
            wait_ready(antiphon.router)
            found = await events(antiphon.router.url, number, 4 * count)
            assert [music["number"] for music in found] == list(range(4 * count, 0, -1))


async def test_a_repository_that_runs_wild_is_slowed(antiphon, number):
    router, other = antiphon.router.url, next(_numbers)
    star = github.star(number)
    answers = []
    while not answers or answers[-1].status == 202:
        answers += await asyncio.gather(
            *(deliver(router, "star", star, delivery=f"w{number}-{len(answers) + each}") for each in range(20))
        )
        assert len(answers) <= 400, "nothing slowed it down"
    refused = next(answer for answer in answers if answer.status != 202)
    assert (refused.status, refused.code) == (429, "rate_limited") and len(answers) >= 120
    wait = int(refused.headers["Retry-After"])
    assert 1 <= wait <= 5
    accepted(await deliver(router, "star", github.star(other)))
    # What was refused is not taken for delivered.
    index = next(index for index, answer in enumerate(answers) if answer.status == 429)
    for _ in range(20):
        await asyncio.sleep(wait)
        answer = await deliver(router, "star", star, delivery=f"w{number}-{index}")
        if answer.status != 429:
            break
    accepted(answer)


async def test_bodies_have_a_limit(antiphon, number):
    router, cap = antiphon.router.url, 26_214_400
    payload = json.dumps(github.push(number, "Large")).encode()
    large = payload[:-1] + b" " * (cap - len(payload)) + b"}"
    assert len(large) == cap
    accepted(await deliver(router, "push", large))
    answer = await deliver(router, "push", large + b" ")
    assert (answer.status, answer.code) == (413, "line_too_long"), answer
    # Nor where it is not announced.
    host, port = antiphon.router.address.split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    head = github.headers("push", b"")
    lines = "".join(f"{name}: {value}\r\n" for name, value in head.items())
    writer.write(
        f"POST /webhooks/github HTTP/1.1\r\nHost: {host}\r\n{lines}Transfer-Encoding: chunked\r\n\r\n".encode()
    )
    sent = 0
    try:
        while sent <= 2 * cap:
            writer.write(b"100000\r\n" + b" " * 0x100000 + b"\r\n")
            await writer.drain()
            sent += 0x100000
    except ConnectionError:
        pass
    status = await asyncio.wait_for(reader.readline(), PATIENCE_SECONDS)
    assert b" 413 " in status, status
    writer.close()
    accepted(await deliver(router, "star", github.star(number)))


async def test_a_slow_body_is_given_up_in_time(antiphon, number):
    """Nothing of it came for 2 s; others are served meanwhile."""
    body = json.dumps(github.push(number, "Slow")).encode()
    host, port = antiphon.router.address.split(":")
    lines = "".join(f"{name}: {value}\r\n" for name, value in github.headers("push", body).items())
    head = f"POST /webhooks/github HTTP/1.1\r\nHost: {host}\r\n{lines}Content-Length: {len(body)}\r\n\r\n".encode()
    connections = []
    for _ in range(50):
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(head + body[:100])
        connections.append((reader, writer))
    begun = asyncio.get_running_loop().time()
    accepted(await deliver(antiphon.router.url, "push", github.push(number, "Quick")))
    for reader, writer in connections:
        status = await asyncio.wait_for(reader.readline(), 20)
        assert b" 408 " in status, status
        writer.close()
    assert 1.9 <= asyncio.get_running_loop().time() - begun <= 8


async def test_without_a_secret_nobody_is_believed(tmp_path, media, number):
    with Antiphon(tmp_path, media.root) as antiphon:
        for secret in (SECRET, ""):
            answer = await deliver(antiphon.router.url, "push", github.push(number, "No"), secret=secret)
            assert (answer.status, answer.code) == (503, "webhooks_disabled"), answer
            assert "--github-secret-file" in answer.body["hint"]


async def test_the_secret_may_be_in_the_environment(tmp_path, media, number):
    with Antiphon(tmp_path, media.root, router=True) as antiphon:
        antiphon.router.terminate()
        antiphon.router.environment["ANTIPHON_GITHUB_SECRET"] = SECRET
        antiphon.router.start()
        accepted(await deliver(antiphon.router.url, "push", github.push(number, "Yes")))
        assert SECRET not in antiphon.router.log.read_text()


async def test_tokens_do_not_matter_to_deliveries(tmp_path, media, mint, options, number):
    with Antiphon(tmp_path, media.root, router_options=(*options, *mint.options)) as antiphon:
        router = antiphon.router.url
        accepted(await deliver(router, "push", github.push(number, "Yes")))
        headers = bearer(mint.token(str(number), "listen"))
        answer = await request("GET", f"{router}/api/v1/repositories", headers=headers)
        assert [each["id"] for each in answer.body["repositories"]] == [str(number)]
        answer = await request("GET", f"{router}/api/v1/repositories", headers=bearer(mint.token("1", "listen")))
        assert answer.body == {"repositories": [], "webhooks": True, "polling": []}


async def test_many_strangers_bodies_are_not_all_held(antiphon, number):
    """Each sends nearly 25 MB without a good signature and does not end; the Router's memory stays bounded."""
    host, port = antiphon.router.address.split(":")
    lines = "".join(f"{name}: {value}\r\n" for name, value in github.headers("push", b"").items())
    head = f"POST /webhooks/github HTTP/1.1\r\nHost: {host}\r\n{lines}Content-Length: 26000000\r\n\r\n".encode()

    def send() -> bytes:
        with socket.create_connection((host, int(port)), timeout=PATIENCE_SECONDS) as stranger:
            try:
                stranger.sendall(head + b" " * 25_000_000)
                return stranger.recv(100)
            except ConnectionError:
                return b""

    answers = await asyncio.gather(*(asyncio.to_thread(send) for _ in range(12)))
    assert any(b" 503 " in answer for answer in answers), answers
    resident = await metric(antiphon.router.url, "process_resident_memory_bytes")
    assert resident < 200e6, f"{resident / 1e6} MB"
    accepted(await deliver(antiphon.router.url, "push", github.push(number, "After")))


async def hold(antiphon, address: str, byte_count: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A stranger's body, of which the last bytes do not come."""
    host, port = antiphon.router.address.split(":")
    lines = "".join(f"{name}: {value}\r\n" for name, value in github.headers("push", b"").items())
    reader, writer = await asyncio.open_connection(host, int(port), local_addr=(address, 0))
    head = f"POST /webhooks/github HTTP/1.1\r\nHost: {host}\r\n{lines}Content-Length: {byte_count + 10}\r\n\r\n"
    writer.write(head.encode() + b" " * byte_count)
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await writer.drain()
    except ConnectionError:
        pass
    return reader, writer


@pytest.mark.parametrize("address", ["127.0.0.1", "127.0.0.9"])
async def test_held_bodies_keep_no_delivery_away(antiphon, number, address):
    """Bodies of 24 MB, again and again, from the address that GitHub's deliveries come from, and from another."""
    router = antiphon.router.url

    async def attack() -> None:
        while True:
            held = [await hold(antiphon, address, 24_000_000) for _ in range(8)]
            await asyncio.sleep(0.5)
            for _, writer in held:
                writer.close()

    attacking = asyncio.create_task(attack())
    try:
        await asyncio.sleep(0.5)
        for count in range(20):
            async with asyncio.timeout(5):
                accepted(await deliver(router, "push", github.push(number, f"Through {count}")))
            await asyncio.sleep(0.1)
        resident = await metric(router, "process_resident_memory_bytes")
        print(f"{resident / 1e6:.0f} MB")
        assert resident < 200e6, f"{resident / 1e6} MB"
        assert not attacking.done(), attacking
    finally:
        attacking.cancel()


async def test_120_deliveries_at_once(antiphon, number):
    """GitHub sends from a few addresses, and everything of a busy hour at once."""
    payload = json.dumps(github.push(number, "x" * 100)).encode()
    payload = payload[:-1] + b" " * 200_000 + b"}"
    answers = await asyncio.gather(
        *(deliver(antiphon.router.url, "push", payload, delivery=f"b{number}-{each}") for each in range(120))
    )
    assert {answer.status for answer in answers} == {202}, [a for a in answers if a.status != 202][:3]
