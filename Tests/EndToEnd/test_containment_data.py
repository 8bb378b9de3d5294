"""What one client keeps on the Router: nobody else's is erased for it, and it has an end."""

import asyncio
import time

import pytest

from bystander import ROUTER_MEBIBYTES, TONE, beside
from client import bearer, request
from containment import post, run
from figures import Footprint
from processes import Antiphon, wait_ready

pytestmark = pytest.mark.measures

#: What the bystander has put away: a queue that plays nothing, and a repository with one piece.
IDLE = "b-idle"
REPOSITORY = "b-4711"

START_SECONDS = 5.0

#: Of one `queue_add` of the stranger's, and what all of theirs may come to: disk and memory of a small machine.
ADD_BYTES = 60_000
KEPT_MEGABYTES = 64


@pytest.fixture
def antiphon(tmp_path, media, mint):
    media.path(TONE)
    with Antiphon(tmp_path, media.root, router_options=mint.options) as running:
        yield running


@pytest.fixture
def token(mint):
    return mint.token("a-*", "control", sub="stranger")


@pytest.fixture
def own(antiphon, mint):
    """The bystander's own requests."""
    headers = bearer(mint.token("b-*", "control", sub="bystander"))

    async def ask(method: str, path: str, body: dict | None = None):
        return await request(method, antiphon.router.url + path, body, headers=headers)

    return ask


async def put_away(own) -> None:
    tracks = [{"url": TONE.url, "title": f"Track {number}"} for number in range(4)]
    answers = [
        await own("POST", f"/api/v1/sessions/{IDLE}/queue", {"tracks": tracks}),
        await own("POST", f"/api/v1/sessions/{IDLE}/stop", {}),
        await own("POST", f"/stream/{REPOSITORY}/test", {"event": "push"}),
    ]
    assert [answer.status for answer in answers] == [200, 200, 202], answers
    async with asyncio.timeout(20):
        while (await own("GET", f"/api/v1/repositories/{REPOSITORY}")).status != 200:
            await asyncio.sleep(0.05)


async def hold_put_away(figures, own) -> None:
    """All of it is there, now."""
    queue = await own("GET", f"/api/v1/sessions/{IDLE}/queue")
    titles = [track.get("title") for track in queue.body.get("tracks", [])]
    figures.hold("tracks of the idle queue", sum(f"Track {number}" in titles for number in range(4)), at_least=3)
    repository = await own("GET", f"/api/v1/repositories/{REPOSITORY}")
    figures.hold("status of the repository", repository.status, at_most=200)


async def test_sessions_and_repositories_without_end(antiphon, mint, media, token, own):
    """A thousand test events and 10,001 loops: what others have put away longest ago is still there."""
    await put_away(own)
    wanted = [("POST", "/stream/a-N/test", '{"event":"star"}', 1_000)]
    wanted += [("POST", "/api/v1/sessions/a-loopN/queue/loop", '{"mode":"queue"}', 10_001)]
    async with beside(antiphon, mint, media) as bystander:
        for each in wanted:
            asked = {"wanted": [each], "connections": 10, "seconds": 4}
            await run("each_once", router=antiphon.router.address, token=token, **asked)
        await hold_put_away(bystander.figures, own)


async def test_queues_that_are_filled(antiphon, mint, media, token, own):
    """Entries of 4 KB into three queues, as fast as they are taken; a Router that was killed starts with them at once.
    That they have an end is shown where nobody else waits for it (test_state_shares.py)."""
    await put_away(own)
    sessions = [f"a-{number}" for number in range(3)]
    for session in sessions:
        answer = await post(antiphon.router.url, f"/api/v1/sessions/{session}/play", token, {"url": TONE.url})
        assert answer.status == 200, answer
    async with beside(antiphon, mint, media, is_judged=False) as bystander:
        asked = {"entries": 10_000, "entry_bytes": 4_000, "seconds": 4}
        reached = await run("fill", router=antiphon.router.address, token=token, sessions=sessions, **asked)
        answers = reached["answers"]
        bystander.figures.hold("adds", answers.get("queue", 0), at_least=3)
        kept = answers.get("queue", 0) * ADD_BYTES / 1e6
        bystander.figures.hold("kept of the stranger's, MB", kept, at_most=KEPT_MEGABYTES)
        await hold_put_away(bystander.figures, own)
        figures = bystander.figures
    antiphon.router.kill()
    begun = time.monotonic()
    antiphon.router.start()
    wait_ready(antiphon.router)
    figures.hold("start of the Router, s", time.monotonic() - begun, at_most=START_SECONDS)
    memory = Footprint(antiphon.router.pid).peak_mebibytes()
    figures.hold("its memory after that, MiB", memory, at_most=ROUTER_MEBIBYTES)
    await hold_put_away(figures, own)
    figures.judge()
