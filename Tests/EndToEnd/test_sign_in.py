"""Sites that want more than an address: cookies, an account, a proxy; and what yt-dlp says where they do not get it."""

import os
import subprocess

import pytest

import hls
from certificates import Authority
from client import listen, request
from extraction import COLD_SECONDS, write_demand_plugin
from media import MP3_CBR, tone_clip
from page_server import Asked, PageServer
from processes import BINARIES, Antiphon

SONG = tone_clip(660, 3, MP3_CBR, 44_100)
SECRET = "kept-to-ourselves"

#: What yt-dlp's extractors do where a site wants something, in their own words (extractor/common.py,
#: extractor/youtube/_video.py and others; YouTube's reasons as it gives them), and the code that is wanted.
DEMANDS = {
    "bot": (
        "self.raise_no_formats('Sign in to confirm you\\u2019re not a bot. Use --cookies-from-browser or --cookies "
        "for the authentication', expected=True)",
        "source_needs_sign_in",
    ),
    "login": ("self.raise_login_required()", "source_needs_sign_in"),
    "softly": ("self.raise_login_required(metadata_available=True)", "source_needs_sign_in"),
    "captcha": (
        "self.raise_no_formats('Video unavailable. YouTube is requiring a captcha challenge before playback', "
        "expected=True)",
        "source_needs_sign_in",
    ),
    "unauthorized": ("self._download_webpage(url.replace('/demand/', '/status/401?'), '1')", "source_needs_sign_in"),
    "age": (
        "self.raise_no_formats('Sign in to confirm your age. This video may be inappropriate for some users.', "
        "expected=True)",
        "source_age_restricted",
    ),
    "grown": (
        "raise ExtractorError('Age-restricted; requires authentication', expected=True)",
        "source_age_restricted",
    ),
    "private": (
        "self.raise_no_formats('Private video. Sign in if you\\'ve been granted access to this video', expected=True)",
        "source_private",
    ),
    "members": (
        "self.raise_no_formats('Join this channel to get access to members-only content like this video', "
        "expected=True)",
        "source_private",
    ),
    "subscribers": (
        "self.raise_login_required('This VOD is for subscribers only', method='password')",
        "source_private",
    ),
    "geo": ("self.raise_geo_restricted('Nur in einem Land zu sehen', countries=['DE'])", "source_geo_blocked"),
    "geosoft": (
        "self.raise_geo_restricted('The uploader has not made this video available in your country', "
        "metadata_available=True)",
        "source_geo_blocked",
    ),
    "legal": ("self._download_webpage(url.replace('/demand/', '/status/451?'), '1')", "source_geo_blocked"),
    "limited": (
        "self.raise_no_formats('This content isn\\'t available, try again later. The current session has been "
        "rate-limited by YouTube for up to an hour.', expected=True)",
        "source_rate_limited",
    ),
    "toomany": ("self._download_webpage(url.replace('/demand/', '/status/429?'), '1')", "source_rate_limited"),
    # Nothing of the kind, though their words sound like it.
    "bug": ("raise ExtractorError('Unable to extract login token')", "extraction_failed"),
    "offline": ("raise UserNotLive(video_id='login')", "extraction_failed"),
    "broken": ("self._download_webpage(url.replace('/demand/', '/status/500?'), '1')", "extraction_failed"),
    "empty": ("pass", "source_not_audio"),
}
STATUS = {"source_rate_limited": 502, "extraction_failed": 502, "source_not_audio": 415}
HINTS = {
    "source_needs_sign_in": "--yt-dlp-cookies",
    "source_age_restricted": "--yt-dlp-cookies",
    "source_private": "--yt-dlp-cookies",
    "source_geo_blocked": "--yt-dlp-proxy",
    "source_rate_limited": "--yt-dlp-proxy",
}


def cookie_line(domain: str, name: str, value: str, path: str = "/", secure: str = "FALSE") -> str:
    return "\t".join([domain, str(domain.startswith(".")).upper(), path, secure, "0", name, value]) + "\n"


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def cookie_file(tmp_path_factory):
    file = tmp_path_factory.mktemp("cookies") / "cookies.txt"
    file.write_text(
        "# Netscape HTTP Cookie File\n\n"
        + cookie_line("127.0.0.1", "account", SECRET)
        + "#HttpOnly_"
        + cookie_line(".music.example", "elsewhere", "never-here", secure="TRUE")
    )
    file.chmod(0o600)
    return file


