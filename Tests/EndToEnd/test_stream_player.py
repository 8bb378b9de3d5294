"""`stream-player.js` in Chromium: a signed push is heard by a page that has no session."""

import asyncio
import base64
import itertools
import json
import mimetypes
import re
import urllib.parse
import zlib

import numpy as np
import pytest
from playwright.async_api import expect

import github
from github import SECRET, accepted, deliver
from inbox import PATIENCE_SECONDS
from local_server import EmptyPage, LocalHandler, LocalServer
from opus import FRAME
from page_server import Asked, PageServer
from processes import ROOT, Antiphon
from relay import relay
from repository_page import happen
from signals import RATE
from stream import push, samples, stream
from stream_page import StreamPage, frames, stream_page
from tab import chromium

_numbers = itertools.count(4_000_000)

#: A name that is not loopback's, over plain HTTP.
INSECURE = "router.test"

#: Of samples as the audio graph has them, 24 bits and an exponent.
ROUNDING = 1e-7

#: What an `EventSource` has to be sent by another origin.
STREAM = {"Access_Control_Allow_Origin": "*", "Cache_Control": "no-store"}


@pytest.fixture(scope="module")
def site():
    """A page of another origin, which the Router lists."""
    with LocalServer(EmptyPage) as running:
        yield running


@pytest.fixture(scope="module")
def options(tmp_path_factory, site) -> tuple[str, ...]:
    secret = tmp_path_factory.mktemp("secret") / "github.secret"
    secret.touch(mode=0o600)
    secret.write_text(SECRET)
    # A page that hears nothing for some heartbeats takes its connection for dead. And the Router that of one that
    # takes nothing for two of them, as a page or a test may on a busy machine.
    timing = ("--stream-heartbeat-seconds", "3")
    return ("--github-secret-file", str(secret), "--allow-origin", site.url, "--allow-host", INSECURE, *timing)


@pytest.fixture(scope="module")
def antiphon(tmp_path_factory, media, options):
    with Antiphon(tmp_path_factory.mktemp("stream-player"), media.root, router_options=options) as running:
        yield running


@pytest.fixture
def number() -> int:
    """A repository that no other test uses."""
    return next(_numbers)


async def star(router: str, number: int) -> None:
    accepted(await deliver(router, "star", github.star(number)))


