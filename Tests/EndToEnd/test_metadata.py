"""Who made a track and what it looks like: read from every container, within limits, and given to both endpoints."""

import asyncio
import base64
import subprocess
from collections.abc import Mapping

import aiohttp
import pytest
from yarl import URL

from client import connect_to_engine, listen, request
from media import MP3_CBR, Clip, media_url, tone_clip
from tagged import id3, id3_picture, id3_text, make_picture, make_tagged

MEBIBYTE = 1 << 20
TAGS = {"title": "O vis æternitatis", "artist": "Hildegard", "album": "Symphonia"}
SAYS = {"title": TAGS["title"], "artist": TAGS["artist"], "album": TAGS["album"]}
CHAPTERS = [(0, "Responsorium"), (4_000, "Versus"), (8_500, "Doxologia")]
BARE: Clip = tone_clip(440, 2, MP3_CBR)
SVG = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
HTML = b"<!doctype html><script>alert(1)</script>"


@pytest.fixture(scope="module")
def picture(tmp_path_factory):
    """Larger than one piece on the wire."""
    path = make_picture(tmp_path_factory.mktemp("pictures"), "png", 1_200)
    assert path.stat().st_size > 2 * 49_152
    return path


async def get(url: str, **headers: str) -> tuple[int, Mapping[str, str], bytes]:
    async with aiohttp.ClientSession() as http, http.get(URL(url, encoded=True), headers=headers) as answer:
        return answer.status, answer.headers, await answer.read()


async def ready_of(antiphon, session: str, url: str) -> dict:
    async with listen(antiphon.router.url, session) as listener:
        ready = await listener.play(url)
        await listener.command("stop")
        return ready


@pytest.mark.parametrize("suffix", ["mp3", "m4a", "flac", "ogg", "opus", "mkv"])
async def test_tags_and_the_cover_are_found(antiphon, media, new_session, picture, suffix):
    url = make_tagged(media, f"tagged.{suffix}", TAGS, cover=picture)
    ready = await ready_of(antiphon, new_session(), url)
    assert {key: ready.get(key) for key in SAYS} == SAYS, ready
    assert abs(ready["duration_ms"] - 12_000) < 60, ready
    for server in (antiphon.router, antiphon.engine):
        status, headers, body = await get(server.url + ready["artwork"])
        assert (status, headers["Content-Type"]) == (200, "image/png"), (suffix, server.name, body[:300])
        assert headers["X-Content-Type-Options"] == "nosniff" and "sandbox" in headers["Content-Security-Policy"]
        assert body == picture.read_bytes(), f"{server.name} changed the cover"
        status, again, body = await get(server.url + ready["artwork"], **{"If-None-Match": headers["ETag"]})
        assert (status, body) == (304, b""), "the same picture is sent once"


@pytest.mark.parametrize("suffix", ["webm", "wav"])
async def test_tags_are_found_where_there_is_no_cover(antiphon, media, new_session, suffix):
    url = make_tagged(media, f"coverless/tagged.{suffix}", TAGS)
    ready = await ready_of(antiphon, new_session(), url)
    assert {key: ready.get(key) for key in SAYS} == SAYS, ready
    assert "artwork" not in ready
    status, _, body = await get(f"{antiphon.router.url}/artwork?url={url}")
    assert status == 404 and b"no cover" in body, body


async def test_what_is_outside_is_as_if_it_were_not_there(antiphon, media):
    """Nobody learns from a cover's answer which files there are outside the media root."""
    link = media.root / "outside.mp3"
    link.symlink_to("/etc/passwd")
    answers = set()
    for path in ("outside.mp3", "missing.mp3", "../missing.mp3", "../../../../etc/passwd", "/etc/passwd"):
        for server in (antiphon.router, antiphon.engine):
            answer = await request("GET", f"{server.url}/artwork?url=media:{path}")
            answers.add((answer.status, answer.body["code"], answer.body["message"].replace(path, "PATH")))
    assert answers == {(404, "not_found", "media:PATH is no file below the media root")}


