"""What one client may keep on the Router: its own sessions make room for its own, and its queues have a bound."""

import asyncio

import aiohttp
import pytest

from client import bearer, request
from processes import Antiphon
from tagged import make_picture, make_tagged

#: As in RouterLimits+State.swift.
SESSIONS_PER_CLIENT = 2_000
CLIENT_QUEUE_BYTES = 32 << 20


@pytest.fixture
def router(tmp_path, media, mint):
    with Antiphon(tmp_path, media.root, router_options=mint.options) as running:
        running.engine.kill()
        yield running.router


async def ask(router, token: str, method: str, path: str, body: dict | None = None):
    return await request(method, f"{router.url}/api/v1/sessions/{path}", body, headers=bearer(token))


async def test_sessions_of_a_client_make_room_for_its_own_alone(router, mint):
    other = mint.token("b-*", "control", sub="other")
    greedy = mint.token("a-*", "control", sub="greedy")
    for number in range(20):
        assert (await ask(router, other, "POST", f"b-{number}/volume", {"level": 0.5})).status == 200
    wave = asyncio.Semaphore(16)

    async def loop(number: int):
        async with wave:
            path = f"a-{number}/queue/loop"
            while (answer := await ask(router, greedy, "POST", path, {"mode": "queue"})).status == 429:
                await asyncio.sleep(1)
            return answer.status

    statuses = await asyncio.gather(*(loop(number) for number in range(SESSIONS_PER_CLIENT + 100)))
    assert set(statuses) == {200}
    for number in range(20):
        shown = await ask(router, other, "GET", f"b-{number}")
        assert shown.body["volume"] == 0.5, shown
    names = {session["session_id"] for session in (await ask(router, greedy, "GET", "")).body["sessions"]}
    assert len(names) == SESSIONS_PER_CLIENT and f"a-{SESSIONS_PER_CLIENT + 99}" in names and "a-0" not in names
    router.kill()
    router.start()
    assert (await ask(router, other, "GET", "b-7")).body["volume"] == 0.5


async def test_queues_of_a_client_have_a_bound_and_anothers_do_not_mind(router, mint):
    other = mint.token("b-*", "control", sub="other")
    greedy = mint.token("a-*", "control", sub="greedy")
    tracks = [{"url": "https://example.org/" + "x" * 3_900, "title": str(number)} for number in range(15)]
    request_errors = []
    for session in range(8):
        while True:
            answer = await ask(router, greedy, "POST", f"a-{session}/queue", {"tracks": tracks})
            if answer.status == 429:
                await asyncio.sleep(1)
                continue
            if answer.status != 200:
                break
        assert answer.status == 409 and answer.code == "queue_full" and answer.body["hint"], answer
        request_errors.append(answer.body["message"])
    assert any("the queue and its history" in message for message in request_errors), request_errors
    assert f"of {CLIENT_QUEUE_BYTES}" in request_errors[-1], request_errors
    answer = await ask(router, other, "POST", "b-1/queue", {"tracks": tracks})
    assert answer.status == 200, answer
    # A start reads none of it, and what is asked for is there.
    totals = [(await ask(router, greedy, "GET", f"a-{session}/queue")).body["total"] for session in range(8)]
    router.kill()
    router.start()
    assert resident_mebibytes(router.pid) < 80
    again = await asyncio.gather(*(ask(router, greedy, "GET", f"a-{session}/queue") for session in range(8)))
    assert [answer.body["total"] for answer in again] == totals
    assert resident_mebibytes(router.pid) < 150


def resident_mebibytes(pid: int) -> float:
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmRSS"))


async def test_covers_and_long_answers_of_one_client_do_not_keep_anothers_waiting(tmp_path, media, mint):
    other = mint.token("b-*", "control", sub="other")
    greedy = mint.token("a-*", "control", sub="greedy")
    picture = b"\xff\xd8\xff" + bytes(3 << 20)
    make_tagged(media, "covers/own.flac", cover=make_picture(tmp_path), seconds=1)
    make_tagged(media, "covers/bare.flac", seconds=1)
    song = (media.root / "covers" / "bare.flac").read_bytes()
    for number in range(60):
        (media.root / "covers" / str(number)).mkdir()
        media.write(f"covers/{number}/song.flac", song)
        media.write(f"covers/{number}/cover.jpg", picture)
    with Antiphon(tmp_path, media.root, router_options=mint.options) as running:

        async def cover(token: str, name: str) -> int:
            url = f"{running.router.url}/artwork?url=media:covers/{name}.flac"
            async with aiohttp.ClientSession() as http, http.get(url, headers=bearer(token)) as answer:
                await answer.read()
                return answer.status

        flood = [asyncio.create_task(cover(greedy, f"{number}/song")) for number in range(60)]
        flood += [asyncio.create_task(ask(running.router, greedy, "GET", "")) for _ in range(100)]
        await asyncio.sleep(0.2)
        began = asyncio.get_running_loop().time()
        assert await cover(other, "own") == 200
        assert (await ask(running.router, other, "GET", "")).status == 200
        assert asyncio.get_running_loop().time() - began < 5
        await asyncio.wait(flood)
