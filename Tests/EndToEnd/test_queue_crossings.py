"""Commands, ends and deaths that cross each other on their way."""

import asyncio
import random

import aiohttp
import pytest

from client import listen, request
from media import FLAC, OGG_OPUS, tone_clip
from processes import Antiphon, wait_ready

LONG = tone_clip(440, 120, OGG_OPUS)
SHORT = [tone_clip(frequency, 0.5, FLAC) for frequency in (440, 550, 660)]


@pytest.fixture
def mortal(tmp_path, media):
    media.path(LONG)
    media.make(*SHORT)
    with Antiphon(tmp_path, media.root) as running:
        yield running


async def test_plays_that_are_refused_change_nothing(mortal, new_session):
    """They come at every moment of tracks that end: each track is heard once, and none is left waiting."""
    async with listen(mortal.router.url, new_session()) as listener:
        urls = [SHORT[number % 3].url for number in range(9)] + [LONG.url]
        await listener.command("queue_add", tracks=[{"url": url} for url in urls])
        while not [event for event in listener.events("ready") if event["url"] == LONG.url]:
            answer = await listener.ask("play", url="http:")
            assert answer["type"] == "error", answer
        assert [event["url"] for event in listener.events("extracting")] == urls
        queue = (await listener.command("queue"))["queue"]
        assert queue["current"]["url"] == LONG.url and queue["total"] == 0 and queue["history_total"] == 9, queue


async def test_a_track_keeps_its_own_title(mortal, new_session):
    async with listen(mortal.router.url, new_session()) as listener:
        for _ in range(20):
            await listener.send("queue_add", tracks=[{"url": SHORT[0].url}, {"url": LONG.url}])
            await listener.send("skip")
            await listener.wait_event("ready", since=listener.mark())
            await listener.command("queue_clear")
            await listener.command("stop")
        history = (await listener.command("history"))["tracks"]
        wrong = [entry for entry in history if "title" in entry and f"media:{entry['title']}." not in entry["url"]]
        assert history and not wrong, wrong


async def test_what_comes_after_a_stop_plays(mortal, new_session):
    async with listen(mortal.router.url, new_session()) as listener:
        for _ in range(10):
            since = listener.mark()
            await listener.send("play", url=LONG.url)
            await listener.send("stop")
            await listener.send("queue_add", url=SHORT[0].url)
            await listener.wait_event("ready", since, url=SHORT[0].url)
            await listener.wait_event("ended", since, reason="finished")


async def test_a_skip_while_the_engine_is_away(mortal, new_session):
    """What is skipped does not come back with the engine, and what was chosen does."""
    ended, chosen = new_session(), new_session()
    api = f"{mortal.router.url}/api/v1/sessions"
    for session in (ended, chosen):
        await request("POST", f"{api}/{session}/play", {"url": LONG.url})
    queue = (await request("POST", f"{api}/{chosen}/queue", {"url": LONG.url, "title": "chosen"})).body
    mortal.engine.kill()
    async with listen(mortal.router.url, ended) as listener:
        await listener.wait(
            lambda: [event for event in listener.events() if event.get("engine", {}).get("connected") is False],
            "word that the engine is away",
        )
        assert (await request("POST", f"{api}/{ended}/skip", {})).status == 200
        await request("POST", f"{api}/{chosen}/skip_to", {"id": queue["tracks"][0]["id"]})
        assert (await request("POST", f"{api}/{chosen}/play", {"url": SHORT[0].url})).status == 503
        mortal.engine.start()
        wait_ready(mortal.router)
    async with listen(mortal.router.url, chosen, buffer_ms=0) as listener:
        await listener.wait_packets(5)
        assert (await listener.command("queue"))["queue"]["current"]["title"] == "chosen"
    assert (await request("GET", f"{api}/{ended}")).body["state"] == "idle"


async def test_a_repeated_command_on_an_idle_session(mortal, new_session):
    """A Router that is killed while it begins to play has kept the change and its answer, or neither."""
    rng = random.Random(20_261_122)
    headers = {"Idempotency-Key": "once"}
    for _ in range(15):
        url = f"{mortal.router.url}/api/v1/sessions/{new_session()}/queue"

        async def add(url=url) -> list[str] | None:
            try:
                async with (
                    aiohttp.ClientSession() as http,
                    http.post(url, json={"url": LONG.url}, headers=headers) as answer,
                ):
                    return (await answer.json())["added"]
            except (aiohttp.ClientError, ConnectionError):
                return None

        asking = asyncio.create_task(add())
        await asyncio.sleep(rng.uniform(0.001, 0.008))
        mortal.router.kill()
        first = await asking
        await asyncio.to_thread(mortal.router.start)
        await asyncio.to_thread(wait_ready, mortal.router)
        assert await add() == ["1"] and first in (None, ["1"])
        queue = (await request("GET", url)).body
        assert queue["current"]["id"] == "1" and queue["total"] == 0, queue


async def test_a_session_by_its_encoded_name(mortal):
    """Clients' libraries write a colon as %3A."""
    api = f"{mortal.router.url}/api/v1/sessions"
    assert (await request("POST", f"{api}/guild%3A7/queue", {"url": LONG.url})).status == 200
    state = await request("GET", f"{api}/guild:7")
    assert state.body["session_id"] == "guild:7" and state.body["queue"]["current"]["url"] == LONG.url, state
    assert (await request("GET", f"{api}/guild%2F7")).code == "invalid_session_id"