@pytest.mark.parametrize("suffix", ["m4a", "mkv", "mp3"])
async def test_chapters_are_in_ready_and_for_those_who_come_later(antiphon, media, new_session, suffix):
    url = make_tagged(media, f"chapters.{suffix}", {"title": "Vespers"}, chapters=CHAPTERS)
    session = new_session()
    async with listen(antiphon.router.url, session) as listener:
        ready = await listener.play(url)
        assert [each["title"] for each in ready["chapters"]] == [title for _, title in CHAPTERS]
        for each, (start, _) in zip(ready["chapters"], CHAPTERS, strict=True):
            # An MP3's chapters count its encoder's delay, which nobody hears.
            assert abs(each["start_ms"] - start) <= 30, each
        async with listen(antiphon.router.url, session) as late:
            greeting = await late.wait_event("session")
            assert greeting["session"]["chapters"] == ready["chapters"]
        status = await listener.command("status")
        assert status["session"]["chapters"] == ready["chapters"]
        # A list of many sessions has no room for them.
        for url in (f"{antiphon.engine.url}/sessions", f"{antiphon.router.url}/api/v1/sessions"):
            listed = (await request("GET", url)).body["sessions"]
            (mine,) = [each for each in listed if each["session_id"] == session]
            assert not mine.get("chapters") and mine["title"] == "Vespers"
        await listener.command("stop")


async def test_a_router_that_comes_back_knows_the_chapters(antiphon, media, new_session):
    url = make_tagged(media, "return.m4a", {"title": "Vespers"}, chapters=CHAPTERS, seconds=60)
    session = new_session()
    async with listen(antiphon.router.url, session) as listener:
        chapters = (await listener.play(url))["chapters"]
    antiphon.router.kill()
    antiphon.router.start()

    def knows(events: list[dict]) -> bool:
        return any(event["session"].get("chapters") == chapters for event in events)

    async with listen(antiphon.router.url, session) as listener:
        await listener.wait(
            lambda: knows(listener.events("session") + listener.events("status")), "the chapters after a restart"
        )
        await listener.command("stop")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("named/lonely-tune.mp3", {"title": "lonely-tune"}),
        ("named/Hildegard - O vis.mp3", {"title": "O vis", "artist": "Hildegard"}),
        ("named/07 - O vis.mp3", {"title": "O vis"}),
        ("named/07 - Hildegard - O vis - live.mp3", {"title": "O vis - live", "artist": "Hildegard"}),
    ],
)
async def test_a_file_without_tags_is_called_by_its_name(antiphon, media, new_session, name, says):
    ready = await ready_of(antiphon, new_session(), make_tagged(media, name))
    assert {key: ready[key] for key in ("title", "artist") if key in ready} == says


@pytest.mark.parametrize("suffix", ["jpg", "png", "webp", "gif"])
async def test_a_picture_beside_the_file_is_its_cover(antiphon, media, new_session, tmp_path, suffix):
    name = "folder" if suffix == "gif" else "cover"
    url = make_tagged(media, f"beside {suffix}/100% tune & more.mp3")
    made = make_picture(tmp_path, suffix)
    # A GIF that calls itself a JPEG: its bytes decide.
    (media.root / f"beside {suffix}" / f"{name}.{'jpg' if suffix == 'gif' else suffix}").write_bytes(made.read_bytes())
    ready = await ready_of(antiphon, new_session(), url)
    status, headers, body = await get(antiphon.router.url + ready["artwork"])
    assert (status, body) == (200, made.read_bytes())
    assert headers["Content-Type"] == {"jpg": "image/jpeg"}.get(suffix, f"image/{suffix}")


async def test_a_cover_that_leads_out_of_the_media_root_is_none(antiphon, media, new_session, tmp_path):
    secret = make_picture(tmp_path)
    url = make_tagged(media, "linked/tune.mp3")
    link = media.root / "linked" / "cover.jpg"
    link.unlink(missing_ok=True)
    link.symlink_to(secret)
    ready = await ready_of(antiphon, new_session(), url)
    assert "artwork" not in ready
    status, _, body = await get(f"{antiphon.router.url}/artwork?url={url}")
    assert status == 404, body


async def test_many_tabs_cost_one_reading(antiphon, media, new_session, picture):
    """Of thirty that ask at once, one makes the Router ask the engine."""
    url = make_tagged(media, "popular.flac", TAGS, cover=picture)
    answers = await asyncio.gather(*(get(f"{antiphon.router.url}/artwork?url={url}") for _ in range(30)))
    assert {(status, body) for status, _, body in answers} == {(200, picture.read_bytes())}
    # The file is gone, and they see it still.
    (media.root / "popular.flac").unlink()
    status, _, body = await get(f"{antiphon.router.url}/artwork?url={url}")
    assert (status, body) == (200, picture.read_bytes())


