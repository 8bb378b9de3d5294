"""The playground in headless Chromium: two tabs, two songs."""

import asyncio
import os
import shutil
import time
from contextlib import asynccontextmanager

import pytest
from playwright.async_api import ConsoleMessage, Page, async_playwright

from client import listen
from inbox import PATIENCE_SECONDS
from media import FLAC, MP3_CBR, tone_clip

LOW = tone_clip(440, 25, MP3_CBR, 44_100)
HIGH = tone_clip(880, 25, FLAC, 44_100)

CHROMIUM = os.environ.get("ANTIPHON_CHROMIUM") or shutil.which("chromium") or "/usr/bin/chromium"


@pytest.fixture
async def browser():
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--autoplay-policy=no-user-gesture-required"]
        )
        try:
            yield browser
        finally:
            await browser.close()


class Tab:
    """One tab with the playground, driven through the page's own `window.antiphon`."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.complaints: list[str] = []
        page.on("pageerror", lambda error: self.complaints.append(f"exception: {error}"))
        page.on("console", self._hear)

    async def open(self, url: str) -> "Tab":
        # Not until `load`, which waits for the first sound of an <audio> element.
        await self.page.goto(url, wait_until="domcontentloaded")
        await self.page.wait_for_function("() => window.antiphon?.sessionId && window.antiphon.stats().connected")
        return self

    def _hear(self, message: ConsoleMessage) -> None:
        # The page asks whether there are samples; in these tests there are none.
        if message.type == "error" and "path=samples" not in message.location["url"]:
            self.complaints.append(f"{message.text} {message.location['url']}")

    async def session(self) -> str:
        return await self.page.evaluate("() => window.antiphon.sessionId")

    async def send(self, **command) -> dict:
        answer = await self.page.evaluate("command => window.antiphon.send(command)", command)
        assert answer["type"] != "error", f"{command} was refused: {answer}"
        return answer

    async def play(self, url: str) -> None:
        await self.send(type="play", url=url)

    async def frequency(self, seconds: float = 1) -> float:
        """The dominant frequency of the sound that the page has decoded."""
        return await self.page.evaluate("seconds => window.antiphon.dominantFrequency(seconds)", seconds)

    async def wait_for_tone(self, expected: float) -> None:
        """Until the page plays the tone: at first there is silence in its buffers."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            measured = await self.frequency(0.5)
            if abs(measured - expected) < 15:
                return
            stats = await self.stats()
            assert time.monotonic() < deadline, f"the tab plays {measured:.1f} Hz instead of {expected} Hz; {stats}"
            await asyncio.sleep(0.1)

    async def wait_for_frames(self, count: int) -> None:
        """Until so many more packets have come."""
        goal = (await self.stats())["framesReceived"] + count
        await self.page.wait_for_function("goal => window.antiphon.stats().framesReceived >= goal", arg=goal)

    async def stats(self) -> dict:
        return await self.page.evaluate("() => window.antiphon.stats()")

    async def state(self) -> dict:
        return await self.page.evaluate("() => window.antiphon.state()")


#: Remembers the page's audio elements, which need not be in its document.
KEEP_AUDIO = """
  const audios = [], Original = window.Audio;
  window.Audio = function (...given) { const audio = new Original(...given); audios.push(audio); return audio; };
  window.playing = () => audios.filter((audio) => audio.src && !audio.paused);
"""


@asynccontextmanager
async def tab_in(browser, url: str, before: str = ""):
    """A tab; `before` is run in it before the page's own scripts."""
    context = await browser.new_context()
    await context.add_init_script(before)
    try:
        yield await Tab(await context.new_page()).open(url)
    finally:
        await context.close()


