"""The playground in headless Chromium: two tabs, two songs, and a person at the page."""

import asyncio
import os
import shutil
import time
from contextlib import asynccontextmanager

import numpy as np
import pytest
from playwright.async_api import ConsoleMessage, Page, async_playwright, expect

from client import listen
from inbox import PATIENCE_SECONDS
from media import FLAC, MP3_CBR, Clip, tone_clip
from processes import Antiphon
from signals import AMPLITUDE
from web_server import WebServer

LOW = tone_clip(440, 25, MP3_CBR, 44_100)
HIGH = tone_clip(880, 25, FLAC, 44_100)

STAIR_SECONDS = 2
STAIRS = 30
#: What `antiphon.rms()` measures of a tone at a volume of 1.
LEVEL = AMPLITUDE / np.sqrt(2)


def stair_pitch(seconds: float) -> int:
    """The pitch at a place of the stairs."""
    return 500 + 50 * int(seconds / STAIR_SECONDS)


def stairs(rate: int) -> np.ndarray:
    """A tone that is another every two seconds, so that the sound says where in the track it is."""
    time = np.arange(STAIRS * STAIR_SECONDS * rate) / rate
    return AMPLITUDE * np.sin(2 * np.pi * (500 + 50 * (time // STAIR_SECONDS)) * time)


STAIRCASE = Clip("stairs", FLAC, stairs)
FOLDER = "Songs with spaces"

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

    async def frequency(self, seconds: float = 1) -> float | None:
        """The dominant frequency of the sound that the page has decoded; None when so much has not come yet."""
        return await self.page.evaluate("seconds => window.antiphon.dominantFrequency(seconds)", seconds)

    async def wait_for_tone(self, expected: float) -> None:
        """Until the page plays the tone: at first there is silence in its buffers."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            measured = await self.frequency(0.5)
            if measured is not None and abs(measured - expected) < 15:
                return
            stats = await self.stats()
            assert time.monotonic() < deadline, f"the tab plays {measured} Hz instead of {expected} Hz; {stats}"
            await asyncio.sleep(0.1)

    async def assert_tone(self, expected: float, what: str) -> None:
        """Plays nothing but the tone for the second that comes."""
        await self.wait_for_frames(60)
        measured = await self.frequency()
        assert measured is not None and abs(measured - expected) < 5, f"{what}: {measured} Hz, not {expected} Hz"

    async def wait_for_silence(self) -> None:
        """Until nothing sounds and nothing comes, and then for a while."""
        await self.page.wait_for_function("() => window.antiphon.rms() < 1e-4")
        # The page is told how many have come five times a second.
        await asyncio.sleep(0.4)
        before = (await self.stats())["framesReceived"]
        await asyncio.sleep(0.6)
        after = (await self.stats())["framesReceived"]
        rms, frequency = await self.page.evaluate("() => window.antiphon.rms()"), await self.frequency(0.3)
        assert (after, frequency) == (before, None) and rms < 1e-4, (
            f"{after - before} packets came into the silence; {rms=} {frequency=}"
        )

    async def wait_for_level(self, expected: float) -> None:
        """Until the tone that sounds has this level, within 1.5 dB."""
        await self.page.wait_for_function(
            "expected => Math.abs(20 * Math.log10(window.antiphon.rms() / expected)) < 1.5", arg=expected
        )

    async def wait_for_place_on_stairs(self) -> None:
        """Until the sound is that of the place the page shows."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            measured, place = await self.frequency(0.3), (await self.state())["positionMs"] / 1_000
            if measured is not None and abs(measured - stair_pitch(place)) < 10:
                return
            assert time.monotonic() < deadline, f"at {place:.1f} s sounds {measured} Hz, not {stair_pitch(place)} Hz"
            await asyncio.sleep(0.05)

    def button(self, name: str):
        """A button by what it is called, as screen readers and people find it."""
        return self.page.get_by_role("button", name=name, exact=True)

    async def phase(self, text: str) -> None:
        await expect(self.page.locator("#phase")).to_have_text(text)

    async def focused(self, within: str) -> bool:
        return await self.page.evaluate("within => document.activeElement.closest(within) !== null", within)

    async def assert_no_errors(self) -> None:
        assert await self.page.locator(".toast.error").all_inner_texts() == []
        assert not self.complaints, self.complaints

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
            await tab.assert_tone(expected, "two tabs play")

    await low.send(type="stop")
    await low.wait_for_silence()
    await high.assert_tone(880, "the other tab was stopped")
    await low.wait_for_silence()
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
            await tab.phase("Paused")
            await tab.wait_for_silence()
            await other.command("resume")
            await tab.wait_for_tone(440)
            await other.command("stop")
            await tab.wait_for_silence()
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


#: Notes when sound is heard for the first time after it is run in a silent page.
NOTE_FIRST_SOUND = """() => {
  window.firstSoundAt = null;
  const timer = setInterval(() => {
    if (window.antiphon.rms() < 0.01) return;
    window.firstSoundAt = Date.now() / 1000;
    clearInterval(timer);
  }, 10);
}"""


async def test_the_page_comes_back_with_the_router(antiphon, media, browser):
    """kill -9, and the tab plays on by itself, within a second."""
    media.make(LOW)
    async with tab_in(browser, antiphon.router.url + "/") as tab:
        await tab.play(LOW.url)
        await tab.wait_for_tone(440)
        antiphon.router.kill()
        await tab.page.wait_for_function("() => window.antiphon.rms() < 1e-4")
        assert await tab.frequency(0.3) is None, "the page still hears a tone without a Router"
        await tab.page.evaluate(NOTE_FIRST_SOUND)
        antiphon.router.start()
        up = time.time()
        await tab.page.wait_for_function("() => window.firstSoundAt")
        seconds = await tab.page.evaluate("() => window.firstSoundAt") - up
        assert seconds <= 1, f"the page is heard {seconds:.2f} s after the Router listens"
        await tab.wait_for_tone(440)


async def test_the_page_plays_on_after_the_engine_was_killed(antiphon, media, browser):
    media.make(HIGH)
    async with tab_in(browser, antiphon.router.url + "/") as tab:
        await tab.play(HIGH.url)
        await tab.wait_for_tone(880)
        antiphon.engine.kill()
        await tab.phase("The engine is away")
        await tab.wait_for_silence()
        stopped_at = (await tab.state())["positionMs"]
        antiphon.engine.start()
        await tab.wait_for_tone(880)
        await tab.phase("Now playing")
        place = (await tab.state())["positionMs"]
        assert stopped_at - 500 < place < 20_000, f"it stopped at {stopped_at} ms and goes on at {place} ms"
        await tab.assert_no_errors()


async def test_the_fallback_player_stands_still_without_an_engine(antiphon, media, browser):
    media.make(HIGH)
    async with tab_in(browser, antiphon.router.url + "/?player=audio") as tab:
        await tab.play(HIGH.url)
        await tab.wait_for_tone(880)
        antiphon.engine.kill()
        await tab.phase("The engine is away")
        before = await tab.page.inner_text("#elapsed")
        await asyncio.sleep(1.5)
        assert await tab.page.inner_text("#elapsed") == before, "the clock runs while nothing plays"
        # The browser plays on what it has; then there is nothing but silence.
        await tab.page.wait_for_function("() => window.antiphon.rms() < 1e-4")
        await asyncio.sleep(1)
        assert await tab.frequency(0.5) == 0, "the engine is away, and yet it plays"
        antiphon.engine.start()
        await tab.wait_for_tone(880)
        await tab.send(type="stop")


@pytest.fixture
def songs(media):
    """A folder with a space in its name, below which there are two pieces."""
    media.make(STAIRCASE, LOW)
    folder = media.root / FOLDER
    folder.mkdir(exist_ok=True)
    for clip, name in ((STAIRCASE, "stairs.flac"), (LOW, "low tone.mp3")):
        if not (folder / name).exists():
            shutil.copy(media.path(clip), folder / name)
    return folder


async def test_a_person_uses_the_page(antiphon, songs, browser):
    """By nothing but clicks and keys."""
    async with tab_in(browser, antiphon.router.url + "/") as tab:
        page = tab.page
        await page.get_by_role("button", name=FOLDER).press("Enter")
        await expect(tab.button("Play Stairs")).to_be_visible()
        assert await tab.focused("#library"), "the keyboard fell out of the library"
        await tab.button("Play Stairs").click()
        await tab.phase("Now playing")
        await tab.wait_for_place_on_stairs()
        await tab.wait_for_level(LEVEL)

        await tab.button("Pause").click()
        await tab.phase("Paused")
        await tab.wait_for_silence()
        stood = await page.inner_text("#elapsed")
        await page.keyboard.press("Space")
        await tab.phase("Now playing")
        await tab.wait_for_place_on_stairs()
        assert await page.inner_text("#elapsed") in (stood, f"0:{int(stood[2:]) + 1:02}", f"0:{int(stood[2:]) + 2:02}")

        await page.locator("#seek").focus()
        goal = (await tab.state())["positionMs"] + 4 * 5_000
        for _ in range(4):
            await page.keyboard.press("ArrowRight")
        await page.wait_for_function(
            "goal => { const at = window.antiphon.state().positionMs; return at > goal - 500 && at < goal + 2000; }",
            arg=goal,
            timeout=1_000,
        )
        await tab.wait_for_place_on_stairs()

        await page.locator("#volume").focus()
        for _ in range(10):
            await page.keyboard.press("ArrowDown")
        await expect(page.locator("#volume-value")).to_have_text("50 %")
        await tab.wait_for_level(LEVEL / 2)

        for name in ("Low tone", "Stairs", "Low tone"):
            await tab.button(f"Add {name} to the queue").click()
        rows = page.locator("#queue .row")
        await expect(rows).to_have_count(3)
        await rows.nth(2).get_by_role("button").press("Enter")
        await expect(rows).to_have_count(2)
        assert await tab.focused("#queue .row:nth-child(2)"), "the keyboard fell out of the queue"

        # To the end, where the next track begins, at the volume that was set.
        await page.locator("#seek").press("End")
        await tab.wait_for_tone(440)
        await tab.wait_for_level(LEVEL / 2)
        await expect(rows).to_have_count(1)
        await tab.button("Next in the queue").click()
        await tab.wait_for_place_on_stairs()
        await expect(rows).to_have_count(0)
        await expect(page.locator("#title")).to_have_text("Stairs")

        await tab.button("Stop").click()
        await tab.phase("Last played")
        await tab.wait_for_silence()
        assert await tab.focused(".dock"), "the keyboard fell out of the player"
        await tab.assert_no_errors()


async def test_the_volume_set_before_anything_plays_is_what_it_begins_with(antiphon, songs, browser):
    """A bot's track too."""
    async with tab_in(browser, antiphon.router.url + "/") as tab:
        await tab.page.locator("#volume").focus()
        for _ in range(10):
            await tab.page.keyboard.press("ArrowDown")
        await expect(tab.page.locator("#volume-value")).to_have_text("50 %")
        await tab.page.get_by_role("button", name=FOLDER).click()
        await tab.button("Add Low tone to the queue").click()
        await tab.wait_for_tone(440)
        await tab.wait_for_level(LEVEL / 2)
        await expect(tab.page.locator("#volume-value")).to_have_text("50 %")
        await tab.button("Stop").click()
        await tab.wait_for_silence()
        await tab.assert_no_errors()


async def test_all_tabs_of_a_session_show_its_volume(antiphon, songs, browser):
    url = f"{antiphon.router.url}/?session=shared-volume"
    async with (
        tab_in(browser, url) as one,
        tab_in(browser, url) as other,
        listen(antiphon.router.url, "shared-volume") as bot,
    ):

        async def assert_both_show(text: str) -> None:
            for tab in (one, other):
                await expect(tab.page.locator("#volume-value")).to_have_text(text)

        # While nothing plays, by somebody's play, and while it plays.
        await one.page.locator("#volume").press("Home")
        await assert_both_show("0 %")
        await bot.play(LOW.url, volume=0.75)
        await assert_both_show("75 %")
        await other.wait_for_tone(440)
        await other.wait_for_level(LEVEL * 0.75)
        await other.page.locator("#volume").press("ArrowUp")
        await assert_both_show("80 %")
        await bot.command("stop")
        for tab in (one, other):
            await tab.assert_no_errors()


async def test_what_is_being_opened_can_be_stopped(tmp_path, media, browser):
    with (
        Antiphon(tmp_path, media.root, allow=("127.0.0.1/32",)) as antiphon,
        WebServer(media.root) as web,
    ):
        async with tab_in(browser, antiphon.router.url + "/") as tab:
            await tab.page.locator("#source-url").fill(f"{web.url}/hang")
            await tab.page.locator("#source-url").press("Enter")
            await tab.phase("Opening…")
            await tab.button("Stop opening").click()
            await tab.phase("Not played")
            await tab.assert_no_errors()


async def test_what_could_not_be_played_was_not_played(antiphon, browser):
    async with tab_in(browser, antiphon.router.url + "/") as tab:
        await tab.page.locator("#source-url").fill("media:not there.mp3")
        await tab.page.locator("#source-url").press("Enter")
        toast = tab.page.locator(".toast.error")
        await expect(toast).to_be_visible()
        assert "GET /" not in await toast.inner_text()
        await tab.phase("Not played")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [(390, 844), (320, 640)], ids=str)
async def test_it_fits_a_phone(antiphon, songs, browser, scheme, size):
    context = await browser.new_context(viewport={"width": size[0], "height": size[1]}, color_scheme=scheme)
    tab = await Tab(await context.new_page()).open(antiphon.router.url + "/")

    async def assert_it_fits(when: str) -> None:
        width = await tab.page.evaluate("() => document.documentElement.scrollWidth")
        assert width <= size[0], f"{when} the page is {width} px wide on a phone of {size[0]} px"
        # What is fixed to the window does not widen the page, but can be cut off.
        outside = await tab.page.evaluate(
            """() => [...document.querySelectorAll('.top *, .dock *, .shelves *')]
              .filter((each) => each.getClientRects().length && each.getBoundingClientRect().right > innerWidth + 0.5)
              .map((each) => each.outerHTML.slice(0, 80))"""
        )
        assert not outside, f"{when} {outside} are cut off"

    await assert_it_fits("idle")
    await tab.page.get_by_role("button", name=FOLDER).click()
    await tab.button("Play Stairs").click()
    await tab.phase("Now playing")
    await tab.button("Add Low tone to the queue").click()
    await expect(tab.page.locator("#queue .row")).to_have_count(1)
    await tab.wait_for_place_on_stairs()
    await assert_it_fits("playing")
    await tab.assert_no_errors()
    await context.close()
