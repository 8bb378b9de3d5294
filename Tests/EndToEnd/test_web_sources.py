"""Direct http URLs: good servers, bad servers, and addresses that are none of a listener's business."""

import asyncio

import pytest

from analysis import heard_at
from client import connect_to_engine, listen, request
from media import FLAC, M4A, MP3_CBR, OGG_OPUS, VORBIS, WAV, glides_clip, http_url
from opus import FRAME, decode
from processes import Antiphon
from signals import Glides
from web_server import WebServer

SONG = Glides(4, seed=9)
CLIPS = [
    glides_clip(f"web-{encoding.suffix}", SONG, encoding, 44_100 if encoding is not OGG_OPUS else 48_000)
    for encoding in (FLAC, M4A, MP3_CBR, OGG_OPUS, VORBIS, WAV)
]
STATUS = {
    "invalid_source": 400,
    "source_forbidden": 403,
    "source_not_found": 404,
    "source_not_audio": 415,
    "source_empty": 422,
    "source_truncated": 422,
    "source_unreachable": 502,
    "source_timeout": 504,
}


@pytest.fixture(scope="module")
def antiphon(tmp_path_factory, media):
    """Allowed to fetch from 127.0.0.1, and from nowhere else that is not public."""
    folder = tmp_path_factory.mktemp("web")
    options = ("--source-timeout-seconds", "2")
    with Antiphon(folder, media.root, allow=("127.0.0.1/32",), engine_options=options) as running:
        yield running


@pytest.fixture(scope="module")
def site(media):
    media.make(*CLIPS)
    with WebServer(media.root) as server:
        yield server


@pytest.fixture(scope="module")
def forbidden_site(media):
    """On another loopback address, which is not allowed: no request may reach it."""
    with WebServer(media.root, "127.0.0.2") as server:
        yield server


@pytest.mark.parametrize("kind", ["files", "plain"])
async def test_the_sound_is_the_files(antiphon, site, new_session, bystander, kind):
    """With ranges and without: played to the end, and sought in where the server lets us."""

    # An M4A has its index at its end, which cannot be read first without ranges.
    clips = [clip for clip in CLIPS if kind == "files" or clip.encoding is not M4A]

    async def check(clip) -> list[str]:
        url = http_url(f"{site.url}/{kind}", clip.file)
        async with listen(antiphon.router.url, new_session()) as listener:
            answer = await listener.ask("play", url=url)
            if answer["type"] == "error":
                return [f"{clip}: refused: {answer}"]
            await listener.wait_packets(20)
            seeked = await listener.ask("seek", position_ms=2_000)
            if seeked["type"] == "error":
                return [f"{clip}: seek: {seeked}"]
            ended = await listener.wait_event("ended")
            packets = listener.packets(since=listener.index(seeked))
            sound = decode(packet.audio for packet in packets)[:, 0]
            place = heard_at(sound, 10 * FRAME, SONG)
            wrong = []
            if place.likeness < 0.85 or abs(place.milliseconds - 2_200) > 20:
                wrong.append(f"{clip}: 200 ms after a seek to 2 s sounds like {place}")
            if ended["reason"] != "finished" or abs(len(packets) - 100) > 3 or listener.events("error"):
                wrong.append(f"{clip}: {ended}, {len(packets)} packets after 2 s of 4 s, {listener.events('error')}")
            return wrong

    wrong = sum(await asyncio.gather(*(check(clip) for clip in clips)), [])
    assert not wrong, "\n".join(wrong)


async def test_a_redirect_is_followed(antiphon, site, new_session):
    target = http_url(f"{site.url}/files", CLIPS[0].file)
    async with listen(antiphon.router.url, new_session()) as listener:
        ready = await listener.play(f"{site.url}/to?{target}")
        assert {"resolve", "connect", "probe"} <= ready["timings_ms"].keys(), ready
        await listener.wait_packets(5)
        await listener.command("stop")
        await listener.play(f"{site.url}/to?/files/{CLIPS[0].file}")
        await listener.command("stop")