async def test_a_cover_on_the_wire_comes_in_pieces(antiphon, media, picture):
    url = make_tagged(media, "pieces.mp3", cover=picture)
    expected = picture.read_bytes()
    async with connect_to_engine(antiphon.socket) as engine:
        got = b""
        while len(got) < len(expected):
            piece = await engine.command(type="artwork", url=url, offset=len(got))
            data = base64.b64decode(piece["data"])
            assert 0 < len(data) <= 49_152 and piece["offset"] == len(got) and piece["bytes"] == len(expected)
            got += data
        assert got == expected
        for wrong in (len(expected), -1, 2**70, "x"):
            answer = await engine.ask(type="artwork", url=url, offset=wrong)
            assert answer["code"] in ("invalid_command", "invalid_json"), answer
    async with listen(antiphon.router.url, "pieces") as listener:
        answer = await listener.ask("artwork", url=url)
        assert answer["code"] == "invalid_command", "a WebSocket is for the sound"


# --- Made to do harm ---


@pytest.mark.parametrize(
    ("url", "status", "code"),
    [
        ("media:../secret.mp3", 404, "not_found"),
        ("media:..%252fsecret.mp3", 404, "not_found"),
        ("media:/../../etc/passwd", 404, "not_found"),
        ("media:not there.mp3", 404, "not_found"),
        ("media:", 400, "invalid_source"),
        ("", 400, "invalid_source"),
        ("http://127.0.0.1/a.mp3", 400, "invalid_source"),
        ("file:///etc/passwd", 400, "invalid_source"),
        ("media:.", 404, "not_found"),
        ("media:plain.txt", 415, "source_not_audio"),
    ],
)
async def test_nothing_but_covers_is_served(antiphon, media, bystander, url, status, code):
    media.write("plain.txt", b"no music at all\n" * 400)
    for server in (antiphon.router, antiphon.engine):
        answer = await request("GET", f"{server.url}/artwork?url={url.replace(' ', '%20')}")
        assert (answer.status, answer.code) == (status, code), (server.name, answer)
        assert answer.body["hint"], answer


@pytest.mark.parametrize(
    ("name", "mime", "data", "status", "code"),
    [
        ("svg", "image/svg+xml", SVG, 404, "not_found"),
        ("svg-as-png", "image/png", SVG, 415, "not_a_picture"),
        ("html", "image/jpeg", HTML, 415, "not_a_picture"),
        ("large", "image/jpeg", b"\xff\xd8\xff" + bytes(5 * MEBIBYTE), 413, "source_too_large"),
        ("empty", "image/jpeg", b"", 404, "not_found"),
    ],
)
async def test_a_cover_that_is_none_is_refused(antiphon, media, new_session, bystander, name, mime, data, status, code):
    media.path(BARE)
    url = media.write(f"bad-cover-{name}.mp3", id3(id3_picture(mime, data)) + media.bytes(BARE))
    ready = await ready_of(antiphon, new_session(), url)
    assert "artwork" not in ready, "a page would ask for it"
    for server in (antiphon.router, antiphon.engine):
        answer = await request("GET", f"{server.url}/artwork?url={url}")
        assert (answer.status, answer.code) == (status, code), (server.name, answer)


