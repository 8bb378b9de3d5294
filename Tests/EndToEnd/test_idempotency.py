"""A command with an idempotency key is carried out once, however often it is sent, and whatever dies meanwhile."""

import asyncio
import random

import aiohttp
import pytest

from client import Answer, listen, request
from media import OGG_OPUS, tone_clip
from processes import Antiphon, wait_ready

LONG = tone_clip(440, 120, OGG_OPUS)
NO_FILE = "media:nothing.flac"


async def ask(antiphon, session: str, path: str, key: str, body: dict | None = None, method: str = "POST") -> Answer:
    url = f"{antiphon.router.url}/api/v1/sessions/{session}/{path}"
    return await request(method, url, body, headers={"Idempotency-Key": key})


async def waiting(antiphon, session: str) -> list[str]:
    answer = await request("GET", f"{antiphon.router.url}/api/v1/sessions/{session}/queue")
    assert answer.status == 200, answer
    return [entry["title"] for entry in answer.body["tracks"]]


def track(title: str) -> dict:
    return {"url": LONG.url, "title": title}


@pytest.fixture
async def playing(antiphon, media, new_session):
    """A session that plays, so that what is added waits."""
    media.path(LONG)
    session = new_session()
    answer = await request("POST", f"{antiphon.router.url}/api/v1/sessions/{session}/play", {"url": LONG.url})
    assert answer.status == 200, answer
    return session


async def test_a_repetition_gets_the_first_answer(antiphon, playing):
    first = await ask(antiphon, playing, "queue", "k1", track("a"))
    assert first.status == 200 and len(first.body["added"]) == 1, first
    await ask(antiphon, playing, "queue", "k2", track("b"))
    again = await ask(antiphon, playing, "queue", "k1", track("a"))
    assert (again.status, again.body) == (first.status, first.body), (again, first)
    assert await waiting(antiphon, playing) == ["a", "b"]
    # A field that is not known, and one that says what is meant anyway, make no other command.
    again = await ask(antiphon, playing, "queue", "k1", track("a") | {"colour": "blue", "next": False})
    assert again.body == first.body, again


async def test_every_changing_command_takes_a_key(antiphon, playing):
    for _ in range(2):
        for path, body in (("queue/shuffle", None), ("queue/loop", {"mode": "off"}), ("quality", {"bitrate_kbps": 64})):
            answer = await ask(antiphon, playing, path, path.replace("/", "-"), body)
            assert answer.status == 200, (path, answer)
    added = [(await ask(antiphon, playing, "queue", f"k{name}", track(name))).body["added"][0] for name in "abc"]
    for _ in range(2):
        answer = await ask(antiphon, playing, f"queue/{added[0]}", "remove", method="DELETE")
        assert answer.status == 200, answer
        answer = await ask(antiphon, playing, f"queue/{added[2]}/move", "move", {"position": 0})
        assert answer.status == 200, answer
    assert await waiting(antiphon, playing) == ["c", "b"]
    skipped = [await ask(antiphon, playing, "skip", "skip") for _ in range(3)]
    assert {answer.body["total"] for answer in skipped} == {1}, skipped
    assert await waiting(antiphon, playing) == ["b"]
    for _ in range(2):
        await ask(antiphon, playing, "queue", "clear", method="DELETE")
    await ask(antiphon, playing, "queue", "kd", track("d"))
    await ask(antiphon, playing, "queue", "clear", method="DELETE")
    assert await waiting(antiphon, playing) == ["d"]


async def test_a_play_is_not_begun_again(antiphon, media, new_session):
    media.path(LONG)
    async with listen(antiphon.router.url, new_session()) as listener:
        first = await listener.play(LONG.url, idempotency_key="play")
        await listener.wait_packets(10)
        since = listener.mark()
        again = await listener.play(LONG.url, idempotency_key="play")
        assert {**again, "request_id": first["request_id"]} == first, (again, first)
        await listener.wait_packets(10, since)
        assert not listener.events("extracting", since) and not listener.events("ended", since), listener
        # The other endpoint, with its own way to say it.
        over_http = await ask(antiphon, listener.session, "play", "play", {"url": LONG.url})
        assert over_http.status == 200, over_http
        assert over_http.body == {name: value for name, value in first.items() if name != "request_id"}, over_http
        await listener.command("stop", idempotency_key="stop")
        assert (await listener.command("stop", idempotency_key="stop"))["type"] == "ended"


async def test_a_key_is_for_one_command_of_one_session(antiphon, playing, new_session):
    await ask(antiphon, playing, "queue", "k", track("a"))
    for path, body in (("queue", track("b")), ("queue", track("a") | {"next": True}), ("skip", None)):
        answer = await ask(antiphon, playing, path, "k", body)
        assert answer.status == 422 and answer.code == "idempotency_conflict", (path, answer)
        assert answer.body["hint"], answer
    assert await waiting(antiphon, playing) == ["a"]
    async with listen(antiphon.router.url, playing) as listener:
        answer = await listener.ask("queue_clear", idempotency_key="k")
        assert answer["type"] == "error" and answer["code"] == "idempotency_conflict", answer
    other = new_session()
    answer = await ask(antiphon, other, "queue", "k", track("other"))
    assert answer.status == 200, answer


