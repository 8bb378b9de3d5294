"""Pages: the real yt-dlp finds the media behind them, and what is heard is that media."""

import asyncio
import itertools

import pytest

from analysis import heard_at
from client import listen, request
from extraction import COLD_SECONDS, figures
from inbox import assert_unbroken
from media import MP3_CBR, OGG_OPUS, glides_clip
from opus import FRAME, decode
from page_server import Asked, PageServer
from processes import Antiphon
from signals import Glides

SONG = Glides(4, seed=21)
OTHER = Glides(4, seed=22)
MP3 = glides_clip("page-song", SONG, MP3_CBR, 44_100)
OPUS = glides_clip("page-song-opus", OTHER, OGG_OPUS)
LONG = Glides(8, seed=23)
LONG_MP3 = glides_clip("page-long", LONG, MP3_CBR, 44_100)


@pytest.fixture(scope="module")
def antiphon(tmp_path_factory, media):
    """Allowed to fetch from 127.0.0.1, and from nowhere else that is not public."""
    with Antiphon(tmp_path_factory.mktemp("pages"), media.root, allow=("127.0.0.1/32",)) as running:
        yield running


@pytest.fixture(scope="module")
def site(media):
    media.make(MP3, OPUS, LONG_MP3)
    with PageServer() as server:
        server.add("/song.mp3", lambda asked: asked.media(media.bytes(MP3)))
        server.add("/song.opus", lambda asked: asked.media(media.bytes(OPUS), kind="audio/ogg"))
        server.add("/audio", lambda asked: asked.page('<title>A song</title><audio src="song.mp3"></audio>'))
        yield server


@pytest.fixture(scope="module")
def forbidden_site():
    """On another loopback address, which is not allowed: no request may reach it."""
    with PageServer("127.0.0.2") as server:
        yield server


async def hear(antiphon, session: str, url: str, source: Glides, **fields) -> dict:
    """Plays a page to its end; what `ready` said of it. Its sound has to be the source's, from its start."""
    async with listen(antiphon.router.url, session) as listener:
        ready = await listener.ask("play", url=url, seconds=COLD_SECONDS, **fields)
        assert ready["type"] == "ready", ready
        ended = await listener.wait_event("ended", seconds=source.seconds + COLD_SECONDS)
        assert ended["reason"] == "finished" and not listener.events("error"), (ended, listener.events("error"))
        packets = listener.packets()
        assert_unbroken(packets, url)
        assert abs(len(packets) - source.seconds * 50) <= 3, f"{len(packets)} packets of {source.seconds} s"
        sound = decode(packet.audio for packet in packets)[:, 0]
        for second in range(int(source.seconds)):
            place = heard_at(sound, (second * 50 + 10) * FRAME, source)
            wanted = second * 1_000 + 200
            assert place.likeness > 0.85 and abs(place.milliseconds - wanted) <= 30, f"at {wanted} ms: {place}"
        return ready


@pytest.mark.parametrize(
    ("body", "source", "is_opus"),
    [
        ('<audio src="song.mp3"></audio>', SONG, False),
        ('<video><source src="/song.mp3" type="video/mp4"></video>', SONG, False),
        (
            '<audio><source src="song.mp3" type="audio/mpeg; codecs=mp3">'
            '<source src="song.opus" type="audio/ogg; codecs=opus"></audio>',
            OTHER,
            True,
        ),
        ('<audio src="song.mp3"></audio><p>and</p><audio src="song.opus"></audio>', SONG, False),
    ],
    ids=["audio", "video", "opus is preferred", "the first of several"],
)
async def test_a_page_is_heard(antiphon, site, new_session, bystander, body, source, is_opus):
    session = new_session()
    url = site.add(f"/{session}", lambda asked: asked.page(f"<title>A song</title>{body}"))
    ready = await hear(antiphon, session, url, source)
    assert ready["url"] == url and ready["title"].startswith("A song"), ready
    assert ready["passthrough"] is is_opus and ready["codec"] == ("opus" if is_opus else "mp3"), ready
    assert ready["timings_ms"]["extract"] > 0, ready


async def test_what_was_extracted_is_kept(antiphon, site, new_session):
    """Another volume is another production of the same page."""
    url = site.add("/kept", lambda asked: asked.page('<audio src="song.mp3"></audio>'))
    await hear(antiphon, new_session(), url, SONG)
    before, asked = await figures(antiphon), site.requests.count("/kept")
    await hear(antiphon, new_session(), url, SONG, volume=0.5)
    after = await figures(antiphon)
    assert after["jobs_total"] == before["jobs_total"], (before, after)
    assert after["cache_hits_total"] == before["cache_hits_total"] + 1, (before, after)
    assert site.requests.count("/kept") == asked, "the page was fetched again"