@pytest.fixture(scope="module")
def antiphon(tmp_path_factory, media, authority, cookie_file):
    folder = tmp_path_factory.mktemp("sites")
    write_demand_plugin(folder / "plugins", {name: line for name, (line, _) in DEMANDS.items()})
    options = [
        *("--yt-dlp-plugins", str(folder / "plugins"), "--yt-dlp-cookies", str(cookie_file)),
        *("--yt-dlp-extractor-args", "youtube:player_client=tv;lang=de"),
        *("--yt-dlp-extractor-args", "antiphondemand:title=As the operator says"),
        *("--source-ca-file", str(authority.file)),
    ]
    with Antiphon(folder, media.root, allow=("127.0.0.0/8",), engine_options=tuple(options)) as running:
        yield running
        assert SECRET not in running.engine.log.read_text() + running.router.log.read_text()


class Site(PageServer):
    """Remembers the cookies of each request that the engine made, by its path."""

    def __init__(self, media, address: str = "127.0.0.1", tls=None, port: int = 0) -> None:
        super().__init__(address, tls, port)
        media.make(SONG)
        self.cookies: dict[str, str | None] = {}
        self.add("/song.mp3", lambda asked: asked.media(media.bytes(SONG)))

    def add(self, path, page):
        def noted(asked: Asked) -> None:
            if asked.is_stream:
                self.cookies[path] = asked.header("Cookie")
            page(asked)

        return super().add(path, noted)


@pytest.fixture
def site(media):
    with Site(media) as server:
        yield server


@pytest.fixture
def other(media, site):
    """Another host, with the same port."""
    with Site(media, "127.0.0.2", port=site.port) as server:
        yield server


async def play(antiphon, session: str, url: str):
    answer = await request("POST", f"{antiphon.engine.url}/session/{session}/play", {"url": url})
    assert SECRET not in str(answer.body), answer
    return answer


async def plays(antiphon, session: str, url: str) -> None:
    async with listen(antiphon.router.url, session) as listener:
        ready = await listener.ask("play", url=url, seconds=COLD_SECONDS)
        assert ready["type"] == "ready", ready
        await listener.wait_packets(20)
        await listener.command("stop")


async def test_cookies_of_a_page_go_with_its_stream_to_its_site_alone(antiphon, site, other, new_session):
    """Those that belong to the stream's path; none to another host or port, to which the stream redirects."""
    there, port = other.url, f"{site.url.rpartition(':')[0]}:{{}}"

    def page(target: str):
        def answer(asked: Asked) -> None:
            cookies = [
                "a=1; Path=/",
                "b=2; Path=/deep",
                "c=3; Path=/elsewhere",
                "d=4; Secure",
                "e=5; Domain=other.example",
            ]
            asked.page(f'<audio src="{target}"></audio>', cookies=cookies)

        return answer

    site.add("/deep/song.mp3", site.pages["/song.mp3"])
    await plays(antiphon, new_session(), site.add("/page", page("/deep/song.mp3")))
    # With that of the operator's file, which is for this host.
    assert site.cookies["/deep/song.mp3"] == f"b=2; account={SECRET}; a=1", site.cookies

    await plays(antiphon, new_session(), site.add("/page2", page(f"{there}/song.mp3")))
    assert other.cookies["/song.mp3"] is None, other.cookies

    other.cookies.clear()
    site.add("/moved.mp3", lambda asked: asked.redirect(f"{there}/song.mp3"))
    await plays(antiphon, new_session(), site.add("/page3", page("/moved.mp3")))
    assert site.cookies["/moved.mp3"] and other.cookies == {"/song.mp3": None}, (site.cookies, other.cookies)

    with PageServer() as neighbour:
        seen: list[str | None] = []
        neighbour.add(
            "/song.mp3", lambda asked: (seen.append(asked.header("Cookie")), asked.redirect(f"{there}/song.mp3"))
        )
        site.add("/next.mp3", lambda asked: asked.redirect(f"{port.format(neighbour.port)}/song.mp3"))
        await plays(antiphon, new_session(), site.add("/page4", page("/next.mp3")))
        assert seen == [None], "another port of the same host got cookies"


