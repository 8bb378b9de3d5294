"""A track that kills the engine is asked for twice at most, and anyone who plays something else goes on."""

import asyncio
from contextlib import AsyncExitStack
from itertools import pairwise

import pytest

from client import Listener, listen, request
from media import OGG_OPUS, WAV, media_url, tone_clip
from poison import Poison
from processes import Antiphon, wait_ready

SONG = tone_clip(523, 120, OGG_OPUS)
NEXT = tone_clip(660, 60, OGG_OPUS)
SHORT = tone_clip(880, 6, OGG_OPUS)
CODE = "source_crashes_engine"
#: Two deaths, two starts of an engine, and a trial each, on a machine that is busy.
SECONDS = 40


@pytest.fixture(scope="module")
def poison(tmp_path_factory) -> Poison:
    return Poison(tmp_path_factory.mktemp("poison"))


@pytest.fixture
def mortal(tmp_path, media, poison):
    """One whose engine dies of what is poisoned."""
    running = Antiphon(tmp_path, media.root)
    running.engine.environment |= poison.environment
    with running:
        yield running


@pytest.fixture
def files(media):
    """Two like any other, and the others' music."""
    media.make(SONG, NEXT, SHORT)
    wave = media.bytes(tone_clip(300, 3, WAV))
    for name in ("poison.wav", "poison-2.wav"):
        media.write(name, wave)
    return media.root / "poison.wav", media.root / "poison-2.wav"


POISON, POISON_2 = media_url("poison.wav"), media_url("poison-2.wav")


def assert_resumed(listener: Listener, deaths: list[int]) -> None:
    """Within 5 s after each death on a machine however busy, and nobody has told it of an error. An engine may die
    before it sounds."""
    for before, after in pairwise(listener.packets()):
        silence = (after.arrived_ns - before.arrived_ns) / 1e9
        times = sum(before.arrived_ns <= death <= after.arrived_ns for death in deaths)
        assert silence <= 5 * max(1, times), f"{listener.name}: {silence:.2f} s of silence for {times} deaths"
    assert not listener.events("error") and not listener.events("ended"), listener
    assert len(listener.events("playing")) <= len(deaths) + 1, listener


async def wait_refused(listener: Listener, since: int = 0) -> int:
    """Where in the list of what came it ended."""
    error = await listener.wait_event("error", since, SECONDS, code=CODE)
    assert "refused" in error["message"] and "poison" in error["message"], error
    ended = await listener.wait_event("ended", listener.index(error), SECONDS)
    assert ended["reason"] == "loadFailed", ended
    return listener.index(ended)


async def assert_refused(antiphon: Antiphon, session: str, url: str = POISON) -> None:
    """For everybody and on every way."""
    base = f"{antiphon.router.url}/api/v1/sessions/{session}"
    for path in ("play", "prepare"):
        answer = await request("POST", f"{base}/{path}", {"url": url})
        assert (answer.status, answer.code) == (422, CODE), answer
    async with listen(antiphon.router.url, session, buffer_ms=0) as listener:
        for kind in ("play", "prepare"):
            answer = await listener.ask(kind, url=url)
            assert (answer["type"], answer["code"]) == ("error", CODE), answer


async def test_a_poisoned_track_kills_the_engine_twice(mortal, poison, files, new_session):
    victim, other = new_session(), new_session()
    url = mortal.router.url
    async with listen(url, other, buffer_ms=0) as bystander, listen(url, victim, buffer_ms=0) as listener:
        await bystander.play(SONG.url)
        await bystander.wait_packets(10)
        with poison.in_files(mortal, files[0]) as kills:
            await listener.command("queue_add", tracks=[{"url": POISON}, {"url": NEXT.url}])
            since = await wait_refused(listener)
            await listener.wait_event("playing", since, SECONDS)
            await listener.wait_packets(10, since)
            assert (await request("GET", f"{url}/api/v1/sessions/{victim}")).body["url"] == NEXT.url
            await assert_refused(mortal, new_session())
            # Nobody's retries reach the engine.
            await listener.command("queue_add", url=POISON)
            await listener.command("skip")
            await wait_refused_in_queue(listener, since)
            await bystander.wait_packets(50, bystander.mark())
            assert kills.counts == {"poison.wav": 2}
            assert_resumed(bystander, kills.moments)

            figures = (await request("GET", f"{url}/metrics")).body
            assert "antiphon_router_sources_refused 1" in figures
            assert "antiphon_router_engine_deaths_total 2" in figures
            assert "crashed on media:poison.wav" in mortal.router.log.read_text()

            # What is known of it outlives the Router, with and without its engine.
            mortal.router.kill()
            await asyncio.to_thread(mortal.router.start)
            await asyncio.to_thread(wait_ready, mortal.router)
            await assert_refused(mortal, new_session())
            assert kills.counts == {"poison.wav": 2}


