"""Repositories as radio stations: what is pushed is heard by those who listen to it, and by nobody else."""

import asyncio
import base64
import json
import subprocess

import aiohttp
import numpy as np
import pytest

from analysis import level_db, tone_level_db
from client import Listener, listen, request
from github import EVENTS, SECRET, accepted, deliver, headers, push
from inbox import Event, Packet, assert_unbroken
from media import FLAC, OGG_OPUS, tone_clip
from opus import LOOKAHEAD, decode
from processes import Antiphon
from repository_page import RepositoryTab, repository_tab
from scores import drone, frequency
from signals import RATE

DELIVERY = "72d3162e-cc78-11e3-81ab-4c9367dc0958"

#: How much louder a piece must be than what is left of a bed that was muted.
SILENCE_DB = -70


@pytest.fixture(scope="module")
def station(tmp_path_factory, media):
    with station_in(tmp_path_factory.mktemp("station"), media.root) as running:
        yield running


@pytest.fixture
def own_station(tmp_path, media):
    """One of the test's own, to be killed."""
    with station_in(tmp_path, media.root) as running:
        yield running


def station_in(folder, media, *options: str) -> Antiphon:
    secret = folder / "secret"
    secret.write_text(SECRET)
    secret.chmod(0o600)
    return Antiphon(folder, media, router_options=("--github-secret-file", str(secret), *options))


_numbers = iter(range(1_296_269, 10_000_000))


@pytest.fixture
def repository() -> int:
    """The ID of a repository in which something has happened, once."""
    return next(_numbers)


async def known(router: str, repository: int) -> str:
    """The session of a repository that the Router knows: its one event is over before anybody listens."""
    accepted(await deliver(router, "star", EVENTS["star"](repository)))
    await until(lambda: played(router, repository))
    return str(repository)


async def played(router: str, repository: int) -> list[dict]:
    answer = await request("GET", f"{router}/api/v1/repositories/{repository}/events")
    return answer.body["events"] if answer.status == 200 else []


async def until(look, seconds: float = 15):
    """Asks what has no event to wait for."""
    async with asyncio.timeout(seconds):
        while not (found := await look()):
            await asyncio.sleep(0.05)
        return found


def heard(packets: list[Packet]) -> np.ndarray:
    return decode(packet.audio for packet in packets)[:, 0][LOOKAHEAD:]


async def bed_of(listener: Listener, since: int = 0) -> Event:
    """Until the bed plays."""
    ready = await listener.wait_event("ready", since, codec="score")
    await listener.wait_event("playing", listener.index(ready))
    return ready


async def packets_until(listener: Listener, position_ms: int) -> list[Packet]:
    await listener.wait(
        lambda: listener.packets() and listener.packets()[-1].position_ms >= position_ms, f"{position_ms} ms", 40
    )
    return listener.packets()


# The whole way.


def curl(router: str, body: bytes, delivery: str) -> dict:
    """A signed delivery as anybody could send it."""
    fields = [
        part for name, value in headers("push", body, delivery=delivery).items() for part in ("-H", f"{name}: {value}")
    ]
    command = [
        "curl",
        "--silent",
        "--show-error",
        "--fail-with-body",
        "--data-binary",
        "@-",
        *fields,
        f"{router}/webhooks/github",
    ]
    done = subprocess.run(command, input=body, capture_output=True, timeout=20, check=True)
    return json.loads(done.stdout)


async def stream(router: str, repository: int, messages: list[dict], connected: asyncio.Event, encoding: str) -> None:
    """A plain client of a repository's events."""
    timeout = aiohttp.ClientTimeout(total=None, sock_read=60)
    async with (
        aiohttp.ClientSession(timeout=timeout, read_bufsize=2**24) as http,
        http.get(f"{router}/stream/{repository}", params={"encoding": encoding}) as response,
    ):
        assert response.status == 200, await response.text()
        connected.set()
        async for line in response.content:
            if line.startswith(b"data:"):
                messages.append(json.loads(line[5:]))