async def test_from_https_to_http_no_cookie_goes(antiphon, media, authority, site, new_session):
    with Site(media, tls=authority.server("127.0.0.1")) as safe:
        safe.add("/moved.mp3", lambda asked: asked.redirect(f"{site.url}/song.mp3"))
        for target in ("song.mp3", "moved.mp3"):
            page = f'<audio src="/{target}"></audio>'
            url = safe.add(f"/of-{target}", lambda asked, page=page: asked.page(page, cookies=["a=1", "b=2; Secure"]))
            await plays(antiphon, new_session(), url)
        kept = {"a=1", "b=2", f"account={SECRET}"}
        assert set(safe.cookies["/song.mp3"].split("; ")) == kept, safe.cookies
        assert set(safe.cookies["/moved.mp3"].split("; ")) == kept, safe.cookies
    assert site.cookies == {"/song.mp3": None}, site.cookies


async def test_cookies_go_with_all_of_an_hls_stream_on_its_site(antiphon, media, site, other, new_session, tmp_path):
    hls.make(tmp_path, media.root / SONG.file, "encrypted", 1)
    segments = sorted(path.name for path in tmp_path.glob("*.ts"))
    assert len(segments) > 1
    for name in ["secret.key", *segments]:
        data = (tmp_path / name).read_bytes()
        for server in (site, other):
            server.add(f"/{name}", lambda asked, data=data: asked.answer(200, data, "application/octet-stream"))
    playlist = (tmp_path / "index.m3u8").read_text().replace(segments[1], f"{other.url}/{segments[1]}")
    site.add("/index.m3u8", lambda asked: asked.answer(200, playlist.encode(), "application/vnd.apple.mpegurl"))
    body = '<video><source src="/index.m3u8" type="application/x-mpegURL"></video>'
    url = site.add("/page", lambda asked: asked.page(body, cookies=["a=1"]))
    async with listen(antiphon.router.url, new_session()) as listener:
        ready = await listener.ask("play", url=url, seconds=COLD_SECONDS)
        assert ready["type"] == "ready", ready
        await listener.wait_event("ended", seconds=COLD_SECONDS)
        assert not listener.events("error"), listener.events("error")
    given = {path: cookie for path, cookie in site.cookies.items() if path != "/page"}
    assert given.keys() == {"/index.m3u8", "/secret.key", *(f"/{name}" for name in segments if name != segments[1])}
    assert all(set(cookie.split("; ")) == {"a=1", f"account={SECRET}"} for cookie in given.values()), given
    assert other.cookies == {f"/{segments[1]}": None}, other.cookies


async def test_a_page_that_refuses_the_engine_is_given_to_yt_dlp(antiphon, site, new_session):
    for status in (401, 403):
        url = site.add(
            f"/page{status}",
            lambda asked, status=status: (
                asked.answer(status, b"who are you?")
                if asked.is_engine
                else asked.page('<audio src="/song.mp3"></audio>')
            ),
        )
        await plays(antiphon, new_session(), url)


async def test_a_direct_link_that_is_refused_names_both_findings(antiphon, media, site, new_session):
    url = site.add("/refused.mp3", lambda asked: asked.answer(403, b"no"))
    answer = await play(antiphon, new_session(), url)
    assert (answer.status, answer.code) == (502, "source_unreachable"), answer
    assert "answered 403" in answer.body["message"] and "yt-dlp: " in answer.body["message"], answer
    url = site.add(
        "/browsers-only.mp3",
        lambda asked: asked.answer(403, b"no") if asked.is_engine else asked.media(media.bytes(SONG)),
    )
    await plays(antiphon, new_session(), url)
    missing = await play(antiphon, new_session(), site.add("/missing", lambda asked: asked.answer(404, b"")))
    assert missing.code == "source_not_found" and "yt-dlp" not in missing.body["message"], missing


async def test_the_operators_cookies_sign_each_job_in(antiphon, site, other, new_session, cookie_file):
    """Whatever a site does to them, the next job has them as they were; no other site gets them."""
    before = cookie_file.read_bytes()
    asked_with: list[str | None] = []

    def page(asked: Asked) -> None:
        cookie = asked.header("Cookie")
        if not asked.is_engine:
            asked_with.append(cookie)
        if f"account={SECRET}" in (cookie or ""):
            asked.page('<audio src="/song.mp3"></audio>', cookies=["account=changed; Path=/", "more=1"])
        else:
            asked.answer(401, b"sign in")

    for number in range(3):
        await plays(antiphon, new_session(), site.add(f"/members{number}", page))
    assert set(asked_with) == {f"account={SECRET}"}, asked_with
    asked_with.clear()
    answer = await play(antiphon, new_session(), other.add("/members", page))
    assert set(asked_with) == {None} and answer.code == "source_needs_sign_in", (asked_with, answer)
    assert cookie_file.read_bytes() == before


