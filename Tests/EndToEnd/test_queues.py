"""Queues: every command on both endpoints, tracks that follow each other without a gap, and what a restart keeps."""

import asyncio
from itertools import pairwise

import pytest

from analysis import tone_level_db
from client import listen, request
from inbox import Packet
from media import FLAC, MP3_CBR, OGG_OPUS, tone_clip
from opus import FRAME, decode
from processes import BINARIES, Antiphon, wait_ready

LONG = tone_clip(440, 120, OGG_OPUS)
#: Different in sound and in how they are produced.
SHORT = [tone_clip(440, 1.5, FLAC), tone_clip(660, 1.5, OGG_OPUS), tone_clip(880, 1.5, MP3_CBR)]


def urls(queue: dict) -> list[str]:
    return [entry["url"] for entry in queue["tracks"]]


def titles(queue: dict) -> list[str]:
    return [entry["title"] for entry in queue["tracks"]]


def ids(queue: dict) -> list[str]:
    return [entry["id"] for entry in queue["tracks"]]


# MARK: The commands


async def test_every_command_on_both_doors(antiphon, media, new_session):
    """The WebSocket and REST change the same queue, with the same answers, and each tells the other's listeners."""
    media.path(LONG)
    names = [{"url": LONG.url, "title": f"T{number}"} for number in range(6)]
    for endpoint in ("websocket", "rest"):
        session = new_session()
        base = f"{antiphon.router.url}/api/v1/sessions/{session}"
        async with listen(antiphon.router.url, session) as listener:

            async def command(kind: str, path: str, method: str = "POST", **fields) -> dict:
                if endpoint == "websocket":
                    answer = await listener.command(kind, **fields)
                    assert answer["type"] == ("history" if kind == "history" else "queue"), answer
                    return answer if kind == "history" else answer["queue"]
                since = listener.mark()
                body = {name: value for name, value in fields.items() if name != "id" or kind == "skip_to"}
                answer = await request(method, f"{base}/{path}", body if method == "POST" else None)
                assert answer.status == 200, (kind, answer)
                if kind not in ("queue", "history"):
                    told = await listener.wait_event("queue", since)
                    assert told["queue"] == {k: v for k, v in answer.body.items() if k != "added"}, (kind, told)
                return answer.body

            await listener.play(LONG.url)
            await listener.wait_packets(5)
            first = {**names[0], "artist": "A", "duration_ms": 5, "requested_by": "u1"}
            queue = await command("queue_add", "queue", **first)
            entry = queue["tracks"][0]
            assert queue["added"] == [entry["id"]] and {**first, "id": entry["id"]} == entry, queue
            queue = await command("queue_add", "queue", tracks=names[1:4])
            queue = await command("queue_add", "queue", **names[4], next=True)
            queue = await command("queue_add", "queue", **names[5], position=1)
            assert titles(queue) == [f"T{n}" for n in (4, 5, 0, 1, 2, 3)], queue
            assert queue["current"]["url"] == LONG.url and queue["total"] == 6, queue
            direct = queue["current"]["title"]
            order = ids(queue)
            queue = await command("queue_move", f"queue/{order[5]}/move", id=order[5], position=0)
            queue = await command("queue_remove", f"queue/{order[0]}", "DELETE", id=order[0])
            assert ids(queue) == [order[5], *order[1:5]], queue
            queue = await command("queue_shuffle", "queue/shuffle")
            assert sorted(ids(queue)) == sorted(order[1:]), queue
            queue = await command("queue_loop", "queue/loop", mode="queue")
            assert queue["loop"] == "queue"
            queue = await command("queue_loop", "queue/loop", mode="off")
            queue = await command("quality", "quality", bitrate_kbps=64)
            assert queue["bitrate_kbps"] == 64
            waiting = ids(queue)
            queue = await command("skip_to", "skip_to", id=waiting[2])
            assert queue["current"]["id"] == waiting[2] and ids(queue) == waiting[:2] + waiting[3:], queue
            queue = await command("previous", "previous")
            assert queue["current"]["title"] == direct and ids(queue)[0] == waiting[2], queue
            queue = await command("skip", "skip")
            assert queue["current"]["id"] == waiting[2], queue
            history = await command("history", "history", "GET")
            assert [each["title"] for each in history["tracks"]] == [direct] and history["total"] == 1, history
            page = await request("GET", f"{base}/queue?offset=1&limit=2")
            assert ids(page.body) == ids(queue)[1:3] and page.body["offset"] == 1 and page.body["total"] == 4, page
            queue = await command("queue_clear", "queue", "DELETE")
            assert queue["total"] == 0 and not queue["tracks"], queue
            await listener.command("stop")