async def wait_refused_in_queue(listener: Listener, since: int) -> None:
    error = await listener.wait_event("error", since, SECONDS, code=CODE)
    assert POISON in error["message"], error


async def test_a_router_that_dies_with_the_engine_does_not_begin_anew(mortal, poison, files, new_session):
    """The count is on disk before the engine is asked."""
    url = f"{mortal.router.url}/api/v1/sessions/{new_session()}/queue"
    for deaths in (1, 2):
        with poison.in_files(mortal, files[0]) as kills:
            if deaths == 1:
                asking = asyncio.create_task(request("POST", url, {"url": POISON}))
            else:
                await asyncio.to_thread(mortal.router.start)
            async with asyncio.timeout(SECONDS):
                while not kills.moments:
                    await asyncio.sleep(0.001)
            mortal.router.kill()
        if not mortal.engine.is_running:
            await asyncio.to_thread(mortal.engine.start)
        await asyncio.gather(asking, return_exceptions=True)
    with poison.in_files(mortal, files[0]) as kills:
        await asyncio.to_thread(mortal.router.start)
        await asyncio.to_thread(wait_ready, mortal.router)
        await assert_refused(mortal, new_session())
        assert not kills.moments


async def test_a_poisoned_track_that_is_prepared(mortal, poison, files, new_session):
    session = new_session()
    async with listen(mortal.router.url, session, buffer_ms=0) as listener:
        with poison.in_files(mortal, files[0]) as kills:
            await listener.command("queue_add", tracks=[{"url": SHORT.url}, {"url": POISON}, {"url": NEXT.url}])
            refused = await wait_refused(listener)
            assert kills.counts == {"poison.wav": 2}
            await listener.wait_event("playing", refused, SECONDS)
            await listener.wait_packets(25, refused)
            heard = listener.packets(until=refused)[-1].position_ms
            assert heard >= 5_500, f"what played before was heard to {heard} ms"
            assert (await request("GET", f"{mortal.router.url}/api/v1/sessions/{session}")).body["url"] == NEXT.url


async def test_two_poisoned_tracks_among_ten_innocent_ones(mortal, poison, files, media, new_session):
    songs = [tone_clip(400 + 20 * number, 60, OGG_OPUS) for number in range(10)]
    media.make(*songs)
    url = mortal.router.url
    async with AsyncExitStack() as stack:
        listeners = [await stack.enter_async_context(listen(url, new_session(), buffer_ms=0)) for _ in range(12)]
        innocent, guilty = listeners[:10], listeners[10:]
        for listener, song in zip(innocent[:5], songs, strict=False):
            await listener.play(song.url)
            await listener.wait_packets(5)
        with poison.in_files(mortal, *files) as kills:
            # Five play already; the others are opened in the moment in which the engine dies.
            adding = [
                listener.command("queue_add", tracks=[{"url": track}, {"url": NEXT.url}])
                for listener, track in zip(guilty, (POISON, POISON_2), strict=True)
            ]
            adding += [
                listener.command("queue_add", url=song.url)
                for listener, song in zip(innocent[5:], songs[5:], strict=True)
            ]
            await asyncio.gather(*adding)
            for listener in guilty:
                await wait_refused(listener)
            marks = [listener.mark() for listener in listeners]
            for listener, mark in zip(listeners, marks, strict=True):
                await listener.wait_packets(25, mark, seconds=SECONDS)
            # The one may have died with the other.
            deaths = kills.moments
            assert max(kills.counts.values()) == 2 and len(deaths) <= 3, kills.counts
        for listener in innocent[:5]:
            assert_resumed(listener, deaths)
        for listener in innocent:
            assert not listener.events("error") and not listener.events("ended"), listener