@pytest.mark.parametrize("name", DEMANDS)
async def test_what_a_site_demands_has_a_code_of_its_own(antiphon, site, new_session, name):
    site.add("/status/500", lambda asked: asked.answer(500, b""))
    for status in (401, 429, 451, 500):
        site.add(f"/status/{status}", lambda asked, status=status: asked.answer(status, b""))
    url = site.add(f"/demand/{name}", lambda asked: asked.page("<title>x</title>"))
    code = DEMANDS[name][1]
    answer = await play(antiphon, new_session(), url)
    assert (answer.status, answer.code) == (STATUS.get(code, 403), code), answer
    assert HINTS.get(code, "") in answer.body["hint"] and answer.body["stage"] == "extract", answer
    # Its options are not the engine's.
    assert "Use --" not in answer.body["message"] and "http" not in answer.body["message"].partition("yt-dlp: ")[2]
    found = await request("GET", f"{antiphon.engine.url}/resolve?query={url}")
    assert found.code == code, found


async def test_arguments_for_an_extractor_reach_it(antiphon, site, new_session):
    url = site.add("/demand/nothing", lambda asked: asked.page("<title>x</title>"))
    async with listen(antiphon.router.url, new_session()) as listener:
        ready = await listener.play(url)
        assert ready["title"] == "As the operator says", ready


# What is refused at the start.


def start(*options: str) -> subprocess.CompletedProcess:
    return subprocess.run([BINARIES / "AudioEngine", *options], capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda path: None, "cannot be read"),
        (lambda path: path.mkdir(0o700), "is no regular file"),
        (lambda path: os.mkfifo(path, 0o600), "is no regular file"),
        (lambda path: (path.write_text(cookie_line("a.example", "a", SECRET)), path.chmod(0o644)), "chmod 600"),
        (lambda path: (path.write_text(cookie_line("a.example", "a", SECRET)), path.chmod(0o640)), "chmod 600"),
        (lambda path: os.truncate(path, 100 << 20), "has over 1048576 bytes"),
        (lambda path: path.write_text(f'[{{"name": "a", "value": "{SECRET}"}}]'), "Netscape"),
        (lambda path: path.write_text(f"# Netscape HTTP Cookie File\na=1; b={SECRET}\n"), "line 2"),
        (lambda path: path.write_bytes(os.urandom(1_000)), "Netscape"),
        (lambda path: path.write_text(cookie_line("a.example", "a", SECRET).replace("\t0\t", "\tinf\t")), "line 1"),
        (lambda path: path.write_text("# Netscape HTTP Cookie File\n"), "holds no cookie"),
    ],
    ids=["missing", "folder", "pipe", "all", "group", "huge", "json", "header", "noise", "endless", "empty"],
)
def test_a_bad_file_of_cookies_is_refused_at_the_start(tmp_path, make, words):
    path = tmp_path / "cookies.txt"
    if words not in ("cannot be read", "is no regular file"):
        path.touch(0o600)
    make(path)
    done = start("--yt-dlp-cookies", str(path))
    assert done.returncode == 64 and words in done.stderr and "--yt-dlp-cookies" in done.stderr, done
    assert SECRET not in done.stderr + done.stdout


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--yt-dlp-proxy", f"https://user:{SECRET}@127.0.0.1:1"),
        ("--yt-dlp-proxy", f"socks5://user:{SECRET}@127.0.0.1:1"),
        ("--yt-dlp-proxy", f"user:{SECRET}@127.0.0.1"),
        ("--yt-dlp-proxy", f"http://127.0.0.1/?{SECRET}"),
        ("--yt-dlp-extractor-args", SECRET),
        ("--yt-dlp-extractor-args", f"{SECRET} x:y"),
    ],
)
def test_a_bad_value_is_refused_and_not_repeated(option, value):
    done = start(option, value)
    assert done.returncode == 64 and f"{option} takes" in done.stderr, done
    assert SECRET not in done.stderr + done.stdout


def test_what_holds_a_password_is_not_printed():
    done = start(
        *("--yt-dlp-proxy", f"http://user:{SECRET}@127.0.0.1:1"),
        *("--yt-dlp-extractor-args", f"youtube:po_token={SECRET}", "--print-config"),
    )
    assert done.returncode == 0 and "--yt-dlp-proxy" in done.stdout and SECRET not in done.stdout + done.stderr, done
