"""`resolve`: what an address or words lead to, asked through every endpoint."""

import json
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from client import connect_to_engine, listen, request
from extraction import COLD_SECONDS, figures, search_options, write_search_plugin
from media import MP3_CBR, tone_clip
from page_server import PageServer
from processes import Antiphon

SONG = tone_clip(660, 3, MP3_CBR, 44_100)


@pytest.fixture(scope="module")
def site(media):
    with PageServer() as server:
        server.add("/song.mp3", lambda asked: asked.media(media.bytes(SONG)))
        yield server


@pytest.fixture(scope="module")
def antiphon(tmp_path_factory, media, site):
    options = search_options(tmp_path_factory.mktemp("plugins"), f"{site.url}/search")
    with Antiphon(
        tmp_path_factory.mktemp("resolve"), media.root, allow=("127.0.0.1/32",), engine_options=options
    ) as running:
        yield running


def feed(site: PageServer, count: int) -> str:
    items = "".join(
        f"<item><title>Part {number}</title><guid>g{number}</guid><enclosure url='{site.url}/song.mp3?{number}'/>"
        f"<itunes:duration>{number}</itunes:duration></item>"
        for number in range(1, count + 1)
    )
    return (
        "<?xml version='1.0'?><rss version='2.0' xmlns:itunes='http://www.itunes.com/dtds/podcast-1.0.dtd'>"
        f"<channel><title>A cast</title>{items}</channel></rss>"
    )


async def resolve(antiphon, query: str, limit: int | None = None) -> dict:
    """Through all four endpoints, which have to say the same."""
    async with listen(antiphon.router.url, "resolver") as listener, connect_to_engine(antiphon.socket) as engine:
        fields = {"query": query} | ({} if limit is None else {"limit": limit})
        answers = [
            await listener.command("resolve", **fields),
            await engine.command(type="resolve", **fields),
        ]
    for url in (f"{antiphon.router.url}/api/v1/resolve", f"{antiphon.engine.url}/resolve"):
        answer = await request("GET", f"{url}?{urlencode(fields)}")
        assert answer.status == 200, answer
        answers.append(answer.body)
    for answer in answers:
        assert answer.pop("type", "resolved") == "resolved"
        answer.pop("request_id", None)
    assert all(answer == answers[0] for answer in answers), answers
    assert answers[0]["query"] == query
    return answers[0]


async def test_a_feed_is_a_playlist(antiphon, site, new_session):
    url = site.add("/feed", lambda asked: asked.page(feed(site, 12), "application/rss+xml"))
    found = await resolve(antiphon, url, 5)
    assert found["kind"] == "playlist" and found["title"] == "A cast" and found["truncated"] is True, found
    assert [entry["title"] for entry in found["entries"]] == [f"Part {number}" for number in range(1, 6)]
    assert [entry["duration_ms"] for entry in found["entries"]] == [1_000, 2_000, 3_000, 4_000, 5_000]
    assert found["entries"][0]["url"] == f"{site.url}/song.mp3?1", found
    by_default = await resolve(antiphon, url)
    assert len(by_default["entries"]) == 10 and by_default["truncated"] is True
    whole = await resolve(antiphon, url, 50)
    assert len(whole["entries"]) == 12 and whole["truncated"] is False
    # What is given is what play takes; the playlist itself plays its first.
    for played in (found["entries"][4]["url"], url):
        answer = await request("POST", f"{antiphon.engine.url}/session/{new_session()}/play", {"url": played})
        assert answer.status == 200 and abs(answer.body["duration_ms"] - 3_000) < 60, answer


async def test_a_page_with_several_is_a_playlist(antiphon, site):
    page = '<title>Two</title><audio src="song.mp3?a"></audio><audio src="song.mp3?b"></audio>'
    found = await resolve(antiphon, site.add("/two", lambda asked: asked.page(page)))
    assert found["kind"] == "playlist" and found["title"] == "Two", found
    assert [entry["url"] for entry in found["entries"]] == [f"{site.url}/song.mp3?a", f"{site.url}/song.mp3?b"]


