"""Radio: real Icecast stations, which never end, say what they play, go away and come back."""

import asyncio
import contextlib
import itertools
import re
import subprocess
import time
from pathlib import Path
from urllib.parse import quote

import aiohttp
import pytest

from analysis import dominant_frequency
from client import listen, request
from icecast import KINDS, Icecast
from inbox import PATIENCE_SECONDS, assert_unbroken
from media import FLAC, MP3_CBR, OGG_OPUS, Encoding, tone_clip
from ogg import read_opus
from opus import RATE, decode, sound_of
from processes import Antiphon
from tab import expect, tab_in
from web_server import WebServer

#: Longer than any test listens.
LOW, HIGH = tone_clip(440, 20, FLAC), tone_clip(880, 20, FLAC)
SONG = tone_clip(620, 3, MP3_CBR)
ROUND = tone_clip(620, 20, MP3_CBR)
#: 20 s of it are less than the engine of this module takes of a source that ends.
SLOW = tone_clip(620, 20, Encoding("mp3-64k", "mp3", "-c:a libmp3lame -b:a 64k"))


@pytest.fixture(scope="module")
def antiphon(tmp_path_factory, media):
    options = ("--source-timeout-seconds", "2", "--max-source-bytes", "200000")
    folder = tmp_path_factory.mktemp("radio")
    with Antiphon(folder, media.root, allow=("127.0.0.1/32",), engine_options=options) as running:
        yield running


@pytest.fixture
def icecast(tmp_path, media):
    media.make(LOW, HIGH, SONG)
    with Icecast(tmp_path) as server:
        yield server