async def test_one_page_asked_for_twice_at_once_is_extracted_once(antiphon, site, new_session):
    gate = asyncio.Event()
    loop = asyncio.get_running_loop()
    waiting = asyncio.Event()

    def page(asked: Asked) -> None:
        if not asked.is_engine:
            loop.call_soon_threadsafe(waiting.set)
            asyncio.run_coroutine_threadsafe(gate.wait(), loop).result()
        asked.page('<audio src="song.mp3"></audio>')

    url = site.add("/shared", page)
    before = await figures(antiphon)
    first = asyncio.create_task(hear(antiphon, new_session(), url, SONG))
    await asyncio.wait_for(waiting.wait(), COLD_SECONDS)
    second = asyncio.create_task(hear(antiphon, new_session(), url, SONG, volume=0.5))
    while site.requests.count("/shared") < 3:  # both looked at by the engine, one by yt-dlp
        await asyncio.sleep(0.02)
    gate.set()
    await asyncio.gather(first, second)
    after = await figures(antiphon)
    assert after["jobs_total"] == before["jobs_total"] + 1, (before, after)


async def test_a_direct_link_is_none_of_yt_dlps_business(antiphon, site, new_session):
    before = await figures(antiphon)
    ready = await hear(antiphon, new_session(), f"{site.url}/song.mp3", SONG)
    assert "extract" not in ready["timings_ms"], ready
    assert await figures(antiphon) == before


async def test_what_is_no_audio_is_named(antiphon, site, forbidden_site, new_session, bystander):
    far = f"{forbidden_site.url}/song.mp3"
    forbidden_site.add("/song.mp3", lambda asked: asked.answer(200, b"ID3"))
    redirect = lambda asked: asked.page("") if asked.is_engine else asked.redirect(far)  # noqa: E731
    bad = {
        "no media": (lambda asked: asked.page("<title>Words</title>words"), "source_not_audio", "Unsupported URL"),
        "redirects yt-dlp to a private address": (redirect, "source_forbidden", "127.0.0.2"),
        "redirects everyone to a private address": (lambda a: a.redirect(far), "source_forbidden", "127.0.0.2"),
        "has its media on a private address": (
            lambda asked: asked.page(f'<audio src="{far}"></audio>'),
            "source_forbidden",
            "127.0.0.2",
        ),
        "has its media in a file": (
            lambda asked: asked.page('<audio src="file:///etc/passwd"></audio>'),
            "source_not_audio",
            "audio",
        ),
        "is broken for yt-dlp": (
            lambda asked: asked.page("") if asked.is_engine else asked.answer(500, b"no"),
            "extraction_failed",
            "500",
        ),
        "is a list of no segments": (
            lambda asked: asked.answer(200, b"#EXTM3U\n#EXT-X-ENDLIST\n", "application/vnd.apple.mpegurl"),
            "source_empty",
            "segment",
        ),
    }
    for number, (what, (page, code, words)) in enumerate(bad.items()):
        url = site.add(f"/bad{number}", page)
        answer = await request("POST", f"{antiphon.engine.url}/session/{new_session()}/play", {"url": url})
        assert answer.code == code, f"{what}: {answer}"
        assert words in answer.body["message"] and answer.body.get("hint"), f"{what}: {answer}"
    assert not forbidden_site.requests, f"the forbidden address was asked for {forbidden_site.requests}"


@pytest.mark.parametrize(
    "url",
    [
        "-x",
        "--exec=touch /tmp/antiphon-was-here",
        "ytsearch:song",
        "ytsearch5:song",
        "file:///etc/passwd",
        ":ythistory",
    ],
)
async def test_an_address_is_never_an_order(antiphon, new_session, url):
    before = await figures(antiphon)
    answer = await request("POST", f"{antiphon.engine.url}/session/{new_session()}/play", {"url": url})
    assert answer.status == 400 and answer.code == "invalid_source", answer
    assert await figures(antiphon) == before, "yt-dlp was asked"


@pytest.mark.parametrize("status", [403, 410])
async def test_an_address_that_expires_in_the_middle_is_found_again(antiphon, media, site, new_session, status):
    """Each look at the page gives another address; the first one breaks off and then works no more."""
    data = media.bytes(LONG_MP3)
    addresses = itertools.count(1)
    served: list[int] = []

    def stream(asked: Asked) -> None:
        number = int(asked.path.rpartition("=")[2])
        if number == 1 and 1 in served:
            asked.answer(status, b"expired")
        else:
            served.append(number)
            asked.media(data, at_most=80_000 if number == 1 else None)

    site.add(f"/stream{status}", stream)

    def page(asked: Asked) -> None:
        number = 0 if asked.is_engine else next(addresses)
        asked.page(f'<audio src="/stream{status}?number={number}"></audio>')

    url = site.add(f"/expiring{status}", page)
    await hear(antiphon, new_session(), url, LONG)
    assert served == [1, 2], f"the addresses that gave sound: {served}"
    again = next(addresses)
    assert again == 3, f"the page was extracted {again - 1} times"


async def test_a_kept_address_that_works_no_more_is_found_again(antiphon, media, site, new_session):
    addresses = itertools.count(1)
    valid = [1]

    def stream(asked: Asked) -> None:
        number = int(asked.path.rpartition("=")[2])
        asked.media(media.bytes(MP3)) if number in valid else asked.answer(403, b"expired")

    site.add("/once", stream)

    def page(asked: Asked) -> None:
        asked.page(f'<audio src="/once?number={0 if asked.is_engine else next(addresses)}"></audio>')

    url = site.add("/outdated", page)
    await hear(antiphon, new_session(), url, SONG)
    valid[:] = [2]
    await hear(antiphon, new_session(), url, SONG, volume=0.5)
    assert next(addresses) == 3