def spectra(sound: np.ndarray) -> np.ndarray:
    """What sounds below 3 kHz, every 20 ms: the notes, without the phases that a room and a codec change."""
    frames = np.lib.stride_tricks.sliding_window_view(sound, 4_096)[::960]
    return np.abs(np.fft.rfft(frames * np.hanning(4_096)))[:, 4:256]


def likeness(sound: np.ndarray, piece: np.ndarray) -> float:
    """How like a sound is the part of a piece that it is most like: 1 where the same notes sound at the same times."""
    heard, whole = spectra(sound), spectra(piece)
    parts = np.lib.stride_tricks.sliding_window_view(whole, len(heard), axis=0)
    return max(float(np.corrcoef(heard.ravel(), part.T.ravel())[0, 1]) for part in parts if np.std(part) > 0)


async def test_a_push_is_heard_in_the_tabs_of_its_repository_and_in_no_other(station, browser, media):
    """Signed and sent with curl; measured in what Chromium has decoded, and in what a plain client is sent."""
    router = station.router.url
    mine, other = next(_numbers), next(_numbers)
    for repository in (mine, other):
        await known(router, repository)
    async with (
        repository_tab(browser, router, str(mine)) as first,
        repository_tab(browser, router, str(mine)) as second,
        repository_tab(browser, router, str(other)) as third,
    ):
        tabs = (first, second, third)
        for tab in tabs:
            await tab.page.get_by_role("button", name="Listen").click()
            await tab.page.wait_for_function("() => window.antiphon.rms() > 1e-3")
        # What is heard from here on is the piece alone.
        for tab in (first, third):
            await tab.send(type="mute", voices=["bed"])
        for tab in tabs:
            await tab.page.wait_for_function("() => window.antiphon.rms() < 3e-4")

        messages: dict[int, list[dict]] = {mine: [], other: []}
        connected = [asyncio.Event(), asyncio.Event()]
        clients = [
            asyncio.create_task(stream(router, number, messages[number], flag, "pcm16"))
            for number, flag in zip((mine, other), connected, strict=True)
        ]
        for flag in connected:
            await flag.wait()
        # Many commits make a long piece.
        commits = ["Let it be heard", *(f"Step {number}" for number in range(12))]
        answer = curl(router, json.dumps(push(mine, *reversed(commits))).encode(), DELIVERY)
        assert answer["status"] == "queued" and answer["repository"] == str(mine), answer

        number = answer["number"]
        sounds = await asyncio.gather(*(sound_of(tab, number) for tab in (first, second)))
        silence, _ = await third.decoded(2)
        await until(lambda: wait_for(messages[mine], "audio_buffer"))
        for client in clients:
            client.cancel()
        await asyncio.gather(*clients, return_exceptions=True)

        data = next(message["data"] for message in messages[mine] if message["type"] == "audio_buffer")
        assert data["repoId"] == str(mine) and data["event"]["title"] == "Let it be heard", data["event"]
        buffer = data["buffer"]
        piece = np.frombuffer(base64.b64decode(buffer["data"]), "<i2").reshape(-1, 2).mean(axis=1) / 32_768
        assert len(piece) == buffer["length"] and level_db(piece) > -40
        for sound, what in zip(sounds, ("the first tab", "the second tab"), strict=True):
            assert level_db(sound) > -45, f"{what}: {level_db(sound):.1f} dB"
            # The room is the bed's, so that it is not the very same.
            forwards, backwards = likeness(sound, piece), likeness(sound, piece[::-1])
            assert forwards > max(0.75, backwards + 0.15), f"{what}: {forwards:.2f}, and {backwards:.2f} backwards"
        assert level_db(silence) < SILENCE_DB, f"the third tab: {level_db(silence):.1f} dB"
        assert [message["type"] for message in messages[other]] == ["connected"], messages[other]
        for tab in tabs:
            await tab.assert_no_errors()


