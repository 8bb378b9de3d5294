"""The playground by the keyboard, and by the keys and lock screens that the device has outside of the page."""

import asyncio

import pytest
from playwright.async_api import expect

from desktop import Desktop
from inbox import PATIENCE_SECONDS
from media import FLAC, tone_clip
from tab import DESKTOP_CHROMIUM, Tab, chromium, tab_in
from tagged import make_picture, make_tagged

FIRST = tone_clip(440, 90, FLAC)
SECOND = tone_clip(880, 90, FLAC)

#: Remembers what the page tells the device, and passes it on.
RECORD_MEDIA_SESSION = """
  window.mediaKeys = {
    handlers: {},
    position: null,
    // Where a lock screen, which counts on from what it was told last, has the track at the page's time 0.
    origin() { return this.position.position - this.toldMs / 1000; },
  };
  const session = navigator.mediaSession;
  const { setActionHandler, setPositionState } = session;
  session.setActionHandler = (action, run) => {
    if (run) window.mediaKeys.handlers[action] = run; else delete window.mediaKeys.handlers[action];
    setActionHandler.call(session, action, run);
  };
  session.setPositionState = (state) => {
    Object.assign(window.mediaKeys, { position: state, toldMs: performance.now() });
    setPositionState.call(session, state);
  };
"""


async def begin(tab: Tab, media) -> None:
    """The first plays, the second waits."""
    media.make(FIRST, SECOND)
    await tab.play(FIRST.url)
    await tab.send(type="queue_add", url=SECOND.url)
    await tab.wait_for_tone(440)


async def press_and_jump(tab: Tab, key: str, presses: int, seconds: float) -> None:
    """Presses in a row add up. What goes by meanwhile on a busy machine is less than 10 s."""
    origin = "window.antiphon.state().positionMs - performance.now()"
    before = await tab.page.evaluate(f"() => {origin}")
    for _ in range(presses):
        await tab.page.keyboard.press(key)
    await tab.page.wait_for_function(
        f"([before, jump]) => Math.abs({origin} - before - jump) < 10000", arg=[before, seconds * 1_000]
    )


async def test_the_shortcuts(antiphon, media, browser):
    async with tab_in(browser, antiphon.router.url + "/") as tab:
        keys = tab.page.keyboard
        await begin(tab, media)
        await keys.press("Space")
        await tab.phase("Paused")
        await keys.press("Space")
        await tab.phase("Now playing")
        await press_and_jump(tab, "ArrowRight", 8, 40)
        await press_and_jump(tab, "ArrowLeft", 4, -20)

        await keys.press("m")
        await expect(tab.page.locator("#mute")).to_have_attribute("aria-pressed", "true")
        # Whatever a keyboard does with capitals.
        await keys.press("Shift+M")
        await expect(tab.page.locator("#mute")).to_have_attribute("aria-pressed", "false")
        await keys.press("l")
        await expect(tab.page.locator("#loop")).to_have_attribute("aria-label", "Repeat: the queue")
        await keys.press("l")
        await keys.press("l")
        await expect(tab.page.locator("#loop")).to_have_attribute("aria-label", "Repeat: off")

        await keys.press("Shift+ArrowRight")
        await tab.wait_for_tone(880)
        await keys.press("Shift+ArrowLeft")
        await tab.wait_for_tone(440)
        await tab.send(type="queue_add", url=SECOND.url)
        await keys.press("s")
        await expect(tab.page.locator("#announcer")).to_have_text("The queue was shuffled.")
        await tab.button("Stop").click()
        await tab.assert_no_errors()


async def test_keys_are_left_to_whoever_has_a_use_for_them(antiphon, media, browser):
    async with tab_in(browser, antiphon.router.url + "/") as tab:
        page, keys = tab.page, tab.page.keyboard
        await begin(tab, media)
        await keys.press("/")
        assert await tab.focused("#source-url")
        await keys.type("slim m/? l")
        await expect(page.locator("#source-url")).to_have_value("slim m/? l")
        await keys.press("ArrowLeft")
        await page.locator("#loop").focus()
        # The browser's own, and a button that is pressed.
        await keys.press("Control+m")
        await keys.press("Alt+ArrowRight")
        await keys.press("Space")
        await expect(page.locator("#loop")).to_have_attribute("aria-label", "Repeat: the queue")
        await tab.phase("Now playing")
        state = await tab.state()
        assert state["state"] == "streaming" and state["positionMs"] < 20_000, state
        await expect(page.locator("#mute")).to_have_attribute("aria-pressed", "false")

        # In front of a dialog nothing else is meant.
        await page.locator("h1").click()
        await keys.press("?")
        dialog = page.get_by_role("dialog", name="Keyboard shortcuts")
        await expect(dialog).to_be_visible()
        await keys.press("m")
        await expect(page.locator("#mute")).to_have_attribute("aria-pressed", "false")
        # Single keys can be switched off, for good; the others stay.
        await page.get_by_label("Use the single keys").uncheck()
        await keys.press("Escape")
        await expect(dialog).to_be_hidden()
        for _ in range(2):
            await keys.press("m")
            await expect(page.locator("#mute")).to_have_attribute("aria-pressed", "false")
            await page.reload(wait_until="domcontentloaded")
            await page.wait_for_function("() => window.antiphon?.stats().connected")
            await tab.phase("Now playing")
        await page.locator("h1").click()
        await keys.press("Space")
        await tab.phase("Paused")
        await tab.button("Stop").click()
        await tab.assert_no_errors()


