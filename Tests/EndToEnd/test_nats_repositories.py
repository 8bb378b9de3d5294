"""Several Routers, all of which have what happens in repositories: it is told to one, and heard at each."""

import asyncio
from contextlib import ExitStack

import numpy as np
import pytest

import github
from client import listen, request
from cluster import Cluster, wait_metric
from github import accepted, deliver
from github_api import GitHubAPI, event, push
from inbox import PATIENCE_SECONDS
from processes import Server
from stream import samples, stream

REPOSITORY = 1296269
NAME = "octocat/Hello-World"
PATH = f"/repos/{NAME}/events"


@pytest.fixture
def api():
    with GitHubAPI() as running:
        running.feeds[PATH] = []
        yield running


@pytest.fixture
def cluster(tmp_path, media, api):
    secret = tmp_path / "secret"
    secret.touch(mode=0o600)
    secret.write_text(github.SECRET)
    options = ("--github-secret-file", str(secret), "--github-api", api.url, "--github-repository", NAME)
    with Cluster(tmp_path, media.root, engines=1, routers=2, router_options=options) as running:
        yield running


async def happens(router: Server, *messages: str, delivery: str | None = None) -> None:
    payload = github.push(REPOSITORY, *(messages or ("Sing",)))
    accepted(await deliver(router.url, "push", payload, delivery=delivery))


async def events(router: Server, count: int) -> list[dict]:
    """What a Router has of the repository, the oldest first, when there are so many."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            answer = await request("GET", f"{router.url}/api/v1/repositories/{REPOSITORY}/events")
            if answer.status == 200 and len(answer.body["events"]) == count:
                return answer.body["events"][::-1]
            await asyncio.sleep(0.02)


async def test_what_one_router_is_told_is_heard_at_all(cluster):
    told, other = cluster.routers
    async with stream(told.url, REPOSITORY, "opus") as here, stream(other.url, REPOSITORY, "opus") as there:
        async with listen(other.url, str(REPOSITORY)) as listener:
            await happens(told)
            [first], [same] = await here.buffers(1), await there.buffers(1)
            assert first["id"] == same["id"] == 1
            assert np.array_equal(samples(first["data"]["buffer"]), samples(same["data"]["buffer"]))
            # Its bed plays at that Router, and the next joins it.
            await listener.wait_packets(25)
            await happens(told, "Sing louder")
            music = await listener.wait_event("music")
            assert music["number"] in (1, 2), music
            # GitHub delivers again, and to another.
            await happens(told, "Third", delivery="again")
            answer = await deliver(other.url, "push", github.push(REPOSITORY, "Third"), delivery="again")
            assert answer.body["status"] == "duplicate", answer
            for client in (here, there):
                assert [each["id"] for each in await client.buffers(3)] == [1, 2, 3]
            for router in (told, other):
                [repository] = (await request("GET", f"{router.url}/api/v1/repositories")).body["repositories"]
                assert (repository["events"], repository["listeners"]) == (3, 1), repository
    assert await events(told, 3) == await events(other, 3)


async def test_a_router_that_dies_takes_nothing_along(cluster):
    told, other = cluster.routers
    await happens(told)
    async with stream(told.url, REPOSITORY, "opus", last=0) as before:
        await before.buffers(1)
        told.kill()
    await happens(other, "While it was gone")
    async with stream(other.url, REPOSITORY, "opus", last=1) as after:
        [missed] = await after.buffers(1)
        assert missed["id"] == 2
        told.start()
        wait_metric(told, "antiphon_router_engines_connected", 1)
        await happens(told, "And when it is back")
        assert [each["id"] for each in await after.buffers(2)] == [2, 3]
    assert await events(told, 3) == await events(other, 3)


async def test_one_router_polls_and_another_when_that_one_is_gone(cluster, api):
    async def asked(count: int) -> None:
        before = len(api.answers(PATH))
        async with asyncio.timeout(PATIENCE_SECONDS):
            while len(api.answers(PATH)) < before + count:
                await asyncio.sleep(0.05)

    async def pollers() -> list[Server]:
        """Those that have asked GitHub."""
        found = []
        for router in cluster.routers:
            text = (await request("GET", f"{router.url}/metrics")).body
            if "antiphon_router_github_polls_total{" in text:
                found.append(router)
        return found

    await asked(2)
    api.add(PATH, event(1, "PushEvent", push(), repository=REPOSITORY, name=NAME))
    for router in cluster.routers:
        await events(router, 1)
    [poller] = await pollers()
    [other] = [router for router in cluster.routers if router is not poller]
    async with stream(other.url, REPOSITORY, "opus", last=0) as client:
        assert [each["id"] for each in await client.buffers(1)] == [1]
        with ExitStack() as stack:
            stack.callback(poller.start)
            poller.kill()
            api.add(PATH, event(2, "PushEvent", push(), repository=REPOSITORY, name=NAME))
            # It is heard: the source was read to its end by the other.
            assert [each["id"] for each in await client.buffers(2)] == [1, 2]
            await asked(2)
    assert [each["number"] for each in await events(other, 2)] == [1, 2]
    polling = (await request("GET", f"{other.url}/api/v1/repositories")).body["polling"]
    assert [(each["name"], "last_poll_ms" in each) for each in polling] == [(NAME, True)]