async def test_a_page_with_one_is_a_track_that_is_then_known(antiphon, site, new_session):
    page = (
        '<title>One</title><meta property="og:image" content="https://pictures.example/one.jpg">'
        '<audio src="song.mp3"></audio>'
    )
    url = site.add("/one", lambda asked: asked.page(page))
    found = await resolve(antiphon, url)
    assert found["kind"] == "track" and found["truncated"] is False and "title" not in found, found
    (entry,) = found["entries"]
    assert entry["url"] == url and entry["title"].startswith("One"), entry
    assert entry["thumbnail"] == "https://pictures.example/one.jpg" and "live" not in entry, entry
    before = await figures(antiphon)
    answer = await request("POST", f"{antiphon.engine.url}/session/{new_session()}/play", {"url": url})
    assert answer.status == 200 and answer.body["artwork"] == entry["thumbnail"], answer
    assert (await figures(antiphon))["jobs_total"] == before["jobs_total"], "it was extracted again"


async def test_files_and_direct_links_are_tracks(antiphon, media, site):
    media.path(SONG)
    found = await resolve(antiphon, SONG.url)
    assert found["kind"] == "track" and found["entries"] == [{"url": SONG.url, "title": SONG.file}], found
    found = await resolve(antiphon, f"{site.url}/song.mp3")
    assert found["kind"] == "track" and [entry["url"] for entry in found["entries"]] == [f"{site.url}/song.mp3"]


async def test_words_are_searched_for(antiphon, site):
    """Whatever they look like, they reach the search as they are."""
    asked_for: list[str] = []

    def search(asked) -> None:
        asked_for.append(parse_qs(urlsplit(asked.path).query)["q"][0])
        items = [
            {"url": f"{site.url}/song.mp3?{number}", "title": f"Hit {number}", "by": "A band", "seconds": 3}
            for number in range(30)
        ]
        asked.answer(200, json.dumps(items).encode(), "application/json")

    site.add("/search", search)
    for words in ("a song & more", "-x --exec true", "ytsearch9:other", "re: zero", "ünïcode ♪"):
        asked_for.clear()
        found = await resolve(antiphon, words, 3)
        assert found["kind"] == "search" and len(found["entries"]) == 3, found
        assert found["entries"][0] == {
            "url": f"{site.url}/song.mp3?0",
            "title": "Hit 0",
            "artist": "A band",
            "duration_ms": 3_000,
        }, found
        assert set(asked_for) == {words}, asked_for


async def test_what_cannot_be_resolved_is_named(antiphon, site):
    site.add("/words", lambda asked: asked.page("words"))
    bad = {
        "": (400, "invalid_command"),
        "query=": (400, "invalid_command"),
        "query=a&limit=0": (400, "invalid_command"),
        "query=a&limit=51": (400, "invalid_command"),
        "query=a&limit=x": (400, "invalid_command"),
        "query=file:///etc/passwd": (400, "invalid_source"),
        "query=media:nothing.mp3": (404, "source_not_found"),
        "query=media:../../etc/passwd": (403, "source_forbidden"),
        "query=http://127.0.0.2:1/page": (403, "source_forbidden"),
        f"query={site.url}/words": (415, "source_not_audio"),
        f"query={site.url}/missing": (502, "extraction_failed"),
    }
    for query, (status, code) in bad.items():
        for endpoint in (f"{antiphon.router.url}/api/v1/resolve", f"{antiphon.engine.url}/resolve"):
            answer = await request("GET", f"{endpoint}?{query}")
            assert (answer.status, answer.code) == (status, code), f"{endpoint}?{query}: {answer}"


async def test_plugins_are_loaded_only_where_the_operator_says_so(tmp_path, media, site, monkeypatch):
    """Not from the user's own folder for them, where yt-dlp would look."""
    write_search_plugin(tmp_path / "config" / "yt-dlp" / "plugins", f"{site.url}/stranger")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("HOME", str(tmp_path))
    options = ("--search-prefix", "localsearch")
    with Antiphon(
        tmp_path / "alone", media.root, allow=("127.0.0.1/32",), engine_options=options, router=False
    ) as alone:
        async with connect_to_engine(alone.socket) as engine:
            asked = await engine.send(type="resolve", query="a song")
            answer = await engine.wait(
                lambda: next((event for event in engine.events("error") if event.get("request_id") == asked), None),
                "an answer without the plugin",
                COLD_SECONDS,
            )
    assert answer["code"] == "extraction_failed", answer
    assert "/stranger" not in {path.partition("?")[0] for path in site.requests}
