"""Pages and their streams through an operator's proxy, which alone knows some names."""

import pytest

from certificates import Authority
from client import listen, request
from extraction import COLD_SECONDS, write_demand_plugin
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
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def safe_site(site, authority):
    with PageServer(tls=authority.server("safe.example")) as server:
        server.add("/song.mp3", site.pages["/song.mp3"])
        server.add("/song", lambda asked: asked.page('<audio src="song.mp3"></audio>'))
        yield server


@pytest.fixture(scope="module")
def proxy(site, safe_site):
    names = {name: ("127.0.0.1", site.port) for name in ("music.example", "127.0.0.1", "127.0.0.2", "127.2")}
    names |= {name: ("127.0.0.1", safe_site.port) for name in ("safe.example", "unsafe.example")}
    with Proxy(names, USER, "s@id:to-nobody") as running:
        yield running


@pytest.fixture(scope="module")
def antiphon(tmp_path_factory, media, proxy, authority):
    folder = tmp_path_factory.mktemp("proxied")
    tell = "raise ExtractorError('It is at ' + self.get_param('proxy') + ' and no other', expected=True)"
    write_demand_plugin(folder / "plugins", {"telltale": tell})
    address = f"http://{USER}:{PASSWORD}@127.0.0.1:{proxy.port}"
    options = (
        *("--yt-dlp-proxy", address, "--source-ca-file", str(authority.file)),
        *("--yt-dlp-plugins", str(folder / "plugins")),
    )
    with Antiphon(folder, media.root, allow=("127.0.0.1/32",), engine_options=options) as running:
        yield running
        assert "to-nobody" not in running.engine.log.read_text() + running.router.log.read_text()


async def play(antiphon, session: str, url: str):
    answer = await request("POST", f"{antiphon.engine.url}/session/{session}/play", {"url": url})
    assert "to-nobody" not in str(answer.body), answer
    return answer


@pytest.mark.parametrize(
    ("name", "reached"),
    [("far", {"music.example:80"}), ("away", {"safe.example:443"})],
    ids=["http", "https"],
)
async def test_a_page_and_its_stream_go_through_the_proxy(antiphon, site, proxy, new_session, name, reached):
    """The engine's own look at the page does not."""
    # yt-dlp follows to a page of a server that has TLS.
    site.add("/away", lambda a: a.page("") if a.is_engine else a.redirect("https://safe.example/song"))
    proxy.asked.clear()
    async with listen(antiphon.router.url, new_session()) as listener:
        ready = await listener.ask("play", url=f"{site.url}/{name}", seconds=COLD_SECONDS)
        assert ready["type"] == "ready", ready
        await listener.wait_packets(20)
        await listener.command("stop")
    assert set(proxy.asked) == reached | {f"127.0.0.1:{site.port}"}, proxy.asked


async def test_behind_a_proxy_certificates_count_all_the_same(antiphon, site, safe_site, new_session):
    url = site.add("/unsafe", lambda asked: asked.page('<audio src="https://unsafe.example/song.mp3"></audio>'))
    safe_site.requests.clear()
    answer = await play(antiphon, new_session(), url)
    assert answer.code == "source_unreachable" and "is for another host" in answer.body["message"], answer
    assert not safe_site.requests


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


async def test_an_extractor_that_tells_the_proxys_password_is_not_repeated(antiphon, site, new_session):
    url = site.add("/demand/telltale", lambda asked: asked.page("<title>x</title>"))
    answer = await play(antiphon, new_session(), url)
    assert answer.code == "extraction_failed" and "It is at *** and no other" in answer.body["message"], answer


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