@pytest.mark.parametrize("player", ["webcodecs", "audio"])
async def test_the_device_shows_and_controls_what_plays(antiphon, media, tmp_path, browser, player):
    url = make_tagged(
        media, "shown.m4a", {"title": "O vis", "artist": "Hildegard", "album": "Symphonia"},
        cover=make_picture(tmp_path), seconds=90,
    )  # fmt: skip
    media.path(SECOND)
    async with tab_in(browser, f"{antiphon.router.url}/?player={player}", RECORD_MEDIA_SESSION) as tab:
        page = tab.page

        async def press(action: str, **details) -> None:
            await page.evaluate(
                "([action, details]) => window.mediaKeys.handlers[action]({ action, ...details })", [action, details]
            )

        async def offered() -> set[str]:
            return set(await page.evaluate("() => Object.keys(window.mediaKeys.handlers)"))

        assert await offered() == {"play"}, "nothing plays"
        await tab.play(url)
        await page.wait_for_function("() => navigator.mediaSession.metadata?.artwork.length")
        shown = await page.evaluate(
            """() => { const { title, artist, album, artwork } = navigator.mediaSession.metadata;
              return { title, artist, album, artwork: artwork[0].src } }"""
        )
        assert shown | {"artwork": ""} == {"title": "O vis", "artist": "Hildegard", "album": "Symphonia", "artwork": ""}
        assert shown["artwork"].startswith(f"{antiphon.router.url}/artwork?url=media:"), shown
        assert await page.evaluate("() => navigator.mediaSession.playbackState") == "playing"
        # What browsers go by: an element that really plays.
        await page.wait_for_function("() => window.mediaKeys.position?.duration > 89")

        await press("pause")
        await tab.phase("Paused")
        assert await page.evaluate("() => navigator.mediaSession.playbackState") == "paused"
        await press("play")
        await tab.phase("Now playing")
        place = await page.evaluate("() => window.mediaKeys.origin() + performance.now() / 1000")
        for action, details, seconds in (
            ("seekto", {"seekTime": 60}, 60 - place),
            ("seekbackward", {"seekOffset": 30}, -30),
            ("seekforward", {}, 10),
        ):
            # By how much it jumps: what the browser holds back, less than 4 s, comes and goes.
            before = await page.evaluate("() => window.mediaKeys.origin()")
            await press(action, **details)
            await page.wait_for_function(
                "([before, seconds]) => Math.abs(window.mediaKeys.origin() - before - seconds) < 4",
                arg=[before, seconds],
            )
        await tab.send(type="queue_add", url=SECOND.url)
        await press("nexttrack")
        await tab.wait_for_tone(880)
        assert "O vis" not in await page.evaluate("() => navigator.mediaSession.metadata.title")
        await press("previoustrack")
        await tab.wait_for_tone(440)
        await press("stop")
        await page.wait_for_function("() => navigator.mediaSession.playbackState === 'none'")
        assert "seekto" not in await offered()
        assert await page.evaluate("() => navigator.mediaSession.metadata") is None
        await tab.assert_no_errors()


@pytest.mark.parametrize("player", ["webcodecs", "audio"])
async def test_a_desktops_own_media_controls_work(antiphon, media, tmp_path, player):
    """What Chromium offers to the desktop, where keyboards' media keys and lock screens get it from."""
    url = make_tagged(
        media, "desk.m4a", {"title": "O vis", "artist": "Hildegard"}, cover=make_picture(tmp_path), seconds=90
    )
    media.path(SECOND)
    with Desktop() as desktop:
        async with (
            chromium(
                "--autoplay-policy=no-user-gesture-required", executable=DESKTOP_CHROMIUM, **desktop.environment
            ) as browser,
            tab_in(browser, f"{antiphon.router.url}/?player={player}") as tab,
        ):
            await tab.play(url)
            await tab.send(type="queue_add", url=SECOND.url)
            await tab.wait_for_tone(440)
            async with asyncio.timeout(PATIENCE_SECONDS):
                while not desktop.players():
                    await asyncio.sleep(0.1)
            (name,) = desktop.players()
            desktop.wait_for(name, "Metadata", "O vis", "Hildegard", "mpris:artUrl", "90000000")
            desktop.wait_for(name, "PlaybackStatus", "Playing")
            desktop.press(name, "PlayPause")
            await tab.phase("Paused")
            desktop.wait_for(name, "PlaybackStatus", "Paused")
            desktop.press(name, "PlayPause")
            await tab.phase("Now playing")
            desktop.press(name, "Next")
            await tab.wait_for_tone(880)
            desktop.press(name, "Previous")
            await tab.wait_for_tone(440)
            desktop.press(name, "Stop")
            await tab.phase("Last played")