async def test_what_cannot_be_done_is_told_and_changes_nothing(antiphon, media, new_session):
    media.path(LONG)
    session = new_session()
    base = f"{antiphon.router.url}/api/v1/sessions/{session}"
    async with listen(antiphon.router.url, session) as listener:
        await listener.play(LONG.url)
        await listener.command("queue_add", url=LONG.url)
        before = (await request("GET", f"{base}/queue")).body
        for kind, fields, code in (
            ("queue_add", {"url": "file:///etc/passwd"}, "invalid_source"),
            ("queue_add", {"tracks": [{"url": LONG.url}, {"url": "ftp://x"}]}, "invalid_source"),
            ("queue_add", {"tracks": [{"title": "no address"}]}, "invalid_command"),
            ("queue_add", {"tracks": [{"url": LONG.url}] * 501}, "invalid_command"),
            ("queue_add", {"url": LONG.url, "query": "x"}, "invalid_command"),
            ("queue_add", {"url": LONG.url, "position": -1}, "invalid_command"),
            ("queue_add", {"url": LONG.url, "title": 5}, "invalid_command"),
            ("queue_move", {"id": "999", "position": 0}, "not_found"),
            ("queue_remove", {"id": before["current"]["id"]}, "invalid_state"),
            ("queue_loop", {"mode": "forever"}, "invalid_command"),
            ("skip_to", {"id": "999"}, "not_found"),
            ("previous", {}, "not_found"),
            ("quality", {}, "invalid_command"),
            ("quality", {"bitrate_kbps": 9_999}, "invalid_command"),
            ("queue", {"limit": 101}, "invalid_command"),
            ("history", {"limit": "many"}, "invalid_command"),
        ):
            answer = await listener.ask(kind, **fields)
            assert answer["type"] == "error" and answer["code"] == code and answer["message"], (kind, fields, answer)
        assert (await request("GET", f"{base}/queue")).body == before
        for path in ("queue?offset=x", "queue?limit=0", "history?limit=-5"):
            answer = await request("GET", f"{base}/{path}")
            assert answer.status == 400 and answer.code == "invalid_command", (path, answer)
        await listener.command("stop")


async def test_ten_thousand_tracks_and_no_more(antiphon, media, new_session):
    media.path(LONG)
    base = f"{antiphon.router.url}/api/v1/sessions/{new_session()}"
    await request("POST", f"{base}/queue", {"url": LONG.url})
    tracks = [{"url": f"media:{number}.flac"} for number in range(500)]
    for _ in range(20):
        answer = await request("POST", f"{base}/queue", {"tracks": tracks})
        assert answer.status == 200, answer
    assert answer.body["total"] == 10_000 and len(answer.body["tracks"]) == 100, answer.body["total"]
    answer = await request("POST", f"{base}/queue", {"url": LONG.url})
    assert answer.status == 409 and answer.code == "queue_full", answer
    last = await request("GET", f"{base}/queue?offset=9999")
    assert urls(last.body) == ["media:499.flac"], last
    answer = await request("POST", f"{base}/queue/{ids(last.body)[0]}/move", {"position": 0})
    assert urls(answer.body)[0] == "media:499.flac"
    assert (await request("POST", f"{base}/queue/shuffle", {})).body["total"] == 10_000
    assert (await request("DELETE", f"{base}/queue")).body["total"] == 0
    await request("POST", f"{base}/stop", {})


# MARK: Going on


def joints(packets: list[Packet]) -> list[int]:
    """Where a track begins, after the first."""
    return [
        index for index, (before, after) in enumerate(pairwise(packets), 1) if after.position_ms < before.position_ms
    ]


async def test_tracks_follow_each_other_without_a_gap(antiphon, media, new_session):
    media.make(*SHORT)
    async with listen(antiphon.router.url, new_session()) as listener:
        await listener.command("queue_add", tracks=[{"url": clip.url} for clip in SHORT])
        await listener.wait_event("ended", since=listener.index(await listener.wait_event("ready", url=SHORT[2].url)))
        packets = listener.packets()
        places = joints(packets)
        assert len(places) == 2, f"{len(places)} of 2 tracks follow"
        for place in places:
            step = (packets[place].due_ns - packets[place - 1].due_ns) / 1e6
            assert step == 20 or listener.delays(), f"a track began {step} ms after the last packet"
        sound = decode(packet.audio for packet in packets)[:, 0]
        for frequency, begin in zip((440, 660, 880), (0, *places), strict=True):
            part = sound[(begin + 5) * FRAME : (begin + 60) * FRAME]
            assert tone_level_db(part, frequency) > -7, f"{frequency} Hz is not heard from packet {begin} on"
        assert [event["reason"] for event in listener.events("ended")] == ["finished"] * 3
        assert not listener.events("error"), listener
        history = await listener.command("history")
        assert [entry["url"] for entry in history["tracks"]] == [clip.url for clip in reversed(SHORT)], history