async def test_a_bad_server_is_named(antiphon, site, forbidden_site, new_session, bystander):
    elsewhere = f"{forbidden_site.url}/files/{CLIPS[0].file}"
    bad = {
        "404": (f"{site.url}/missing", {"source_not_found"}),
        "410": (f"{site.url}/gone", {"source_not_found"}),
        "500": (f"{site.url}/broken", {"source_unreachable"}),
        "hangs": (f"{site.url}/hang", {"source_timeout"}),
        "a page": (f"{site.url}/page", {"source_not_audio"}),
        "empty": (f"{site.url}/empty", {"source_empty"}),
        "compressed": (f"{site.url}/deflated/{CLIPS[0].file}", {"source_unreachable"}),
        "trickles": (f"{site.url}/trickle/{CLIPS[0].file}", {"source_timeout"}),
        "refused": ("http://127.0.0.1:1/a.mp3", {"source_unreachable"}),
        "no such name": ("http://nowhere.invalid/a.mp3", {"source_not_found"}),
        "redirects to itself": (f"{site.url}/round", {"source_unreachable"}),
        "redirects to a loopback address": (f"{site.url}/to?{elsewhere}", {"source_forbidden"}),
        "redirects to the IPv6 loopback": (f"{site.url}/to?http://[::1]:{site.port}/", {"source_forbidden"}),
        "redirects to a file": (f"{site.url}/to?file:///etc/passwd", {"invalid_source", "source_forbidden"}),
        "redirects to media:": (f"{site.url}/to?media:{CLIPS[0].file}", {"invalid_source", "source_forbidden"}),
        "another loopback address": (elsewhere, {"source_forbidden"}),
    }

    async def check(what: str) -> list[str]:
        url, codes = bad[what]
        wrong = []
        async with listen(antiphon.router.url, new_session()) as listener:
            answer = await listener.ask("play", url=url)
            if answer.get("code") not in codes or len(answer.get("message", "")) < 10:
                wrong.append(f"WebSocket, {what}: expected {codes}, got {answer}")
            elif listener.events("extracting"):
                ended = await listener.wait_event("ended")
                if ended["reason"] != "loadFailed":
                    wrong.append(f"{what}: {ended}")
        endpoints = {
            "Router": f"{antiphon.router.url}/api/v1/sessions",
            "AudioEngine": f"{antiphon.engine.url}/session",
        }
        for endpoint, base in endpoints.items():
            answer = await request("POST", f"{base}/{new_session()}/play", {"url": url})
            if answer.code not in codes or answer.status != STATUS.get(answer.code):
                wrong.append(f"{endpoint}, {what}: expected {codes}, got {answer}")
        return wrong

    wrong = sum(await asyncio.gather(*(check(what) for what in bad)), [])
    assert not wrong, "\n".join(wrong)
    assert not forbidden_site.requests, f"the forbidden address was asked for {forbidden_site.requests}"


@pytest.mark.parametrize("kind", ["stall", "cut"])
async def test_a_transfer_that_breaks_off(antiphon, site, new_session, bystander, kind):
    """Of a server without ranges that never sends more than half: what came is played; then the error; then the
    end."""
    clip = next(clip for clip in CLIPS if clip.encoding is MP3_CBR)
    async with listen(antiphon.router.url, new_session()) as listener:
        await listener.play(f"{site.url}/{kind}/{clip.file}")
        # Only after it has tried for some seconds.
        ended = await listener.wait_event("ended", seconds=60)
        assert ended["reason"] == "finished", ended
        count = len(listener.packets(until=listener.index(ended)))
        assert 95 <= count <= 100, f"{count} packets of half of 200"
        codes = {event["code"] for event in listener.events("error", until=listener.index(ended))}
        assert codes and codes <= {"source_timeout", "source_truncated", "source_unreachable"}, codes