async def sound_of(tab: RepositoryTab, number: int) -> np.ndarray:
    """Two seconds of a piece as a tab has decoded it, all of them within the piece."""
    await tab.wait_for_piece(number, 3_000)
    return (await tab.decoded(2))[0]


async def wait_for(messages: list[dict], kind: str) -> bool:
    return any(message["type"] == kind for message in messages)


async def test_the_same_delivery_has_the_same_bytes_on_two_runs(tmp_path, media):
    """Two Antiphons that know nothing of each other: the notes, the samples, and the Ogg Opus file."""
    runs = []
    body = json.dumps(push(1_296_269, "Make it reproducible", "And say so")).encode()
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        with station_in(folder, media.root) as running:
            router = running.router.url
            messages: dict[str, list[dict]] = {"pcm16": [], "opus": []}
            flags = {encoding: asyncio.Event() for encoding in messages}
            clients = [
                asyncio.create_task(stream(router, 1_296_269, messages[encoding], flags[encoding], encoding))
                for encoding in messages
            ]
            for flag in flags.values():
                await flag.wait()
            assert curl(router, body, DELIVERY)["status"] == "queued"
            for encoding in messages:
                await until(lambda found=messages[encoding]: wait_for(found, "audio_buffer"))
            for client in clients:
                client.cancel()
            await asyncio.gather(*clients, return_exceptions=True)
            notes = (await played(router, 1_296_269))[0]["notes"]
            sounds = {
                encoding: next(each["data"]["buffer"] for each in found if each["type"] == "audio_buffer")
                for encoding, found in messages.items()
            }
            runs.append((notes, sounds))
    assert runs[0][0] and runs[0][0] == runs[1][0]
    for encoding in ("pcm16", "opus"):
        assert runs[0][1][encoding]["data"] == runs[1][1][encoding]["data"], encoding


# The session.


async def test_the_bed_plays_while_somebody_listens(station, repository):
    session = await known(station.router.url, repository)
    engine = f"{station.engine.url}/session/{session}"
    assert (await request("GET", engine)).body["state"] == "idle"
    async with listen(station.router.url, session) as listener:
        ready = await bed_of(listener)
        assert ready["live"] is True, ready
        await listener.wait_packets(250)
        sound = heard(listener.packets())
        assert -70 < level_db(sound[RATE:]) < -20, f"{level_db(sound[RATE:]):.1f} dB"
        assert_unbroken(listener.packets(), "the bed")
        # It is no track of the queue's.
        assert (await listener.command("history"))["tracks"] == []

    async def is_idle() -> bool:
        return (await request("GET", engine)).body["state"] == "idle"

    # What somebody else plays in another one without end is no bed, though nobody has listened there for longer.
    other = f"{station.router.url}/api/v1/sessions/{await known(station.router.url, next(_numbers))}"
    assert (await request("POST", f"{other}/play", {"score": drone(57)})).status == 200
    async with listen(station.router.url, other.rpartition("/")[2]) as listener:
        await listener.wait_packets(20)
    async with listen(station.router.url, session) as listener:
        await listener.wait_packets(20)
    await until(is_idle, 40)
    # Beds are looked after each second.
    await asyncio.sleep(2)
    assert (await request("GET", other)).body["state"] == "streaming"
    await request("POST", f"{other}/stop")


async def test_a_session_that_is_no_repository_s_stays_silent(station, new_session):
    async with listen(station.router.url, new_session()) as listener:
        await listener.command("ping", t=1)
        await asyncio.sleep(1.5)
        assert not listener.packets() and not listener.events("extracting")


