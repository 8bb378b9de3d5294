"""Music without a webhook: GitHub's events API is asked, within its rules, and each event is played once."""

import asyncio
import itertools
import json
from collections.abc import Callable
from contextlib import contextmanager

import pytest
from playwright.async_api import expect

import github
from client import bearer, listen, request
from github_api import GitHubAPI, event, push
from inbox import PATIENCE_SECONDS
from processes import Antiphon, wait_ready

NAME = "octocat/Hello-World"
PATH = f"/repos/{NAME}/events"
HOUR = 3_600

_numbers = itertools.count(22_249_084_947)


@pytest.fixture
def api():
    with GitHubAPI() as running:
        running.feeds[PATH] = []
        yield running


@contextmanager
def polling(folder, media, api: GitHubAPI, *options: str, sources: tuple[str, ...] = (NAME,)):
    asked = [option for source in sources for option in ("--github-repository", source)]
    with Antiphon(folder, media.root, router_options=("--github-api", api.url, *asked, *options)) as running:
        yield running


def happen(api: GitHubAPI, kind: str = "PushEvent", payload: dict | None = None, **more) -> int:
    """Something new in the repository; the event's ID."""
    path = more.pop("path", PATH)
    number = next(_numbers)
    more = {"repository": 1296269, "name": NAME} | more
    api.add(path, event(number, kind, push() if payload is None else payload, **more))
    return number


async def until(look: Callable, what: str = "what was waited for"):
    """Asks what has no event to wait for."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not (found := await look() if asyncio.iscoroutinefunction(look) else look()):
            await asyncio.sleep(0.05)
    return found


async def asked(api: GitHubAPI, path: str = PATH, count: int = 1) -> None:
    """Until it was asked so many times more, all of whose answers but the last are over."""
    before = len(api.answers(path))
    await until(lambda: len(api.answers(path)) >= before + count)


async def events(router: str, count: int, repository: int = 1296269) -> list[dict]:
    """The newest first, when there are so many."""

    async def look():
        answer = await request("GET", f"{router}/api/v1/repositories/{repository}/events")
        return answer.body["events"] if answer.status == 200 and len(answer.body["events"]) >= count else None

    return await until(look)


async def state(router: str) -> list[dict]:
    return (await request("GET", f"{router}/api/v1/repositories")).body["polling"]


async def problem(router: str, *words: str) -> dict:
    """The first source's state, once it says what is wrong in those words."""

    async def look():
        [first, *_] = await state(router)
        return first if all(word in first.get("problem", "") for word in words) else None

    return await until(look)


async def test_what_was_there_is_listed_and_what_is_new_is_heard(tmp_path, media, api):
    for age in (40 * 24 * HOUR, 5 * HOUR, 60):
        happen(api, age=age)
    with polling(tmp_path, media, api) as antiphon:
        router = antiphon.router.url
        listed = await events(router, 3)
        assert [each["number"] for each in listed] == [3, 2, 1]
        assert not any(each["notes"] for each in listed), "what was over is heard"
        # A listener hears what comes now.
        async with listen(router, "1296269") as listener:
            await listener.wait_event("playing")
            happen(api, "IssuesEvent", {"action": "opened", "issue": github.issues(1)["issue"]})
            music = await listener.wait_event("music")
        assert music["event"]["kind"] == "issues" and music["number"] == 4 and music["notes"], music
        assert music["event"]["title"] == "Spelling error in the README file"
        assert not [each for each in listener.events("music") if each["number"] < 4]
        # The day's bars go by when it happened.
        detail = (await request("GET", f"{router}/api/v1/repositories/1296269")).body
        assert sum(each["events"] for each in detail["activity"]) == 3, detail["activity"]
        assert detail["polling"]["name"] == NAME and "problem" not in detail["polling"], detail