async def test_a_newer_play_supersedes_one_that_waits(antiphon, media, site, new_session):
    async with listen(antiphon.router.url, new_session()) as listener:
        waiting = await listener.send("play", url=f"{site.url}/hang")
        await listener.wait_event("extracting")
        await listener.play(CLIPS[0].url)
        answer = await listener.wait(
            lambda: next((event for event in listener.events("error") if event.get("request_id") == waiting), None),
            "an answer to the play that was superseded",
        )
        assert answer["code"] == "superseded", answer
        await listener.wait_packets(5)
        await listener.command("stop")


async def test_a_slow_server_is_waited_for(antiphon, site, new_session):
    """Its 32 kB/s are enough for this file: it plays to its end, with `buffering` and `playing` if need be."""
    clip = next(clip for clip in CLIPS if clip.encoding is OGG_OPUS)
    async with listen(antiphon.router.url, new_session()) as listener:
        await listener.play(f"{site.url}/slow/{clip.file}")
        ended = await listener.wait_event("ended")
        assert ended["reason"] == "finished" and len(listener.packets()) in (200, 201), (ended, len(listener.packets()))


async def test_without_an_allowance_nothing_private_is_fetched(tmp_path, media, site, new_session):
    """However the address is written. The loopback forms come first: were one of them fetched, the others are not
    tried, so that no test of ours ever sends anything to a network that is not this machine's."""
    port = site.port
    loopback = [
        f"http://127.0.0.1:{port}",
        f"http://localhost:{port}",
        f"http://localhost.:{port}",
        f"http://2130706433:{port}",
        f"http://0x7f.1:{port}",
        f"http://0x7f000001:{port}",
        f"http://0177.0.0.1:{port}",
        f"http://127.1:{port}",
        f"http://[::1]:{port}",
        f"http://[::ffff:127.0.0.1]:{port}",
        f"http://[::ffff:7f00:1]:{port}",
        f"http://0.0.0.0:{port}",
        f"http://0:{port}",
        f"http://[::]:{port}",
        f"http://127.255.255.254:{port}",
        f"http://user:pass@127.0.0.1:{port}",
        f"http://１２７.0.0.1:{port}",
    ]
    private = [
        "http://169.254.169.254",
        "http://10.0.0.1",
        "http://100.64.0.1",
        "http://192.168.0.1",
        "http://172.16.0.1",
        "http://224.0.0.1",
        "http://255.255.255.255",
        "http://192.0.0.1",
        "http://198.18.0.1",
        "http://240.0.0.1",
        "http://[fe80::1]",
        "http://[fc00::1]",
        "http://[ff02::1]",
        "http://[64:ff9b::7f00:1]",
        "http://[2002:7f00:1::]",
        "http://[::ffff:10.0.0.1]",
        "http://[::10.0.0.1]",
        "http://167772161",
    ]
    site.requests.clear()
    with Antiphon(tmp_path, media.root, engine_options=("--source-timeout-seconds", "2"), router=False) as alone:
        async with connect_to_engine(alone.socket) as engine:
            for addresses in (loopback, private):
                wrong = []
                for address in addresses:
                    url = f"{address}/files/{CLIPS[0].file}"
                    answer = await engine.ask(type="play", session_id=new_session(), url=url)
                    # A form that is no proper URL may be refused as one.
                    fitting = {"source_forbidden", "invalid_source"}
                    if "localhost." in address:
                        fitting.add("source_not_found")  # not every resolver knows it with a dot
                    if answer.get("code") not in fitting:
                        wrong.append(f"{address}: {answer}")
                assert not wrong, "\n".join(wrong)
                assert not site.requests, f"fetched: {site.requests}"
        answer = await request(
            "POST", f"{alone.engine.url}/session/x/play", {"url": f"{site.url}/files/{CLIPS[0].file}"}
        )
        assert answer.status == 403 and answer.code == "source_forbidden", answer
        assert answer.body.get("hint"), f"no hint how to allow a network: {answer}"