def joined(*sounds: np.ndarray) -> np.ndarray:
    """One after the other, a tenth of a second of silence around them."""
    silence = np.zeros((RATE // 10, 2))
    return np.concatenate([silence, *sounds, silence])


async def heard(page: StreamPage, pieces: list[dict]) -> np.ndarray:
    """What was heard from a tenth of a second before the first to one after the last."""
    return await page.sound(frames(pieces[0])[0] - RATE // 10, frames(pieces[-1])[1] + RATE // 10)


async def test_what_is_heard_is_the_piece(antiphon, site, browser, number):
    """Each encoding, held against what a plain client is sent: the same samples, without a gap or an overlap."""
    router = antiphon.router.url

    async def check(encoding: str, ready: asyncio.Barrier) -> None:
        async with (
            stream(router, number, encoding) as plain,
            stream_page(browser, site.url, router, number, encoding=encoding) as page,
        ):
            await page.wait_told("state", isConnected=True)
            await ready.wait()
            sent = [samples(event["data"]["buffer"]) for event in await plain.buffers(2)]
            pieces = await page.wait_told("piece", 2)
            await page.wait_told("state", state="playing")
            (_, end), (begin, _) = map(frames, pieces)
            assert end == begin, (encoding, pieces)
            sound, expected = await heard(page, pieces), joined(*sent)
            assert sound.shape == expected.shape, encoding
            difference = np.abs(sound - expected)
            if encoding == "opus":
                # Browsers and ffmpeg decode Opus alike, though not to the bit: a sample may differ by some thousandths, a
                # packet by less than one. A packet that is missing differs by a tenth, and a click is a sample's.
                packets = difference[: len(difference) // FRAME * FRAME].reshape(-1, FRAME * 2)
                assert np.sqrt(np.mean(packets**2, axis=1)).max() < 0.003
                assert difference.max() < 0.02
            else:
                assert difference.max() < ROUNDING, encoding
            assert np.abs(sound).max() > 0.05, encoding
            parameters = await page.told("parameters")
            told = [event["data"] for event in plain.events("musical_parameters")]
            assert parameters == [data | {"type": "parameters"} for data in told], encoding
            assert [piece["number"] for piece in pieces] == [1, 2]
            assert (await page.told("state"))[-1]["state"] == "waiting", encoding
            assert await page.told("error") == []

    encodings = ("opus", "pcm16", "json", "json-deflate")
    ready = asyncio.Barrier(len(encodings) + 1)
    async with asyncio.TaskGroup() as group:
        for encoding in encodings:
            group.create_task(check(encoding, ready))
        await ready.wait()
        # The second comes while the first sounds.
        await push(router, number, "One", *(f"Step {each}" for each in range(6)))
        await push(router, number, "Two")


async def test_a_browser_without_opus_asks_for_samples(antiphon, site, browser, number):
    before = "HTMLMediaElement.prototype.canPlayType = () => '';"
    async with stream_page(browser, site.url, antiphon.router.url, number, before=before) as page:
        await page.wait_told("state", isConnected=True)
        await star(antiphon.router.url, number)
        await page.wait_told("state", state="playing")
        assert "encoding=pcm16" in "".join(page.addresses)


async def test_a_cut_loses_nothing_and_doubles_nothing(antiphon, site, browser):
    """In the middle of a piece; the browser is told of it, or nobody is."""
    ways = ("broken", "silent")
    await asyncio.gather(*(check_cut(antiphon, site, browser, next(_numbers), way) for way in ways))


async def check_cut(antiphon, site, browser, number: int, way: str) -> None:
    router = antiphon.router.url
    async with (
        relay(antiphon.router.address) as between,
        stream(router, number, "json") as plain,
        stream_page(browser, site.url, between.url, number, encoding="json", silenceLimitMs=8_000) as page,
    ):
        await page.wait_told("state", isConnected=True)
        await star(router, number)
        await page.wait_told("piece")
        cut = between.cut_after(500_000)
        await star(router, number)
        await cut.wait()
        await star(router, number)
        if way == "silent":
            # After the one with which it began.
            await page.wait_told("state", 2, isConnected=False)
        between.restore()
        pieces = await page.wait_told("piece", 3)
        assert [piece["number"] for piece in pieces] == [1, 2, 3]
        for event, piece in zip(await plain.buffers(3), pieces, strict=True):
            begin, end = frames(piece)
            sent = samples(event["data"]["buffer"])
            assert np.abs(await page.sound(begin, end) - sent).max() < ROUNDING, piece["number"]
        assert len(await page.told("piece")) == 3


#: The page is held up for half a second as its first piece is to start.
HELD_UP = """
const { start } = AudioBufferSourceNode.prototype;
let isFirst = true;
AudioBufferSourceNode.prototype.start = function (when) {
  for (const begun = performance.now(); isFirst && performance.now() - begun < 500; );
  isFirst = false;
  start.call(this, when);
};
"""


async def test_a_page_that_is_held_up_says_where_it_is_heard(antiphon, site, browser, number):
    router = antiphon.router.url
    async with (
        stream(router, number, "pcm16") as plain,
        stream_page(browser, site.url, router, number, before=HELD_UP, encoding="pcm16") as page,
    ):
        await page.wait_told("state", isConnected=True)
        await star(router, number)
        pieces = await page.wait_told("piece")
        sent = [samples(event["data"]["buffer"]) for event in await plain.buffers(1)]
        sound, expected = await heard(page, pieces), joined(*sent)
        assert sound.shape == expected.shape
        assert np.abs(sound - expected).max() < ROUNDING


async def test_tickets_are_asked_for_anew(tmp_path, media, mint, options, site, browser, number):
    """A token goes in no address; one for another repository is refused, and the reason is told."""
    with Antiphon(tmp_path, media.root, router_options=(*options, *mint.options)) as antiphon:
        router = antiphon.router.url
        token = mint.token(str(number), "control")
        headers = {"Authorization": f"Bearer {token}"}
        async with (
            relay(antiphon.router.address) as between,
            stream_page(browser, site.url, between.url, number, token=token) as page,
        ):
            await page.wait_told("state", isConnected=True)
            await happen(router, str(number), "star", headers=headers)
            await page.wait_told("piece")
            between.cut()
            await happen(router, str(number), "star", headers=headers)
            between.restore()
            assert [piece["number"] for piece in await page.wait_told("piece", 2)] == [1, 2]
            asked = " ".join(page.addresses)
            tickets = re.findall(r"ticket=(\w+)", asked)
            assert token not in asked and len(tickets) == len(set(tickets)) > 1, asked
        other = mint.token("other", "listen")
        async with stream_page(browser, site.url, router, number, token=other) as page:
            [error] = await page.wait_told("error")
            assert error["code"] == "forbidden" and "other" in error["message"] + error["hint"], error
            await page.wait_told("state", state="refused")
            # With one that is good it goes on.
            await page.page.evaluate("token => { player.token = token }", token)
            await page.wait_told("state", isConnected=True)


async def test_what_is_refused_is_told(antiphon, site, browser, number):
    async with stream_page(browser, site.url, antiphon.router.url, number, encoding="mp3") as page:
        [error] = await page.wait_told("error", code="invalid_command")
        assert "mp3" in error["message"] and "json-deflate" in error["message"], error
        await page.wait_told("state", state="refused")


class OwnCopy(LocalHandler):
    """A stranger's page, which has the module's files without asking."""

    def do_GET(self) -> None:
        path = ROOT / "Sources/Router/Playground/Resources" / self.path[1:]
        body = path.read_bytes() if path.is_file() else b""
        self.send_response(200)
        self.send_header("Content-Type", mimetypes.guess_type(self.path)[0] or "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


async def test_a_strange_page_hears_nothing(antiphon, browser, number):
    router = antiphon.router.url
    with LocalServer(OwnCopy) as strange:
        async with stream_page(browser, strange.url, strange.url, number, server=router) as page:
            [error] = await page.wait_told("error")
            assert error["code"] == "no_answer" and "--allow-origin" in error["hint"], error
            imported = await page.page.evaluate(
                "url => import(url).then(() => 'a module', String)", f"{router}/stream-player.js"
            )
            assert "Failed to fetch" in imported
            await star(router, number)
            await page.wait_told("state", state="reconnecting")
            assert await page.told("piece") == [] and not any(each["isConnected"] for each in await page.told("state"))


def described(sound: np.ndarray, **changed: object) -> dict:
    """A buffer of 16 bits, of which some is changed."""
    data = base64.b64encode((sound * 32_768).astype("<i2").tobytes()).decode()
    buffer = {"encoding": "pcm16", "mimeType": "audio/L16", "numberOfChannels": 2, "sampleRate": RATE}
    return buffer | {"length": len(sound), "duration": len(sound) / RATE, "data": data} | changed


def deflated(sound: np.ndarray, text: bytes) -> dict:
    return described(sound, encoding="json-deflate", data=base64.b64encode(zlib.compress(text)).decode())


def numbers(sound: np.ndarray, *channels: list) -> dict:
    return {"numberOfChannels": 2, "length": len(sound), "sampleRate": RATE, "channels": list(channels)}


#: Sums of powers of two, which every encoding holds exactly.
TONE = np.round(np.sin(np.arange(4_800) / 20) * 64) / 256
GOOD = np.stack([TONE, -TONE], axis=1)
ZEROS = [0] * len(GOOD)

#: What a server may send, and a word of what the page is told.
HOSTILE = [
    (described(GOOD, data="*" * 400), "no base64"),
    (described(GOOD, data=None), "no base64"),
    (described(GOOD, data="AAAA"), "3 bytes for 4800"),
    (described(GOOD, length=10**12), "1000000000000, not 1 to"),
    (described(GOOD, length=-1), "-1, not 1 to"),
    (described(GOOD, length="4800"), "4800, not 1 to"),
    (described(GOOD, numberOfChannels=1), "1 channels"),
    (described(GOOD, sampleRate=8_000), "8000 samples a second"),
    (described(GOOD, encoding="mp3"), "mp3"),
    (described(GOOD, encoding="constructor"), "constructor"),
    (described(GOOD, encoding="opus"), "no Ogg Opus file"),
    (described(GOOD, encoding="json-deflate"), "not compressed with zlib"),
    (deflated(GOOD, b"{"), "no JSON"),
    (deflated(GOOD, b"[1]"), "undefined channels"),
    (deflated(GOOD, json.dumps(numbers(GOOD[1:], ZEROS[1:], ZEROS[1:])).encode()), "4799 samples, not 4800"),
    (deflated(GOOD, b" " * 10**8), "inflates to more than"),
    (numbers(GOOD, ZEROS), "no two channels"),
    (numbers(GOOD, ZEROS, ZEROS[1:]), "4799 samples, not 4800"),
    (numbers(GOOD, ZEROS, [*ZEROS[1:], 2]), "a sample is 2"),
    (numbers(GOOD, ZEROS, [*ZEROS[1:], "loud"]), 'a sample is "loud"'),
    (numbers(GOOD, ZEROS, [*ZEROS[1:], None]), "a sample is null"),
    (None, "undefined channels"),
]


def piece_message(number: int, buffer: dict | None) -> str:
    return json.dumps({"type": "audio_buffer", "data": {"number": number, "buffer": buffer}})


def stream_server(messages: list[str]) -> PageServer:
    """Sends any page these messages at `/stream/any`, after the one that it has had."""

    def serve(asked: Asked) -> None:
        last = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(asked.path).query)).get("lastEventId", 0)
        events = [f"id: {place}\ndata: {message}\n\n" for place, message in enumerate(messages, start=1)]
        body = "".join(events[int(last) :]).encode()
        # It never ends: what ends is asked for again.
        asked.begin(200, len(body) + 1, "text/event-stream", **STREAM)
        asked._handler.wfile.write(body)
        asked.wait()

    server = PageServer()
    server.add("/stream/any", serve)
    return server


async def test_a_hostile_stream_breaks_nothing(antiphon, site, browser):
    """Each bad piece is told of, and the next good one is heard. Much at once is fetched as it is played."""
    messages = ["{", "null", '"audio_buffer"', '{"type": "audio_buffer", "data": null}']
    pieces = [buffer for buffer, _ in HOSTILE] + [described(GOOD)]
    messages += [piece_message(number, buffer) for number, buffer in enumerate(pieces, start=1)]
    with stream_server(messages) as hostile:
        async with stream_page(browser, site.url, antiphon.router.url, "any", server=hostile.url) as page:
            [piece] = await page.wait_told("piece")
            assert piece["number"] == len(pieces)
            assert np.abs(await heard(page, [piece]) - joined(GOOD)).max() < ROUNDING
            errors = await page.told("error")
            assert [error["code"] for error in errors] == ["bad_message"] * 3 + ["bad_piece"] * (len(HOSTILE) + 1)
            for error, (_, word) in zip(errors[4:], HOSTILE, strict=True):
                assert word in error["message"] and "undefined" not in error["message"].replace(word, ""), error
            # What waits is bounded: the rest was left to the server until there was room.
            assert len(hostile.requests) > 1 and "lastEventId=" in hostile.requests[1]


async def test_a_file_is_as_long_as_it_is_said_to_be(antiphon, site, browser, number):
    """Browsers differ by less than a packet in where they end an Opus file. What is much too short is no piece."""
    router = antiphon.router.url
    async with stream(router, number, "opus") as plain:
        await plain.wait_event("connected")
        await star(router, number)
        [event] = await plain.buffers(1)
    buffer = event["data"]["buffer"]
    length = buffer["length"]
    told = [length - 500, length + 5_000, length + 500]
    messages = [piece_message(number, buffer | {"length": each}) for number, each in enumerate(told, start=1)]
    with stream_server(messages) as server:
        async with stream_page(browser, site.url, router, "any", server=server.url) as page:
            pieces = await page.wait_told("piece", 2)
            assert [(piece["number"], frames(piece)[1] - frames(piece)[0]) for piece in pieces] == [
                (1, told[0]),
                (3, told[2]),
            ]
            [error] = await page.told("error")
            assert error["number"] == 2 and f"{length} samples" in error["message"], error


async def test_volume_mute_and_stop(antiphon, site, browser, number):
    router = antiphon.router.url
    async with (
        stream(router, number, "pcm16") as plain,
        stream_page(browser, site.url, router, number, encoding="pcm16") as page,
    ):
        await page.wait_told("state", isConnected=True)
        await page.page.evaluate("() => { player.volume = 0.25 }")
        await push(router, number, *(f"Step {each}" for each in range(6)))
        [piece] = await page.wait_told("piece")
        begin, _ = frames(piece)
        [event] = await plain.buffers(1)
        sent = samples(event["data"]["buffer"])[: 2 * RATE]
        assert np.abs(await page.sound(begin, begin + len(sent)) - sent / 4).max() < 1e-4

        async def act(script: str) -> int:
            """Does something, and gives a frame by which its fade is over."""
            return await page.page.evaluate(
                f"() => {{ {script}; return Math.ceil(48000 * (context.currentTime + 0.3)) }}"
            )

        quiet = await act("player.muted = true")
        assert np.abs(await page.sound(quiet, quiet + RATE // 4)).max() < 1e-6
        again = await act("player.muted = false")
        assert np.abs(await page.sound(again, again + RATE // 4)).max() > 1e-3
        over = await act("player.stop()")
        assert np.abs(await page.sound(over, over + RATE // 4)).max() == 0
        assert (await page.told("state"))[-1]["state"] == "stopped"
        # What happens meanwhile is not for it; what comes then is.
        await star(router, number)
        await plain.buffers(2)
        await page.page.evaluate("() => player.start()")
        await page.wait_told("state", 2, isConnected=True, state="waiting")
        await star(router, number)
        assert [each["number"] for each in await page.wait_told("piece", 2)] == [1, 3]


EXAMPLE = re.search(r"```html\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)[1]


#: Measures what goes to the loudspeaker.
METER = """
const connect = AudioNode.prototype.connect;
AudioNode.prototype.connect = function (to, ...rest) {
  if (to instanceof AudioDestinationNode) connect.call(this, window.meter = new AnalyserNode(this.context));
  return connect.call(this, to, ...rest);
};
"""


@pytest.mark.parametrize("host", ["127.0.0.1", INSECURE])
async def test_the_example_of_the_readme(antiphon, host):
    """As it stands, on the Router's own origin, also where a browser has no WebCodecs."""
    assert len(EXAMPLE.splitlines()) <= 20
    number = int(re.search(r"StreamPlayer\('(\d+)'\)", EXAMPLE)[1])
    router = antiphon.router.url
    arguments = [f"--host-resolver-rules=MAP {INSECURE} 127.0.0.1"]
    async with chromium(*arguments) as browser, await browser.new_context() as context:
        page = await context.new_page()
        page.set_default_timeout(PATIENCE_SECONDS * 1_000)
        await page.add_init_script(METER)
        complaints: list[str] = []
        page.on("pageerror", lambda error: complaints.append(str(error)))
        # In the place of what the Router answers there.
        await page.goto(f"{router.replace('127.0.0.1', host)}/ready")
        await page.set_content(EXAMPLE)
        assert await page.evaluate("'AudioDecoder' in window") == (host != INSECURE)
        await page.get_by_role("button", name="Listen").click()
        await expect(page.get_by_role("status")).to_have_text("waiting")
        await push(router, number, "Let it ring")
        await expect(page.get_by_role("status")).to_have_text("playing")
        await expect(page.get_by_text("Let it ring")).to_contain_text("BPM")
        await page.wait_for_function(
            """() => {
              const samples = new Float32Array(meter.fftSize);
              meter.getFloatTimeDomainData(samples);
              return samples.some((sample) => Math.abs(sample) > 0.01);
            }"""
        )
        await page.get_by_role("button", name="Stop").click()
        await expect(page.get_by_role("status")).to_have_text("stopped")
        assert not complaints, complaints