async def test_many_at_once_are_one(antiphon, playing):
    answers = await asyncio.gather(*(ask(antiphon, playing, "queue", "k", track("a")) for _ in range(20)))
    assert {answer.status for answer in answers} == {200}, answers
    assert len({str(answer.body) for answer in answers}) == 1, answers
    assert await waiting(antiphon, playing) == ["a"]
    # Also where the engine has to be asked first.
    body = {"query": LONG.url}
    answers = await asyncio.gather(*(ask(antiphon, playing, "queue", "q", body) for _ in range(20)))
    assert {answer.status for answer in answers} == {200}, answers
    assert len(await waiting_entries(antiphon, playing)) == 2


async def waiting_entries(antiphon, session: str) -> list[dict]:
    return (await request("GET", f"{antiphon.router.url}/api/v1/sessions/{session}/queue")).body["tracks"]


@pytest.mark.parametrize("key", ["x" * 65, "two words", "a,b c", ""])
async def test_a_bad_key_is_refused(antiphon, playing, key):
    answer = await ask(antiphon, playing, "queue", key, track("a"))
    assert answer.status == 400 and answer.code == "invalid_command" and answer.body["hint"], answer
    async with listen(antiphon.router.url, playing) as listener:
        answer = await listener.ask("queue_add", **track("a"), idempotency_key=key)
        assert answer["type"] == "error" and answer["code"] == "invalid_command", answer
        answer = await listener.ask("queue_add", **track("a"), idempotency_key=7)
        assert answer["type"] == "error" and "idempotency_key" in answer["message"], answer
    assert await waiting(antiphon, playing) == []


async def test_an_error_is_kept_and_one_that_may_pass_is_not(antiphon, playing, new_session):
    session = new_session()
    first = await ask(antiphon, session, "play", "k", {"url": NO_FILE})
    assert first.status == 404, first
    assert (await ask(antiphon, session, "play", "k", {"url": NO_FILE})).body == first.body
    antiphon.engine.kill()
    try:
        for _ in range(2):
            answer = await ask(antiphon, playing, "seek", "seek", {"position_ms": 1})
            assert answer.status == 503 and answer.code == "engine_unavailable", answer
    finally:
        antiphon.engine.start()
    async with listen(antiphon.router.url, playing) as listener:
        # The engine has the session again.
        await listener.wait_packets(5)
    answer = await ask(antiphon, playing, "seek", "seek", {"position_ms": 1})
    assert answer.status == 200, answer


async def test_a_killed_router_has_the_answers_again(antiphon, playing):
    first = await ask(antiphon, playing, "queue", "k", track("a"))
    nothing = await ask(antiphon, playing, "queue/none", "n", method="DELETE")
    seeked = await ask(antiphon, playing, "seek", "s", {"position_ms": 10_000})
    assert (first.status, nothing.status, seeked.status) == (200, 404, 200), (first, nothing, seeked)
    restart(antiphon)
    again = await ask(antiphon, playing, "queue", "k", track("a"))
    assert (again.status, again.body) == (first.status, first.body), (again, first)
    assert (await ask(antiphon, playing, "queue/none", "n", method="DELETE")).body == nothing.body
    assert (await ask(antiphon, playing, "seek", "s", {"position_ms": 10_000})).body == seeked.body
    assert (await ask(antiphon, playing, "queue", "k", track("b"))).code == "idempotency_conflict"
    assert await waiting(antiphon, playing) == ["a"]


def restart(antiphon: Antiphon) -> None:
    antiphon.router.kill()
    antiphon.router.start()
    wait_ready(antiphon.router)


async def test_who_repeats_until_answered_adds_once(antiphon, playing):
    """The Router is killed at seeded random moments while many clients add, each until it has an answer."""
    dice = random.Random(4)
    names = [f"t{number}" for number in range(200)]
    answered: dict[str, list[str]] = {}
    repetitions = 0

    async def add(name: str) -> None:
        nonlocal repetitions
        while name not in answered:
            try:
                answer = await ask(antiphon, playing, "queue", f"add-{name}", track(name))
            except (OSError, aiohttp.ClientError):
                repetitions += 1
                await asyncio.sleep(0.02)
                continue
            assert answer.status == 200, answer
            answered[name] = answer.body["added"]

    async def adds(some: list[str]) -> None:
        for name in some:
            await add(name)

    async def kills() -> int:
        for count in range(20):
            if len(answered) == len(names):
                return count
            # Not a wait for anything: the moment is to be any.
            await asyncio.sleep(dice.uniform(0, 0.03))
            antiphon.router.kill()
            await asyncio.to_thread(antiphon.router.start)
        return 20

    count, *_ = await asyncio.gather(kills(), *(adds(names[number::6]) for number in range(6)))
    wait_ready(antiphon.router)
    entries = []
    for offset in (0, 100, 200):
        page = f"{antiphon.router.url}/api/v1/sessions/{playing}/queue?offset={offset}"
        entries += (await request("GET", page)).body["tracks"]
    assert sorted(entry["title"] for entry in entries) == sorted(names)
    assert {entry["title"]: [entry["id"]] for entry in entries} == answered
    assert count >= 3 and repetitions > 0, f"{count} kills, {repetitions} repetitions"