async def test_two_tabs_play_two_songs(antiphon, media, browser):
    media.make(LOW, HIGH)
    url = antiphon.router.url + "/"
    # Two tabs of one browser window: they share everything that a browser keeps for a site.
    context = await browser.new_context()
    low, high = await Tab(await context.new_page()).open(url), await Tab(await context.new_page()).open(url)
    sessions = await low.session(), await high.session()
    assert sessions[0] != sessions[1], f"both tabs are user {sessions[0]}"

    await low.play(LOW.url)
    await high.play(HIGH.url)
    await low.wait_for_tone(440)
    await high.wait_for_tone(880)
    for _ in range(2):
        for tab, expected in ((low, 440), (high, 880)):
            await tab.wait_for_frames(50)
            measured = await tab.frequency()
            assert abs(measured - expected) < 5, f"the tab of {expected} Hz plays {measured:.1f} Hz"

    await low.send(type="stop")
    await high.wait_for_frames(100)
    measured = await high.frequency()
    assert abs(measured - 880) < 5, f"after the other was stopped the tab of 880 Hz plays {measured:.1f} Hz"
    for tab in (low, high):
        assert (await tab.stats())["lost"] == 0, await tab.stats()
    for tab in (low, high):
        assert not tab.complaints, tab.complaints
    await context.close()


async def test_the_page_follows_the_commands(antiphon, media, browser):
    media.make(LOW)
    async with tab_in(browser, antiphon.router.url + "/") as tab:
        session = await tab.session()
        # Somebody else, a bot perhaps, drives the same session.
        async with listen(antiphon.router.url, session) as other:
            await other.play(LOW.url)
            await tab.wait_for_tone(440)
            await other.command("pause")
            await tab.page.wait_for_function("() => JSON.stringify(window.antiphon.state()).includes('paused')")
            await other.command("resume")
            await tab.wait_for_tone(440)
            await other.command("stop")
        assert not tab.complaints, tab.complaints


async def test_the_audio_element_plays_where_it_is_asked_for(antiphon, media, browser):
    media.make(HIGH)
    async with tab_in(browser, antiphon.router.url + "/?player=audio", KEEP_AUDIO) as tab:
        await tab.play(HIGH.url)
        # Really plays: its own clock goes on, from the stream of this session.
        await tab.page.wait_for_function("() => playing().length && playing()[0].currentTime > 0")
        source, begun = await tab.page.evaluate("() => [playing()[0].currentSrc, playing()[0].currentTime]")
        assert f"/listen/{await tab.session()}.ogg" in source, source
        await tab.page.wait_for_function("begun => playing()[0].currentTime > begun + 2", arg=begun)
        await tab.wait_for_tone(880)
        error = await tab.page.evaluate("() => playing()[0].error?.message ?? null")
        assert error is None, error


async def test_without_webcodecs_the_page_says_so_and_plays(antiphon, media, browser):
    media.make(LOW)
    async with tab_in(browser, antiphon.router.url + "/", KEEP_AUDIO + "delete window.AudioDecoder;") as tab:
        note = await tab.page.inner_text("#player-note:visible")
        assert "WebCodecs" in note, note
        await tab.play(LOW.url)
        await tab.page.wait_for_function("() => playing().length && playing()[0].currentTime > 0")
        await tab.wait_for_tone(440)
        assert not tab.complaints, tab.complaints


async def test_the_page_comes_back_with_the_router(antiphon, media, browser):
    """kill -9, and the tab plays on by itself."""
    media.make(LOW)
    async with tab_in(browser, antiphon.router.url + "/") as tab:
        await tab.play(LOW.url)
        await tab.wait_for_tone(440)
        antiphon.router.kill()
        antiphon.router.start()
        # Then it receives again, whether it goes on counting or begins anew.
        before = (await tab.stats())["framesReceived"]
        await tab.page.wait_for_function("before => window.antiphon.stats().framesReceived !== before", arg=before)
        await tab.wait_for_tone(440)


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_it_fits_a_phone(antiphon, browser, scheme):
    context = await browser.new_context(viewport={"width": 360, "height": 740}, color_scheme=scheme)
    tab = await Tab(await context.new_page()).open(antiphon.router.url + "/")
    width = await tab.page.evaluate("() => document.documentElement.scrollWidth")
    assert width <= 360, f"the page is {width} px wide on a phone of 360 px"
    assert not tab.complaints, tab.complaints
    await context.close()