async def test_what_is_prepared_can_still_be_changed(antiphon, media, new_session):
    """The next track is prepared at once, since the first is short; then it is taken out, or another goes before."""
    media.make(*SHORT)
    first, second, third = (clip.url for clip in SHORT)
    async with listen(antiphon.router.url, new_session()) as listener:
        await listener.command("queue_add", tracks=[{"url": first}, {"url": second}])
        await listener.wait_event("prepared", url=second)
        queue = (await listener.command("queue"))["queue"]
        await listener.command("queue_remove", id=ids(queue)[0])
        await listener.wait_event("ended", reason="finished")
        status = await listener.command("status")
        assert status["session"]["state"] == "idle", status
        assert not [event for event in listener.events("extracting") if event["url"] == second], listener

        since = listener.mark()
        await listener.command("queue_add", tracks=[{"url": first}, {"url": second}])
        await listener.wait_event("prepared", since, url=second)
        await listener.command("queue_add", url=third, next=True)
        begun = await listener.wait_event("extracting", listener.index(await listener.wait_event("ended", since)))
        assert begun["url"] == third, begun
        await listener.command("queue_clear")
        await listener.command("stop")


@pytest.mark.parametrize("mode", ["track", "queue"])
async def test_loops(antiphon, media, new_session, mode):
    media.make(*SHORT)
    async with listen(antiphon.router.url, new_session()) as listener:
        await listener.command("queue_loop", mode=mode)
        await listener.command("queue_add", tracks=[{"url": clip.url} for clip in SHORT[:2]])
        expected = [SHORT[0].url] * 3 if mode == "track" else [SHORT[n].url for n in (0, 1, 0)]
        await listener.wait(lambda: len(listener.events("playing")) >= 3, "three rounds")
        assert [event["url"] for event in listener.events("extracting")][:3] == expected
        packets = listener.packets()
        for place in joints(packets):
            step = (packets[place].due_ns - packets[place - 1].due_ns) / 1e6
            assert step == 20 or listener.delays(), f"a round began {step} ms after the last packet"
        await listener.command("queue_loop", mode="off")
        await listener.command("queue_clear")
        await listener.command("stop")


async def test_one_that_cannot_be_played_is_passed_over(antiphon, media, new_session):
    media.make(*SHORT)
    async with listen(antiphon.router.url, new_session()) as listener:
        tracks = [SHORT[0].url, "media:missing.flac", SHORT[1].url]
        await listener.command("queue_add", tracks=[{"url": url} for url in tracks])
        await listener.wait_event("ready", url=SHORT[1].url)
        assert listener.events("error")[0]["code"] == "source_not_found", listener
        await listener.command("stop")


async def test_a_direct_play_goes_before_the_queue(antiphon, media, new_session):
    media.make(*SHORT)
    media.path(LONG)
    async with listen(antiphon.router.url, new_session()) as listener:
        await listener.command("queue_add", tracks=[{"url": LONG.url}, {"url": SHORT[1].url}])
        await listener.wait_packets(5)
        # Refused before it begins: what plays goes on.
        answer = await listener.ask("play", url="ftp://nowhere/a")
        assert answer["type"] == "error", answer
        assert (await listener.command("queue"))["queue"]["current"]["url"] == LONG.url
        await listener.play(SHORT[0].url)
        queue = (await listener.command("queue"))["queue"]
        assert queue["current"]["url"] == SHORT[0].url and urls(queue) == [SHORT[1].url], queue
        await listener.wait_event("ready", url=SHORT[1].url)
        await listener.command("stop")


# MARK: What a restart keeps


@pytest.fixture
def mortal(tmp_path, media):
    """One of its own, to be killed."""
    media.path(LONG)
    media.make(*SHORT)
    with Antiphon(tmp_path, media.root) as running:
        yield running