def assert_tone(packets, frequency: float, what: str) -> None:
    assert_unbroken(packets, what)
    sound = sound_of(packets)[RATE // 10 :]
    assert abs(dominant_frequency(sound) - frequency) < 3, f"{what}: {dominant_frequency(sound)} Hz"


async def hear(listener, frequency: float, what: str, packets: int = 100) -> None:
    """So many packets from now on, all of that tone."""
    since = listener.mark()
    await listener.wait_packets(packets, since=since)
    assert_tone(listener.packets(since), frequency, what)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_station_plays_and_says_what_it_is(antiphon, icecast, media, new_session, kind):
    icecast.feed("live", media.path(LOW), kind)
    async with listen(antiphon.router.url, new_session()) as listener:
        ready = await play(listener, f"{icecast.url}/live")
        assert (ready["live"], ready["station"], ready["genre"]) == (True, "Test FM", "Tones"), ready
        assert "duration_ms" not in ready
        await hear(listener, 440, kind)
        session = (await listener.command("status"))["session"]
        assert (session["live"], session["station"], session["genre"]) == (True, "Test FM", "Tones"), session


async def play(listener, url: str) -> dict:
    """A mount is there a moment after somebody has begun to feed it."""
    for _ in range(50):
        answer = await listener.ask("play", url=url)
        if answer["type"] == "ready":
            return answer
        await asyncio.sleep(0.2)
    raise AssertionError(answer)


async def test_titles_come_with_their_packets(antiphon, icecast, media, new_session):
    icecast.feed("live", media.path(LOW))
    async with listen(antiphon.router.url, new_session()) as listener:
        await play(listener, f"{icecast.url}/live")
        await listener.wait_packets(50)
        for said, title, artist in [
            ("Miles Davis - So What", "So What", "Miles Davis"),
            ("News at ten", "News at ten", None),
            ("Björk – 'Jóga'; - Two - Three", "Two - Three", "Björk – 'Jóga';"),
        ]:
            since = listener.mark()
            await icecast.announce("live", said)
            told = await listener.wait_event("metadata", since)
            assert (told.get("title"), told.get("artist")) == (title, artist), told
            session = (await listener.command("status"))["session"]
            assert (session.get("title"), session.get("artist")) == (title, artist), session
            queue = await listener.wait_event("queue", since)
            assert (queue["queue"]["current"]["title"], queue["queue"]["current"].get("artist")) == (title, artist)
        assert_tone(listener.packets(), 440, "a station with titles")


async def test_ogg_says_its_titles_itself(antiphon, icecast, media, new_session):
    """Icecast begins another link of a chain for each title of a Vorbis mount (RFC 3533, section 4)."""
    icecast.feed("live", media.path(LOW), "vorbis")
    async with listen(antiphon.router.url, new_session()) as listener:
        await play(listener, f"{icecast.url}/live")
        for said, title, artist in [("Miles Davis - So What", "So What", "Miles Davis"), ("News", "News", None)]:
            since = listener.mark()
            await icecast.announce("live", said)
            told = await listener.wait_event("metadata", since)
            assert (told.get("title"), told.get("artist")) == (title, artist), told
        await hear(listener, 440, "a chain of streams")


async def test_a_title_stands_before_the_first_packet_of_its_link(antiphon, media, new_session):
    frequencies = (300, 400, 500)
    links = [titled_opus(media, frequency) for frequency in frequencies]
    async with listen(antiphon.router.url, new_session()) as listener, endless(b"".join(links)) as url:
        since = listener.mark()
        ready = await listener.play(url)
        assert (ready["live"], ready["title"], ready["artist"]) == (True, "300 Hz", "Ann"), ready
        assert ready["passthrough"], ready
        await listener.wait_event("metadata", since, title="500 Hz")
        await listener.wait_packets(3 * LINK_PACKETS, since=since)
        # What has nothing more to say is asked for again, and begins anew.
        told = listener.events("metadata", since)[:2]
        assert [(event["title"], event["artist"]) for event in told] == [("400 Hz", "Ann"), ("500 Hz", "Ann")]
        places = [since, *(listener.index(event) for event in told)]
        for frequency, start, end in zip(frequencies, places, [*places[1:], None], strict=True):
            packets = listener.packets(start, end)
            assert len(packets) == LINK_PACKETS or end is None
            assert_tone(packets[:LINK_PACKETS], frequency, f"the link of {frequency} Hz")


LINK_PACKETS = 100


def titled_opus(media, frequency: int) -> bytes:
    """A stream of so many packets that says its title."""
    clip = tone_clip(frequency, (LINK_PACKETS - 0.5) * 0.02, OGG_OPUS)
    tags = ["-metadata:s", f"title={frequency} Hz", "-metadata:s", "artist=Ann"]
    command = ["ffmpeg", "-v", "error", "-i", media.path(clip), "-c", "copy", *tags, "-f", "ogg", "pipe:1"]
    return subprocess.run(command, capture_output=True, check=True).stdout


@contextlib.asynccontextmanager
async def endless(sound: bytes):
    """A station that sends this at once, and then nothing; the address."""

    async def serve(writer) -> None:
        writer.write(b"HTTP/1.0 200 OK\r\nContent-Type: audio/ogg\r\nicy-name: Chains\r\n\r\n" + sound)

    async with served(serve) as url:
        yield url


async def test_a_source_that_ends_and_comes_back_is_heard_again(antiphon, icecast, media, new_session):
    """Another tone in another codec comes back behind the same address."""
    icecast.feed("live", media.path(LOW))
    async with listen(antiphon.router.url, new_session()) as listener:
        await play(listener, f"{icecast.url}/live")
        await hear(listener, 440, "before")
        begun = since = listener.mark()
        icecast.silence("live")
        await listener.wait_event("buffering", since)
        reason = await request("GET", f"{antiphon.router.url}/api/v1/sessions/{listener.session}/why")
        assert any(stage["stage"] == "restart" and "asked again" in stage["detail"] for stage in reason.body["stages"])
        since = listener.mark()
        icecast.feed("live", media.path(HIGH), "opus")
        await listener.wait_event("playing", since)
        await hear(listener, 880, "after")
        assert not listener.events("ended", begun) and not listener.events("error", begun)


async def test_a_server_that_is_killed_and_started_again_is_heard_again(antiphon, icecast, media, new_session):
    icecast.feed("live", media.path(LOW), "aac")
    async with listen(antiphon.router.url, new_session()) as listener:
        await play(listener, f"{icecast.url}/live")
        await hear(listener, 440, "before")
        begun = since = listener.mark()
        icecast.kill()
        await listener.wait_event("buffering", since)
        since = listener.mark()
        icecast.start()
        icecast.feed("live", media.path(HIGH), "aac")
        await listener.wait_event("playing", since)
        await hear(listener, 880, "after")
        assert not listener.events("ended", begun)


async def test_the_page_shows_a_station_as_one(antiphon, icecast, media, browser, new_session):
    icecast.feed("live", media.path(LOW))
    router = antiphon.router.url
    async with listen(router, new_session()) as another:
        await play(another, f"{icecast.url}/live")
        await another.command("stop")
    async with tab_in(browser, router) as tab, listen(router, await tab.session()) as listener:
        await listener.play(f"{icecast.url}/live")
        await icecast.announce("live", "Miles Davis - So What")
        await expect(tab.page.locator("#title")).to_have_text("So What")
        await expect(tab.page.locator("#byline")).to_have_text("Miles Davis · Test FM · Tones")
        await expect(tab.page.locator("#live")).to_be_visible()
        await expect(tab.page.locator("#since")).to_contain_text("Playing here since")
        await expect(tab.page.locator("#seek")).to_be_hidden()
        await tab.wait_for_tone(440)
        await listener.play(SONG.url)
        await expect(tab.page.locator("#seek")).to_be_visible()
        await expect(tab.page.locator("#live")).to_be_hidden()
        await tab.assert_no_errors()


async def test_sixty_sessions_of_a_station_are_one_connection(antiphon, icecast, media, new_session):
    icecast.feed("live", media.path(LOW))
    url = f"{icecast.url}/live"
    async with listen(antiphon.router.url, new_session()) as first:
        await play(first, url)
        others = [new_session() for _ in range(59)]
        sessions = f"{antiphon.router.url}/api/v1/sessions"
        played = [request("POST", f"{sessions}/{each}/play", {"url": url}) for each in others]
        assert {answer.status for answer in await asyncio.gather(*played)} == {200}
        async with listen(antiphon.router.url, others[-1]) as last:
            await hear(last, 440, "the sixtieth")
        assert await icecast.listeners("live") == 1
        await asyncio.gather(*(request("POST", f"{sessions}/{each}/stop") for each in others))
        await hear(first, 440, "the first")


async def test_it_has_no_place_to_go_back_to(antiphon, icecast, media, new_session):
    icecast.feed("live", media.path(LOW))
    async with listen(antiphon.router.url, new_session()) as listener:
        await play(listener, f"{icecast.url}/live")
        await listener.wait_packets(20)
        refused = await listener.ask("seek", position_ms=1_000)
        assert refused["code"] == "invalid_state" and "live" in refused["message"], refused
        # Paused, it continues where it is by then; louder, it is the same station.
        await listener.command("pause")
        await asyncio.sleep(1)
        await listener.command("resume")
        await hear(listener, 440, "resumed")
        await listener.command("volume", level=0.5)
        await hear(listener, 440, "softer")


async def test_a_queue_goes_from_a_song_to_a_station_and_on(antiphon, icecast, media, new_session):
    icecast.feed("live", media.path(LOW))
    async with listen(antiphon.router.url, new_session()) as listener:
        await play(listener, f"{icecast.url}/live")
        await listener.command("stop")
        urls = [SONG.url, f"{icecast.url}/live", HIGH.url]
        since = listener.mark()
        await listener.command("queue_add", tracks=[{"url": url} for url in urls])
        opening = await listener.wait_event("extracting", since, url=f"{icecast.url}/live")
        await listener.wait_event("playing", listener.index(opening))
        await hear(listener, 440, "the station after a song")
        since = listener.mark()
        await listener.command("skip")
        await listener.wait_event("playing", since)
        await hear(listener, 880, "what follows the station")


async def test_a_player_that_asks_is_told_the_titles(antiphon, icecast, media, new_session):
    icecast.feed("live", media.path(LOW))
    async with listen(antiphon.router.url, new_session()) as listener:
        await play(listener, f"{icecast.url}/live")
        address = f"{antiphon.router.url}/listen/{listener.session}.ogg"
        async with aiohttp.ClientSession() as http, http.get(address, headers={"Icy-MetaData": "1"}) as answer:
            interval = int(answer.headers["icy-metaint"])
            sound, said = b"", []
            await icecast.announce("live", "Björk - Jóga")
            async with asyncio.timeout(PATIENCE_SECONDS):
                while "Björk - Jóga" not in said:
                    sound += await answer.content.readexactly(interval)
                    length = (await answer.content.readexactly(1))[0] * 16
                    block = (await answer.content.readexactly(length)).rstrip(b"\0").decode()
                    said += re.findall("StreamTitle='(.*)';", block)
        assert abs(dominant_frequency(decode(read_opus(sound).packets)[RATE // 10 :, 0]) - 440) < 3
        async with aiohttp.ClientSession() as http, http.get(address) as answer:
            assert "icy-metaint" not in answer.headers and await answer.content.readexactly(4) == b"OggS"


async def test_a_playlist_is_its_first_station_that_answers(antiphon, icecast, media, new_session):
    """By URL and below the media root; asked for as a list, it is one."""
    icecast.feed("live", media.path(LOW))
    pls = f"[playlist]\nFile1={icecast.url}/gone\nTitle1=Gone\nFile2={icecast.url}/live\nTitle2=Here\n"
    (media.root / "station.pls").write_text(pls)
    (media.root / "mine.m3u").write_text(f"#EXTM3U\n#EXTINF:3,Ann - Song\n{SONG.file}\n{icecast.url}/live\n")
    (media.root / "itself.m3u").write_text("itself.m3u\n")
    with WebServer(media.root) as site:
        listed = {
            f"{site.url}/files/station.pls": [(f"{icecast.url}/gone", "Gone"), (f"{icecast.url}/live", "Here")],
            "media:mine.m3u": [(SONG.url, "Ann - Song"), (f"{icecast.url}/live", None)],
        }
        for url, entries in listed.items():
            found = (await request("GET", f"{antiphon.router.url}/api/v1/resolve?query={quote(url)}")).body
            assert found["kind"] == "playlist"
            assert [(entry["url"], entry.get("title")) for entry in found["entries"]] == entries
        async with listen(antiphon.router.url, new_session()) as listener:
            ready = await play(listener, f"{site.url}/files/station.pls")
            assert (ready["live"], ready["station"]) == (True, "Test FM"), ready
            await hear(listener, 440, "a station of a playlist")
            await listener.play("media:mine.m3u")
            await hear(listener, 620, "the first of a list")
            refused = await listener.ask("play", url="media:itself.m3u")
            assert refused["code"] == "source_not_audio", refused


#: What `station` sends in a second, and at once at first.
RATE_BYTES, BURST_BYTES = 24_000, 72_000


@contextlib.asynccontextmanager
async def station(sound: bytes, interval: int, block, status: str = "ICY 200 OK"):
    """A server that says `status`, and `block(number)` after each interval of its sound; the address."""

    async def serve(writer) -> None:
        fields = ("Content-Type: audio/mpeg", "icy-name: Old FM", "icy-br: 192", f"icy-metaint: {interval}")
        writer.write("\r\n".join([status, *fields, "", ""]).encode())
        begun, sent = time.monotonic(), 0
        with contextlib.suppress(ConnectionError):
            for number in itertools.count():
                place = sent % len(sound)
                writer.write((sound + sound)[place : place + interval] + block(number))
                sent += interval
                await writer.drain()
                ahead = (sent - BURST_BYTES) / RATE_BYTES - (time.monotonic() - begun)
                if ahead > 0.05:
                    await asyncio.sleep(ahead)

    async with served(serve) as url:
        yield url


@contextlib.asynccontextmanager
async def served(serve):
    """The address of a server that answers each request with what `serve(writer)` writes, and hangs up in the end."""
    writers = []

    async def accept(reader, writer) -> None:
        writers.append(writer)
        await reader.readuntil(b"\r\n\r\n")
        await serve(writer)

    async with await asyncio.start_server(accept, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        for writer in writers:
            writer.close()


def said(title: str) -> bytes:
    text = f"StreamTitle='{title}';".encode()
    count = (len(text) + 15) // 16
    return bytes([count]) + text.ljust(count * 16, b"\0")


@pytest.fixture(scope="module")
def round_sound(media) -> bytes:
    return frames_of(media.path(ROUND))


def frames_of(file: Path) -> bytes:
    """Whole frames of MP3, which go round without a step."""
    data = file.read_bytes()
    return data[data.index(b"\xff\xfb") :]


async def test_sound_without_end_is_live_where_nobody_says_so(antiphon, media, new_session):
    """Neither what a station says of itself nor a length. What breaks off is asked for again; what ends has ended."""
    sound = frames_of(media.path(SLOW))
    requests, breaks, ends = asyncio.Semaphore(0), asyncio.Event(), asyncio.Event()

    async def serve(writer) -> None:
        requests.release()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: audio/mpeg\r\nTransfer-Encoding: chunked\r\n\r\n")
        begun = time.monotonic()
        for number in itertools.count():
            place = number * 800 % len(sound)
            writer.write(b"320\r\n" + (sound + sound)[place : place + 800] + b"\r\n")
            await writer.drain()
            await asyncio.sleep(max(0, number / 10 - 2 - (time.monotonic() - begun)))
            if breaks.is_set() or ends.is_set():
                break
        if ends.is_set():
            writer.write(b"0\r\n\r\n")
        else:
            breaks.clear()
            writer.transport.abort()

    async with served(serve) as url, listen(antiphon.router.url, new_session()) as listener:
        ready = await listener.play(url)
        assert "live" not in ready, ready
        told = await listener.wait_event("status", seconds=30)
        assert told["session"]["live"], told
        refused = await listener.ask("seek", position_ms=1_000)
        assert refused["code"] == "invalid_state", refused
        breaks.set()
        for _ in ("played", "asked for again"):
            await asyncio.wait_for(requests.acquire(), PATIENCE_SECONDS)
        await hear(listener, 620, "what came back")
        assert not listener.events("ended")
        ends.set()
        assert (await listener.wait_event("ended"))["reason"] == "finished"


async def test_an_old_server_is_understood(antiphon, round_sound, new_session):
    serving = station(round_sound, 8_192, lambda number: said("Ann - One") if number % 4 == 0 else b"\0")
    async with serving as url, listen(antiphon.router.url, new_session()) as listener:
        ready = await listener.play(url)
        assert (ready["live"], ready["station"], ready["bitrate"]) == (True, "Old FM", 192), ready
        assert (await listener.wait_event("metadata"))["title"] == "One"
        await hear(listener, 620, "an old server")
        await listener.command("stop")


async def test_a_server_that_promises_metadata_and_sends_none(antiphon, round_sound, new_session):
    serving = station(round_sound, 8_192, lambda _: b"")
    async with serving as url, listen(antiphon.router.url, new_session()) as listener:
        await listener.play(url)
        await listener.wait_packets(200)
        assert not listener.events("metadata") and not listener.events("error")
        sound = sound_of(listener.packets())[RATE:]
        assert abs(dominant_frequency(sound) - 620) < 3
        await listener.command("stop")


async def test_a_station_that_says_another_title_every_moment(antiphon, round_sound, new_session, bystander):
    serving = station(round_sound, 256, lambda number: said(f"Ann - {number}"))
    async with serving as url, listen(antiphon.router.url, new_session()) as listener:
        await listener.play(url)
        since = listener.mark()
        await listener.wait_packets(250, since=since)
        assert 1 <= len(listener.events("metadata", since)) <= 7, listener.events("metadata", since)
        await listener.command("stop")
