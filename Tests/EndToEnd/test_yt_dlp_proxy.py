"""Pages and their streams through an operator's proxy, which alone knows some names."""

import pytest

from client import listen, request
from extraction import COLD_SECONDS
from media import MP3_CBR, tone_clip
from page_server import PageServer
from processes import Antiphon
from proxy import Proxy

SONG = tone_clip(550, 3, MP3_CBR, 44_100)
USER, PASSWORD = "dj", "s%40id:to-nobody"


@pytest.fixture(scope="module")
def site(media):
    media.make(SONG)
    with PageServer() as server:
        server.add("/song.mp3", lambda asked: asked.media(media.bytes(SONG)))
        server.add("/far", lambda asked: asked.page('<audio src="http://music.example/song.mp3"></audio>'))
        yield server


@pytest.fixture(scope="module")
def proxy(site):
    names = {name: ("127.0.0.1", site.port) for name in ("music.example", "127.0.0.1", "127.0.0.2", "127.2")}
    with Proxy(names, USER, "s@id:to-nobody") as running:
        yield running


@pytest.fixture(scope="module")
def antiphon(tmp_path_factory, media, proxy):
    options = ("--yt-dlp-proxy", f"http://{USER}:{PASSWORD}@127.0.0.1:{proxy.port}")
    with Antiphon(
        tmp_path_factory.mktemp("proxied"), media.root, allow=("127.0.0.1/32",), engine_options=options
    ) as running:
        yield running
        assert "to-nobody" not in running.engine.log.read_text() + running.router.log.read_text()


async def play(antiphon, session: str, url: str):
    answer = await request("POST", f"{antiphon.engine.url}/session/{session}/play", {"url": url})
    assert "to-nobody" not in str(answer.body), answer
    return answer


async def test_a_page_and_its_stream_go_through_the_proxy(antiphon, site, proxy, new_session):
    """The engine's own look at the page does not."""
    async with listen(antiphon.router.url, new_session()) as listener:
        asked = await listener.send("play", url=f"{site.url}/far")
        ready = await listener.wait(
            lambda: next((e for e in listener.events() if e.get("request_id") == asked), None),
            "an answer",
            COLD_SECONDS,
        )
        assert ready["type"] == "ready", ready
        await listener.wait_packets(20)
        await listener.command("stop")
    assert {"music.example:80", f"127.0.0.1:{site.port}"} <= set(proxy.asked), proxy.asked


@pytest.mark.parametrize("host", ["127.0.0.2", "127.2", "2130706434", "[::1]"])
@pytest.mark.parametrize("kind", ["media", "redirect", "stream"])
async def test_addresses_that_are_not_public_are_refused_all_the_same(antiphon, site, proxy, new_session, host, kind):
    """In a page, in what yt-dlp is redirected to, and in what the stream is redirected to."""
    far = f"http://{host}:{site.port}/song.mp3"
    name = f"/{kind}-{host.strip('[]').replace(':', '-')}"
    site.add(f"{name}.mp3", lambda asked: asked.redirect(far))
    pages = {
        "media": lambda asked: asked.page(f'<audio src="{far}"></audio>'),
        "redirect": lambda asked: asked.page("") if asked.is_engine else asked.redirect(far),
        "stream": lambda asked: asked.page(f'<audio src="http://music.example{name}.mp3"></audio>'),
    }
    before = len(proxy.asked)
    answer = await play(antiphon, new_session(), site.add(name, pages[kind]))
    assert answer.code == "source_forbidden", answer
    assert not [asked for asked in proxy.asked[before:] if not asked.startswith(("127.0.0.1:", "music."))], proxy.asked


async def test_a_name_that_nobody_knows(antiphon, site, new_session):
    url = site.add("/nowhere", lambda asked: asked.page('<audio src="http://nowhere.example/song.mp3"></audio>'))
    answer = await play(antiphon, new_session(), url)
    assert answer.code == "source_unreachable" and "the proxy refuses" in answer.body["message"], answer


@pytest.mark.parametrize("fault", ["down", "password"])
async def test_a_proxy_that_is_of_no_use_is_told(tmp_path, media, site, proxy, new_session, fault):
    address = "127.0.0.1:1" if fault == "down" else f"127.0.0.1:{proxy.port}"
    options = ("--yt-dlp-proxy", f"http://{USER}:to-nobody@{address}")
    with Antiphon(tmp_path, media.root, allow=("127.0.0.1/32",), engine_options=options, router=False) as running:
        answer = await play(running, new_session(), f"{site.url}/far")
        assert answer.code == "extraction_failed", answer
        assert "proxy" in answer.body["message"] and "--yt-dlp-proxy" in answer.body["hint"], answer
        direct = await play(running, new_session(), f"{site.url}/song.mp3")
        assert direct.status == 200, direct
        assert "to-nobody" not in running.engine.log.read_text()