async def test_a_page_beside_the_file_is_no_cover(antiphon, media, new_session):
    url = make_tagged(media, "html beside/tune.mp3")
    (media.root / "html beside" / "cover.jpg").write_bytes(HTML)
    (media.root / "html beside" / "cover.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(5 * MEBIBYTE))
    assert "artwork" not in await ready_of(antiphon, new_session(), url)


async def test_the_right_one_of_many_pictures(antiphon, media, new_session, picture):
    """What cannot be shown is passed over."""
    frames = [id3_picture("image/jpeg", HTML)] * 40 + [id3_picture("image/png", picture.read_bytes())]
    url = media.write("many-pictures.mp3", id3(*frames) + media.bytes(BARE))
    ready = await ready_of(antiphon, new_session(), url)
    status, _, body = await get(antiphon.router.url + ready["artwork"])
    assert (status, body) == (200, picture.read_bytes())


async def test_tags_without_end_are_cut(antiphon, media, new_session, bystander):
    long = "音" * (10 * MEBIBYTE // 3)
    text = id3_text("TIT2", long.encode())
    urls = [media.write("endless-title.mp3", id3(text) + media.bytes(BARE))]
    for suffix in ("mkv", "m4a"):
        # Aside, since the bystander's packets are read meanwhile.
        tags = dict.fromkeys(TAGS, long)
        urls.append(await asyncio.to_thread(make_tagged, media, f"endless-tags.{suffix}", tags))
    for url in urls:
        ready = await ready_of(antiphon, new_session(), url)
        said = {name: ready[name] for name in TAGS if name in ready}
        assert said == dict.fromkeys(["title"] if url == urls[0] else TAGS, "音" * 200), url


@pytest.mark.parametrize(
    ("name", "title", "shown"),
    [
        ("latin-1", b"Bj\xf6rk caf\xe9", "Björk café"),
        ("controls", b"\x1b[31mred\x07\x7f\r\n next", "[31mred next"),
        ("blank", b" \t\r\n ", "invalid-blank"),
    ],
)
async def test_tags_that_are_no_text_are_made_text(antiphon, media, new_session, name, title, shown):
    chunk = b"INAM" + len(title).to_bytes(4, "little") + title + b"\0" * (len(title) % 2)
    data = subprocess.run(
        ["ffmpeg", "-v", "error", "-i", media.path(BARE), "-map_metadata", "-1", "-bitexact", "-f", "wav", "pipe:1"],
        capture_output=True,
        check=True,
    ).stdout
    listing = b"LIST" + (4 + len(chunk)).to_bytes(4, "little") + b"INFO" + chunk
    url = media.write(f"invalid-{name}.wav", data[:36] + listing + data[36:])
    ready = await ready_of(antiphon, new_session(), url)
    assert " ".join(ready["title"].split()) == shown


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("noise", b"\xff\xfb\x90\x00" + bytes(range(256)) * 2_000),
        ("nothing", b""),
        ("one-frame-head", b"\xff\xfb\x90\x00" + bytes(6)),
        ("longer-than-the-file", None),
    ],
)
async def test_a_tag_before_something_that_is_no_mp3(antiphon, media, new_session, bystander, name, data):
    tag = id3(id3_text("TIT2", b"a" * 4_096))
    tag = tag[:6] + b"\x7f\x7f\x7f\x7f" + tag[10:] if data is None else tag
    url = media.write(f"tag-and-{name}.mp3", tag + (data or b""))
    async with listen(antiphon.router.url, new_session()) as listener:
        answer = await listener.ask("play", url=url)
        assert answer["type"] == "ready" or answer["code"].startswith("source_"), answer


@pytest.mark.parametrize("suffix", ["flac", "wav"])
async def test_a_tag_before_something_else_that_sounds(antiphon, media, new_session, suffix):
    """Some programs put an ID3 tag before everything."""
    make_tagged(media, f"bare.{suffix}", seconds=2)
    tagged = id3(id3_text("TIT2", b"before")) + (media.root / f"bare.{suffix}").read_bytes()
    ready = await ready_of(antiphon, new_session(), media.write(f"prefixed.{suffix}", tagged))
    assert ready["codec"] == {"wav": "pcm_s16le"}.get(suffix, suffix)


async def test_five_thousand_chapters_are_a_hundred(antiphon, media, new_session, bystander):
    chapters = [(number * 2, f"{number} " + "long " * 100) for number in range(5_000)]
    url = make_tagged(media, "crowded.mkv", chapters=chapters)
    ready = await ready_of(antiphon, new_session(), url)
    assert len(ready["chapters"]) == 100
    assert all(len(chapter["title"]) <= 200 for chapter in ready["chapters"])


async def test_a_crowd_at_the_door_gets_pictures_or_a_clear_answer(antiphon, media, new_session, picture, bystander):
    """More different pictures at once than are loaded at once."""
    urls = [make_tagged(media, f"crowd/{number}.flac", cover=picture, seconds=1) for number in range(8)]
    urls += [media_url(f"crowd/none-{number}.flac") for number in range(80)]
    answers = await asyncio.gather(*(get(f"{antiphon.router.url}/artwork?url={url}") for url in urls))
    for url, (status, _, body) in zip(urls, answers, strict=True):
        assert status in (200, 404, 503), (url, body)
    assert answers[0][0] == 200