async def test_pieces_are_heard_one_after_the_other(station, repository):
    session = await known(station.router.url, repository)
    async with listen(station.router.url, session) as listener, listen(station.router.url, session) as other:
        await bed_of(listener)
        for title in ("One", "Two", "Three"):
            accepted(await deliver(station.router.url, "push", push(repository, title)))
        for index in range(3):
            await listener.wait(lambda count=index + 1: len(listener.events("music")) >= count, f"music {index}", 60)
        music = listener.events("music")
        assert [each["event"]["title"] for each in music] == ["One", "Two", "Three"]
        assert [each["number"] for each in music] == [2, 3, 4]
        for before, after in zip(music, music[1:], strict=False):
            end = before["position_ms"] + before["duration_ms"]
            assert end - 3_000 < after["position_ms"] < end + 1_500, (end, after["position_ms"])
        await other.wait(lambda: len(other.events("music")) >= 3, "the same three")
        assert [each["position_ms"] for each in other.events("music")[:3]] == [each["position_ms"] for each in music]

        # The first note is heard where it is said to be.
        voice, start, length, pitch, _ = min(
            (note for note in music[0]["notes"] if music[0]["voices"][note[0]]["role"] == "melody"),
            key=lambda note: note[1],
        )
        packets = await packets_until(listener, music[0]["position_ms"] + start + length + 200)
        sound, begin = heard(packets), packets[0].position_ms
        at = (music[0]["position_ms"] + start - begin) * RATE // 1_000
        count = max(length, 150) * RATE // 1_000
        during, before = sound[at : at + count], sound[max(0, at - RATE // 2) : at - RATE // 50]
        rise = tone_level_db(during, frequency(pitch)) - tone_level_db(before, frequency(pitch))
        assert rise > 6, f"the pitch {pitch} of {voice} rises by {rise:.1f} dB"
        assert_unbroken(packets, "the station")


async def test_who_comes_late_is_shown_the_piece_that_sounds(station, repository):
    session = await known(station.router.url, repository)
    async with listen(station.router.url, session) as listener:
        await bed_of(listener)
        accepted(await deliver(station.router.url, "release", EVENTS["release"](repository)))
        music = await listener.wait_event("music")
        async with listen(station.router.url, session) as late:
            assert (await late.wait_event("music"))["position_ms"] == music["position_ms"]


async def test_a_track_is_heard_instead_and_the_bed_comes_back(station, media, repository):
    clip = tone_clip(880, 12, FLAC)
    media.make(clip)
    session = await known(station.router.url, repository)
    async with listen(station.router.url, session) as listener:
        await bed_of(listener)
        ready = await listener.play(clip.url)
        playing = await listener.wait_event("playing", listener.index(ready))
        # What happens meanwhile is shown, and not heard.
        accepted(await deliver(station.router.url, "push", push(repository, "Unheard")))
        music = await listener.wait_event(
            "music", event=(await played_title(station.router.url, repository, "Unheard"))
        )
        assert "position_ms" not in music, music
        await listener.wait_event("ended", listener.index(playing))
        await bed_of(listener, listener.index(playing))


async def test_pieces_that_wait_are_shown_when_a_track_is_played_instead(station, media, repository):
    clip = tone_clip(880, 4, FLAC)
    media.make(clip)
    session = await known(station.router.url, repository)
    async with listen(station.router.url, session) as listener:
        await bed_of(listener)
        titles = ["First", "Second", "Third"]
        for title in titles:
            accepted(await deliver(station.router.url, "push", push(repository, title)))
        await listener.wait_event("music")
        await listener.play(clip.url)
        await listener.wait(lambda: len(listener.events("music")) >= 3, "all three", 30)
        music = listener.events("music")
        assert [each["event"]["title"] for each in music] == titles
        assert "position_ms" in music[0] and "position_ms" not in music[2], music[2]
        await listener.command("stop")


async def played_title(router: str, repository: int, title: str) -> dict:
    async def look():
        return next(
            (each["event"] for each in await played(router, repository) if each["event"]["title"] == title), None
        )

    return await until(look)


async def test_a_station_that_was_stopped_is_silent_until_something_happens(station, repository):
    session = await known(station.router.url, repository)
    async with listen(station.router.url, session) as listener:
        await bed_of(listener)
        stopped = await listener.command("stop")
        await asyncio.sleep(2.5)
        assert not listener.packets(listener.index(stopped)), "it plays on"
        accepted(await deliver(station.router.url, "push", push(repository, "Wake up")))
        await bed_of(listener, listener.index(stopped))
        music = await listener.wait_event("music")
        assert music["event"]["title"] == "Wake up" and music["position_ms"] >= 0, music


async def test_a_station_goes_on_after_either_process_has_died(own_station, repository):
    router = own_station.router.url
    session = await known(router, repository)
    async with listen(router, session) as listener:
        await bed_of(listener)
        await listener.command("mute", voices=["percussion"])
        own_station.engine.kill()
        own_station.engine.start()
        ended = await listener.wait_event("ended")
        await bed_of(listener, listener.index(ended))
        # What was muted stays so.
        assert (await listener.wait_event("muted", listener.index(ended)))["voices"] == ["percussion"]
        accepted(await deliver(router, "push", push(repository, "After the engine's death")))
        await listener.wait_event("music")
    own_station.router.kill()
    own_station.router.start()
    async with listen(router, session) as listener:
        await listener.wait_packets(50)
        accepted(await deliver(router, "push", push(repository, "After the Router's death")))
        music = await listener.wait_event("music")
        assert music["event"]["title"] == "After the Router's death" and "position_ms" in music, music


async def test_a_flood_of_events_disturbs_no_other_session(station, media, repository):
    clip = tone_clip(440, 30, OGG_OPUS)
    media.make(clip)
    session = await known(station.router.url, repository)
    async with (
        listen(station.router.url, "quiet-neighbour") as neighbour,
        listen(station.router.url, session) as listener,
    ):
        await asyncio.gather(neighbour.play(clip.url), bed_of(listener))
        answers = await asyncio.gather(
            *(deliver(station.router.url, kind, make(repository)) for kind, make in EVENTS.items())
        )
        for answer in answers:
            accepted(answer)
        # Of those that wait too long, all are shown, and not all are heard.
        await listener.wait(lambda: len(listener.events("music")) >= 3, "three pieces", 60)
        packets = await neighbour.wait_packets(100, since=neighbour.mark())
        assert_unbroken(packets, "the neighbour")
        assert not neighbour.events("buffering") and not neighbour.events("dropped")
        await neighbour.command("stop")


async def test_a_station_of_several_repositories_plays_them_and_no_other(tmp_path, media):
    """By name and by owner; each in its own session too."""
    names = {1: "octo-org/one", 2: "someone/two", 3: "someone/three"}
    stations = ("--github-station", "octo=Octo-Org/*", "--github-station", "octo=someone/two")
    with station_in(tmp_path, media.root, *stations) as station:
        router = station.router.url
        for repository, name in names.items():
            accepted(await deliver(router, "star", push(repository, "Before", name=name) | {"action": "created"}))
            await until(lambda repository=repository: played(router, repository))
        async with listen(router, "octo") as listener, listen(router, "1") as single:
            await bed_of(listener)
            await bed_of(single)
            for repository in (3, 2, 1):
                accepted(await deliver(router, "push", push(repository, f"Push {repository}", name=names[repository])))
            await listener.wait(lambda: len(listener.events("music")) >= 2, "two pieces", 60)
            music = listener.events("music")
            assert {each["event"]["repository"] for each in music} == {names[1], names[2]}
            assert all(each["session_id"] == "octo" and "position_ms" in each for each in music)
            # Over one bed, in its key.
            assert len({each["params"]["key"] for each in music}) == 1
            alone = await single.wait_event("music")
            assert alone["event"]["repository"] == names[1] and alone["session_id"] == "1"
            [shared] = [each for each in music if each["event"]["repository"] == names[1]]
            assert shared["params"]["key"] != alone["params"]["key"]
            moved = {theirs[3] - own[3] for own, theirs in zip(alone["notes"], shared["notes"], strict=True)}
            assert len(moved - {0}) == 1 and abs(max(moved, key=abs)) <= 6, moved
