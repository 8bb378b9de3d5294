"""Sources over https: what is signed by an authority that is known plays, and nothing else does."""

import subprocess

import pytest

from certificates import Authority
from client import listen, request
from media import MP3_CBR, glides_clip, http_url
from processes import BINARIES, Antiphon
from signals import Glides
from web_server import WebServer

SONG = Glides(8, seed=31)
CLIP = glides_clip("https-song", SONG, MP3_CBR, 44_100)
NETWORK = ("127.0.0.0/8",)


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def antiphon(tmp_path_factory, media, authority):
    options = ("--source-ca-file", str(authority.file))
    with Antiphon(tmp_path_factory.mktemp("https"), media.root, allow=NETWORK, engine_options=options) as running:
        yield running


@pytest.fixture(scope="module")
def site(media, authority):
    media.make(CLIP)
    with WebServer(media.root, tls=authority.server("127.0.0.1", "localhost")) as server:
        yield server


async def play(antiphon, session: str, url: str):
    return await request("POST", f"{antiphon.engine.url}/session/{session}/play", {"url": url})


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
@pytest.mark.parametrize("kind", ["files", "once", "tears"])
async def test_a_certificate_of_a_known_authority_is_believed(antiphon, site, new_session, host, kind):
    """Also where the server hangs up halfway, without TLS's own goodbye: the rest is fetched anew."""
    site.requests.clear()
    url = http_url(f"https://{host}:{site.port}/{kind}", CLIP.file)
    async with listen(antiphon.router.url, new_session()) as listener:
        await listener.play(url)
        ended = await listener.wait_event("ended")
        assert ended["reason"] == "finished" and not listener.events("error"), (ended, listener.events("error"))
        assert abs(len(listener.packets()) - SONG.seconds * 50) <= 3
    assert kind == "files" or len(site.requests) > 1, site.requests


@pytest.mark.parametrize(
    ("words", "hosts", "options"),
    [
        ("is for another host", ("other.example", "127.0.0.9"), {}),
        ("has expired", ("127.0.0.1",), {"begins": -30, "ends": -1}),
        ("is not valid yet", ("127.0.0.1",), {"begins": 1}),
        ("is signed by an unknown authority", ("127.0.0.1",), {"is_self_signed": True}),
    ],
)
async def test_what_is_wrong_with_a_certificate_is_told(antiphon, media, authority, new_session, words, hosts, options):
    media.make(CLIP)
    with WebServer(media.root, tls=authority.server(*hosts, **options)) as bad:
        answer = await play(antiphon, new_session(), http_url(f"{bad.url}/files", CLIP.file))
        assert (answer.status, answer.code) == (502, "source_unreachable"), answer
        assert f"certificate {words}" in answer.body["message"], answer
        assert ("--source-ca-file" in answer.body["hint"]) == ("unknown" in words), answer
        assert not bad.requests, "something was sent"


async def test_an_authority_that_nobody_named_is_not_believed(tmp_path, media, site, new_session):
    site.requests.clear()
    with Antiphon(tmp_path, media.root, allow=NETWORK, router=False) as plain:
        answer = await play(plain, new_session(), http_url(f"{site.url}/files", CLIP.file))
        assert answer.code == "source_unreachable" and "unknown authority" in answer.body["message"], answer
        assert "--source-ca-file" in answer.body["hint"], answer
    assert not site.requests


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda path: None, "cannot be read"),
        (lambda path: path.mkdir(), "is no regular file"),
        (lambda path: path.write_text("no certificate"), "holds no certificates"),
        (
            lambda path: path.write_text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"),
            "holds no certificates",
        ),
        (lambda path: (path.touch(), path.chmod(0o666)), "others may change it"),
    ],
    ids=["missing", "a folder", "a text", "broken", "anybody's"],
)
def test_a_bad_file_of_authorities_is_refused_at_the_start(tmp_path, make, words):
    path = tmp_path / "ca.pem"
    make(path)
    done = subprocess.run(
        [BINARIES / "AudioEngine", "--source-ca-file", path], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 64 and "--source-ca-file" in done.stderr and words in done.stderr, done