async def test_what_events_say(tmp_path, media, api):
    """As github.com has them, and as older Enterprise Servers do."""
    old = push() | {"size": 3, "commits": [{"sha": "1", "message": "One"}, {"sha": "2", "message": "Two\n\nMore"}]}
    reference = {"ref": "feature", "ref_type": "branch", "master_branch": "main", "pusher_type": "user"}
    number = {"url": f"{github.API}/repos/{NAME}/pulls/2", "id": 1, "number": 2, "head": {"ref": "changes"}}
    issue = github.issues(1)["issue"]
    site = api.url
    cases = [
        ("PushEvent", push(), {"kind": "push", "title": "pushed to main", "commits": 1, "branch": "main"}),
        ("PushEvent", old, {"title": "Two", "commits": 3}),
        ("CreateEvent", reference, {"kind": "push", "title": "created feature", "commits": 0}),
        ("DeleteEvent", reference | {"ref_type": "tag", "ref": "v1"}, {"title": "deleted v1", "branch": "v1"}),
        (
            "PullRequestEvent",
            {"action": "opened", "number": 2, "pull_request": number},
            {"kind": "pull_request", "title": "#2: changes", "url": f"{site}/{NAME}/pull/2", "action": "opened"},
        ),
        ("PullRequestEvent", {"action": "merged", "pull_request": number}, {"action": "closed", "outcome": "success"}),
        ("PullRequestEvent", {"action": "closed", "pull_request": number}, {"action": "closed", "outcome": "neutral"}),
        (
            "PullRequestEvent",
            {"action": "closed", "pull_request": number | {"merged": True, "title": "Sing"}},
            {"outcome": "success", "title": "Sing"},
        ),
        (
            "PullRequestReviewEvent",
            {"action": "created", "review": {"state": "approved"}, "pull_request": number},
            {"kind": "pull_request_review", "outcome": "success", "title": "#2: changes"},
        ),
        ("IssuesEvent", {"action": "closed", "issue": issue}, {"kind": "issues", "outcome": "success"}),
        (
            "IssueCommentEvent",
            {"action": "created", "issue": issue, "comment": {"html_url": "https://github.com/a/b#c"}},
            {"kind": "issue_comment", "url": "https://github.com/a/b#c", "title": issue["title"]},
        ),
        (
            "ReleaseEvent",
            {"action": "published", "release": {"tag_name": "v1", "name": "Overture"}},
            {"kind": "release", "title": "Overture", "branch": "v1"},
        ),
        ("WatchEvent", {"action": "started"}, {"kind": "star", "title": "gave a star", "action": "created"}),
        ("ForkEvent", {"action": "forked", "forkee": {"full_name": "hubot/x"}}, {"title": "forked to hubot/x"}),
    ]
    nothing = [("GollumEvent", {}), ("CreateEvent", {"ref": None, "ref_type": "repository"}), ("PushEvent", {})]
    for kind, payload, _ in cases:
        happen(api, kind, payload)
        for strange in nothing:
            happen(api, *strange)
    happen(api, "WatchEvent", {}, name="no name at all")
    happen(api, "WatchEvent", {}, repository=-1)
    api.feeds[PATH].insert(0, "no event")
    with polling(tmp_path, media, api) as antiphon:
        found = list(reversed(await events(antiphon.router.url, len(cases))))
        for (kind, _, expected), music in zip(cases, found, strict=True):
            shown = {name: music["event"].get(name) for name in expected}
            assert shown == expected, (kind, music["event"])


async def test_it_asks_as_github_wants_to_be_asked(tmp_path, media, api):
    """ETags, the interval, and who asks."""
    api.interval = 2
    happen(api, age=60)
    with polling(tmp_path, media, api):
        await until(lambda: len(api.answers(PATH)) >= 4)
        assert api.answers(PATH)[:4] == [200, 304, 304, 304]
        times = [each["at"] for each in api.asked]
        assert all(after - before >= 1.9 for before, after in itertools.pairwise(times)), times
        headers = api.asked[0]["headers"]
        assert headers["user-agent"].startswith("Antiphon/") and headers["accept"] == "application/vnd.github+json"
        assert "authorization" not in headers and api.asked[0]["query"] == "per_page=100"
        happen(api)
        await asked(api, count=2)
        assert api.answers(PATH).count(200) == 2


@pytest.mark.parametrize("stop", ["terminate", "kill"])
async def test_no_event_is_lost_or_played_twice_over_a_restart(tmp_path, media, api, stop):
    happen(api, age=60)
    with polling(tmp_path, media, api) as antiphon:
        router = antiphon.router.url
        await events(router, 1)
        happen(api)
        await events(router, 2)
        for count in (3, 4, 5):
            getattr(antiphon.router, stop)()
            # While nobody asks.
            happen(api)
            antiphon.router.start()
            wait_ready(antiphon.router)
            found = await events(router, count)
            await asked(api, count=2)
            assert await events(router, count) == found
            assert [each["number"] for each in found] == list(range(count, 0, -1))
            assert found[0]["notes"] and not found[-1]["notes"], "what happened meanwhile is not heard"
        # An answer with nothing new is known by its ETag to the next process too.
        getattr(antiphon.router, stop)()
        mark = len(api.asked)
        antiphon.router.start()
        await until(lambda: len(api.asked) > mark)
        assert api.asked[mark]["status"] == 304


