"""The security guide's nginx and Caddy: page, WebSocket, event stream and players go through them, and what is to stay
out does."""

import asyncio
from contextlib import asynccontextmanager

import aiohttp
import pytest
from aiohttp.abc import AbstractResolver

from analysis import assert_unbroken_tone
from client import OPUS, Listener
from media import FLAC, OGG_OPUS, tone_clip
from opus import FRAME, decode
from processes import Antiphon
from reverse_proxy import NAME, ReverseProxy, is_there
from signals import AMPLITUDE
from stream import Stream
from tab import Tab, chromium

SONG = tone_clip(660, 60, FLAC)
OPUS_SONG = tone_clip(440, 60, OGG_OPUS)


@pytest.fixture(scope="module")
def antiphon(tmp_path_factory, media):
    """A Router that is reached by the name; heartbeats come often."""
    options = ("--allow-host", NAME, "--stream-heartbeat-seconds", "1")
    with Antiphon(tmp_path_factory.mktemp("antiphon"), media.root, router_options=options) as running:
        yield running


@pytest.fixture(scope="module", params=["nginx", "caddy"])
def proxy(request, tmp_path_factory, antiphon):
    if not is_there(request.param):
        pytest.skip(f"there is no {request.param} (Debian's)")
    with ReverseProxy(request.param, tmp_path_factory.mktemp(request.param), antiphon.router.address) as running:
        yield running


class Loopback(AbstractResolver):
    """Every name is this machine."""

    async def resolve(self, host, port=0, family=0):
        return [{"hostname": host, "host": "127.0.0.1", "port": port, "family": 2, "proto": 0, "flags": 0}]

    async def close(self) -> None: ...


@pytest.fixture
async def http(proxy):
    """A client that finds the proxy and trusts it."""
    connector = aiohttp.TCPConnector(resolver=Loopback(), ssl=proxy.tls)
    async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(sock_connect=20)) as http:
        yield http


@asynccontextmanager
async def reading(inbox, *arguments):
    """Reads in the background."""
    task = asyncio.create_task(inbox.read(*arguments))
    try:
        yield inbox
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_the_page_plays(proxy, media, antiphon):
    media.path(SONG)
    arguments = ("--autoplay-policy=no-user-gesture-required", f"--host-resolver-rules=MAP {NAME} 127.0.0.1")
    async with chromium(*arguments) as browser:
        context = await browser.new_context(ignore_https_errors=True)
        tab = await Tab(await context.new_page()).open(f"{proxy.url}/")
        await tab.play(SONG.url)
        await tab.wait_for_tone(660)
        await tab.assert_tone(660, "through the proxy")
        assert not tab.complaints, tab.complaints


async def test_a_bot_hears_every_packet(proxy, http, media, new_session):
    media.path(OPUS_SONG)
    session = new_session()
    query = {"session": session}
    async with (
        http.ws_connect(f"{proxy.url}/ws", params=query, protocols=(OPUS,)) as socket,
        reading(Listener(session, socket, OPUS)) as listener,
    ):
        await listener.play(OPUS_SONG.url)
        packets = await listener.wait_packets(150)
        sound = decode(packet.audio for packet in packets)[:, 0]
        assert_unbroken_tone(sound[5 * FRAME :], 440, AMPLITUDE, "through the proxy")


async def test_events_come_one_by_one(proxy, http, new_session):
    """What is held back would come when there is enough of it: a heartbeat is a few bytes."""
    async with http.get(f"{proxy.url}/stream/{new_session()}") as response:
        assert response.status == 200 and response.content_type == "text/event-stream"
        async with reading(Stream("through the proxy"), response) as stream:
            await stream.wait_event("connected")
            await stream.wait(lambda: stream.events("heartbeat")[1:], "two heartbeats")


async def test_a_player_gets_sound_at_once(proxy, http, antiphon, media, new_session):
    session = new_session()
    async with http.get(f"{proxy.url}/listen/{session}.ogg") as response:
        assert await asyncio.wait_for(response.content.readexactly(4), 20) == b"OggS"
        # Silence is sent as it is due: a few bytes at a time.
        before = await asyncio.wait_for(response.content.readany(), 20)
        assert before and await asyncio.wait_for(response.content.readany(), 20)


async def test_pages_of_others_stay_out(proxy, http, new_session):
    play = f"{proxy.url}/api/v1/sessions/{new_session()}/stop"
    for origin, is_refused in ((proxy.url, False), ("https://stranger.example", True)):
        # There is nothing to stop, which the one that may ask is told.
        async with http.post(play, headers={"Origin": origin}) as response:
            assert (response.status == 403) == is_refused, (origin, response.status, await response.text())


async def test_deliveries_may_be_long_and_commands_not(proxy, http, new_session):
    async with http.post(f"{proxy.url}/webhooks/github", data=b" " * (2 << 20)) as response:
        # The Router's own answer: it has no secret here.
        assert (await response.json())["code"] == "webhooks_disabled"
    async with http.post(f"{proxy.url}/api/v1/sessions/{new_session()}/play", data=b" " * (128 << 10)) as response:
        assert response.status in (400, 413), response.status
    async with http.get(f"{proxy.url}/metrics") as response:
        assert response.status == 404