async def test_the_routers_death_loses_nothing(mortal, new_session):
    session = new_session()
    base = f"{mortal.router.url}/api/v1/sessions/{session}"
    async with listen(mortal.router.url, session) as listener:
        await request("POST", f"{base}/queue", {"tracks": [{"url": LONG.url, "title": f"T{n}"} for n in range(5)]})
        await listener.wait_event("playing")
        since = listener.mark()
        await request("POST", f"{base}/skip", {})
        # A track is described once it is open.
        await listener.wait_event("playing", since)
    await request("POST", f"{base}/queue/loop", {"mode": "queue"})
    await request("POST", f"{base}/quality", {"bitrate_kbps": 96})
    await request("POST", f"{base}/volume", {"level": 0.5})
    await request("POST", f"{base}/seek", {"position_ms": 30_000})
    before = (await request("GET", base)).body
    history = (await request("GET", f"{base}/history")).body
    mortal.router.kill()
    mortal.router.start()
    wait_ready(mortal.router)
    after = (await request("GET", base)).body
    assert after["queue"] == before["queue"], (before, after)
    assert (await request("GET", f"{base}/history")).body == history
    assert after["volume"] == 0.5 and after["state"] == "streaming", after
    assert (
        abs(after["position_ms"] - (await request("GET", f"{mortal.engine.url}/session/{session}")).body["position_ms"])
        < 1_000
    )


async def test_tracks_that_end_while_the_router_is_away(mortal, new_session):
    """The prepared track begins without the Router, which finds it playing; the one after it follows."""
    session = new_session()
    async with listen(mortal.router.url, session) as listener:
        tracks = [{"url": clip.url} for clip in SHORT[:2]] + [{"url": LONG.url}]
        await listener.command("queue_add", tracks=tracks)
        await listener.wait_event("prepared")
        mortal.router.kill()
    await asyncio.sleep(1.6)
    mortal.router.start()
    wait_ready(mortal.router)
    async with listen(mortal.router.url, session) as listener:
        greeting = await listener.wait_event("session")
        assert greeting["queue"]["current"]["url"] in (SHORT[1].url, LONG.url), greeting
        await listener.wait(
            lambda: (
                any(event.get("url") == LONG.url for event in listener.events("ready"))
                or greeting["session"].get("url") == LONG.url
            ),
            "the last track",
        )
        queue = (await listener.command("queue"))["queue"]
        assert queue["current"]["url"] == LONG.url and queue["total"] == 0 and queue["history_total"] == 2, queue


async def test_the_death_of_both(mortal, new_session):
    playing, paused, idle = new_session(), new_session(), new_session()
    api = f"{mortal.router.url}/api/v1/sessions"
    for session in (playing, paused):
        await request("POST", f"{api}/{session}/play", {"url": LONG.url, "start_ms": 40_000})
    await request("POST", f"{api}/{playing}/queue", {"url": SHORT[0].url})
    await request("POST", f"{api}/{paused}/pause", {})
    stood = (await request("GET", f"{api}/{paused}")).body["position_ms"]
    await asyncio.sleep(1.5)
    position = (await request("GET", f"{api}/{playing}")).body["position_ms"]
    mortal.router.kill()
    mortal.engine.kill()
    mortal.router.start()
    mortal.engine.start()
    wait_ready(mortal.router)
    async with listen(mortal.router.url, playing, buffer_ms=0) as listener:
        packets = await listener.wait_packets(10)
        assert -1_000 <= packets[0].position_ms - position < 3_000, (packets[0], position)
        assert urls((await listener.command("queue"))["queue"]) == [SHORT[0].url]
    async with listen(mortal.router.url, paused, buffer_ms=0) as listener:
        await listener.wait(
            lambda: (
                listener.events("paused")
                or [event for event in listener.events("session") if event["session"]["state"] == "paused"]
            ),
            "paused",
        )
        since = listener.mark()
        assert (await request("POST", f"{api}/{paused}/resume", {})).status == 200
        assert (await listener.wait_packets(3, since))[0].position_ms == stood
    assert (await request("GET", f"{api}/{idle}")).body["state"] == "idle"


async def test_what_is_added_without_an_engine_plays_when_it_comes(mortal, new_session):
    session = new_session()
    mortal.engine.kill()
    async with listen(mortal.router.url, session) as listener:
        await listener.wait(
            lambda: any(not event["engine"]["connected"] for event in listener.events() if "engine" in event),
            "no engine",
        )
        answer = await listener.command("queue_add", url=LONG.url)
        assert answer["queue"]["current"]["url"] == LONG.url, answer
        mortal.engine.start()
        await listener.wait_packets(5)


async def test_two_routers_do_not_share_a_state(mortal, tmp_path):
    command = [BINARIES / "Router", "--engine-socket", mortal.socket, "--listen", "127.0.0.1:0"]
    command += ["--state", tmp_path / "state"]
    second = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
    _, errors = await asyncio.wait_for(second.communicate(), 15)
    assert second.returncode == 1, errors
    assert b"another Router uses" in errors and b"--state" in errors, errors