async def test_what_is_told_late_is_heard_and_what_is_told_too_late_is_not(tmp_path, media, api):
    """GitHub's API tells of some events hours later; one that the IDs of a day are too few for is passed over."""
    with polling(tmp_path, media, api) as antiphon:
        await until(lambda: api.answers(PATH))
        happen(api, age=30 * HOUR)
        happen(api, age=7 * HOUR)
        happen(api, age=5 * HOUR)
        happen(api, age=-HOUR)
        found = await events(antiphon.router.url, 3)
        assert [bool(each["notes"]) for each in found] == [True, True, False]
        await asked(api, count=2)
        assert len(await events(antiphon.router.url, 3)) == 3


async def test_the_rate_limit_is_kept_and_shown(tmp_path, media, api):
    happen(api, age=60)
    with polling(tmp_path, media, api) as antiphon:
        router = antiphon.router.url
        await events(router, 1)
        [first] = await state(router)
        assert first["requests_left"] == 5_000 and first["next_poll_ms"] >= first["last_poll_ms"], first
        words = json.dumps({"message": "You have exceeded a secondary rate limit"}).encode()
        api.failure = (403, {"Retry-After": "4"}, words)
        first = await problem(router, "rate limit", "secondary", "--github-token-file")
        assert 3_000 <= first["next_poll_ms"] - first["last_poll_ms"] <= 4_500, first
        count = len(api.asked)
        api.failure = None
        happen(api)
        found = await events(router, 2)
        assert found[0]["notes"] and "problem" not in (await state(router))[0]
        assert api.asked[count]["at"] - api.asked[count - 1]["at"] >= 3.9
        # The primary one: until it says, and an hour at the most.
        reset = str(int(api.asked[-1]["at"]) + 600)
        api.failure = (429, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": reset}, b"{}")
        first = await problem(router, "rate limit")
        assert abs(first["next_poll_ms"] - int(reset) * 1_000) <= 2_000, first


async def test_what_is_left_of_the_limit_lasts(tmp_path, media, api):
    """With 1,200 requests for an hour no two come in less than 3 s, whatever the interval."""
    api.remaining = 1_200
    other = "octocat/Other"
    api.feeds[f"/repos/{other}/events"] = []
    with polling(tmp_path, media, api, sources=(NAME, other)):
        await until(lambda: len(api.asked) >= 4)
        times = [each["at"] for each in api.asked]
        assert times[1] - times[0] < 1, "the first answers do not come at once"
        assert all(after - before >= 2.9 for before, after in itertools.pairwise(times[1:])), times
        assert {each["path"] for each in api.asked[2:]} == {PATH, f"/repos/{other}/events"}


async def test_one_that_cannot_be_read_is_told_of_and_hinders_no_other(tmp_path, media, api):
    sources = ("octocat/gone", NAME)
    with polling(tmp_path, media, api, sources=sources) as antiphon:
        router = antiphon.router.url
        first = await problem(router, "octocat/gone", "private", "--github-token-file")
        assert first["next_poll_ms"] - first["last_poll_ms"] >= 40_000, first
        await asked(api)
        happen(api)
        await events(router, 1)
        assert "problem" not in (await state(router))[1]
        assert antiphon.router.log.read_text().count("octocat/gone is not polled") == 1


#: What GitHub answers, and words of what is said about it.
FAILURES = {
    "500": ((500, {}, b"<html>"), ["answers 500"]),
    "502": ((502, {}, b"x" * 200_000), ["answers 502"]),
    "text": ((200, {}, b"no JSON"), ["no list"]),
    "object": ((200, {}, b'{"message": "an object"}'), ["no list"]),
    "deep": ((200, {}, b"[" * 100_000), ["no list"]),
    "marks": ((200, {}, b'["' + "\u0301".encode() * 50_000 + b'"]'), ["no list"]),
    "large": ((200, {}, b"[" + b" " * 17_000_000 + b"]"), ["16777216 bytes"]),
    "elsewhere": ((301, {"Location": "http://127.0.0.1:9/elsewhere"}, b""), ["127.0.0.1:9", "not at"]),
}


async def test_after_a_failure_it_asks_again(tmp_path, media):
    """Each of a GitHub of its own, and all at once: every one takes five seconds."""

    async def check(name: str, failure: tuple, words: list[str]) -> None:
        with GitHubAPI() as api:
            api.feeds[PATH] = []
            happen(api, age=60)
            api.failure = failure
            with polling(tmp_path / name, media, api) as antiphon:
                first = await problem(antiphon.router.url, *words)
                # After the second failure twice as long, and so on, where the machine was slow to look.
                wait = (first["next_poll_ms"] - first["last_poll_ms"]) / 5_000
                assert any(0.78 * times <= wait <= 1.22 * times for times in (1, 2, 4)), (name, first)
                api.failure = None
                await events(antiphon.router.url, 1)
                assert "problem" not in (await state(antiphon.router.url))[0], name

    await asyncio.gather(*(check(name, *what) for name, what in FAILURES.items()))


async def test_a_renamed_repository_is_followed(tmp_path, media, api):
    api.redirects[PATH] = f"{api.url}/repositories/1296269/events"
    happen(api, path="/repositories/1296269/events", age=60)
    with polling(tmp_path, media, api) as antiphon:
        await events(antiphon.router.url, 1)


async def test_all_repositories_of_an_organisation(tmp_path, media, api):
    path = "/orgs/octo-org/events"
    for repository, name in ((1, "octo-org/a"), (2, "Octo-Org/b")):
        happen(api, path=path, repository=repository, name=name, age=60)
    with polling(tmp_path, media, api, sources=("octo-org/*",)) as antiphon:
        for repository, name in ((1, "octo-org/a"), (2, "Octo-Org/b")):
            [music] = await events(antiphon.router.url, 1, repository)
            assert music["event"]["repository"] == name
        assert {each["path"] for each in api.asked} == {path}


async def test_all_repositories_of_a_person(tmp_path, media, api):
    """Who is no organisation: of what this person does, what is in the person's own repositories."""
    path = "/users/octocat/events/public"
    happen(api, path=path, age=60)
    happen(api, path=path, repository=2, name="somebody/else", age=60)
    with polling(tmp_path, media, api, sources=("octocat/*",)) as antiphon:
        await events(antiphon.router.url, 1)
        answer = await request("GET", f"{antiphon.router.url}/api/v1/repositories")
        assert [each["id"] for each in answer.body["repositories"]] == ["1296269"]


async def test_a_token_is_shown_to_github_alone(tmp_path, media, api):
    api.token = "github_pat_11ABCDEFG0example"
    file = tmp_path / "token"
    file.touch(mode=0o600)
    file.write_text(api.token + "\n")
    happen(api, age=60)
    with polling(tmp_path / "run", media, api, "--github-token-file", str(file)) as antiphon:
        await events(antiphon.router.url, 1)
        assert api.token not in antiphon.router.log.read_text()
        file.write_text("another")
        api.failure = (401, {}, b'{"message": "Bad credentials"}')
        await problem(antiphon.router.url, "refuses the token", "Bad credentials")


async def test_who_may_not_hear_a_repository_does_not_see_its_name(tmp_path, media, mint, api):
    happen(api, age=60)
    sources = (NAME, "octocat/secret")
    with polling(tmp_path, media, api, *mint.options, sources=sources) as antiphon:
        url = f"{antiphon.router.url}/api/v1/repositories"

        async def seen(sessions: str):
            answer = await request("GET", url, headers=bearer(mint.token(sessions, "listen")))
            return [each["name"] for each in answer.body["polling"]]

        async def look():
            return await seen("1296269") == [NAME]

        await until(look)
        assert await seen("*") == list(sources) and await seen("1") == []


async def test_the_page_says_how_it_stands(tmp_path, media, api, browser):
    sources = (NAME, "octocat/gone")
    with polling(tmp_path, media, api, sources=sources) as antiphon:
        await until(lambda: len(api.asked) >= 2)
        context = await browser.new_context()
        try:
            page = await context.new_page()
            await page.goto(f"{antiphon.router.url}/repository.html", wait_until="domcontentloaded")
            lines = page.locator("#polled-sources li")
            await expect(lines).to_have_count(2)
            await expect(lines.first).to_contain_text(f"{NAME}: asked just now")
            await expect(lines.last).to_contain_text("GitHub shows no octocat/gone")
            await expect(lines.last).to_contain_text("It is tried again at")
            await expect(page.locator("#webhook-off")).to_be_hidden()
        finally:
            await context.close()
