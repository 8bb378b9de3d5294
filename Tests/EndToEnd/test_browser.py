"""The playground in headless Chromium: two tabs, two songs, and a person at the page."""

import asyncio
import shutil
import time

import numpy as np
import pytest
from playwright.async_api import expect

from client import listen
from media import FLAC, MP3_CBR, Clip, tone_clip
from processes import Antiphon
from signals import AMPLITUDE
from tab import STAIR_SECONDS, STAIRS, STILL, Tab, tab_in
from web_server import WebServer

LOW = tone_clip(440, 25, MP3_CBR, 44_100)
HIGH = tone_clip(880, 25, FLAC, 44_100)

#: What `antiphon.rms()` measures of a tone at a volume of 1.
LEVEL = AMPLITUDE / np.sqrt(2)


def stairs(rate: int) -> np.ndarray:
    """A tone that is another every two seconds, so that the sound says where in the track it is."""
    time = np.arange(STAIRS * STAIR_SECONDS * rate) / rate
    return AMPLITUDE * np.sin(2 * np.pi * (500 + 50 * (time // STAIR_SECONDS)) * time)


STAIRCASE = Clip("stairs", FLAC, stairs)
FOLDER = "Songs with spaces"

#: Remembers the page's audio elements, which need not be in its document.
KEEP_AUDIO = """
  const audios = [], Original = window.Audio;
  window.Audio = function (...given) { const audio = new Original(...given); audios.push(audio); return audio; };
  window.playing = () => audios.filter((audio) => audio.src && !audio.paused);
"""


async def test_two_tabs_play_two_songs(antiphon, media, browser):
    media.make(LOW, HIGH)
    url = antiphon.router.url + "/"
    # Two tabs of one browser window: they share everything that a browser keeps for a site.
    context = await browser.new_context(**STILL)
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
        await rows.nth(2).get_by_role("button", name="Remove Low tone from the queue").press("Enter")
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


async def test_it_fits_a_phone(antiphon, songs, browser):
    phones = ((390, 844), (320, 640))
    async with tab_in(browser, antiphon.router.url + "/", viewport={"width": 390, "height": 844}) as tab:
        async for _ in tab.windows(phones):
            await tab.assert_fits(".top *, .dock *, .shelves *")
        await tab.page.get_by_role("button", name=FOLDER).click()
        await tab.button("Play Stairs").click()
        await tab.phase("Now playing")
        await tab.button("Add Low tone to the queue").click()
        await expect(tab.page.locator("#queue .row")).to_have_count(1)
        await tab.wait_for_place_on_stairs()
        async for _ in tab.windows(phones):
            await tab.assert_fits(".top *, .dock *, .shelves *")
        await tab.assert_no_errors()
