"""What axe-core finds in the playground, in Chromium: nothing."""

import pytest
from axe_playwright_python.base import AXE_SCRIPT, AxeResults
from playwright.async_api import expect

from client import request
from media import FLAC, tone_clip
from repository_page import RepositoryTab, happen, repository_tab
from tab import STILL, Tab, tab_in

PLAYING = tone_clip(440, 120, FLAC)
WIDE = [((1280, 800), "light"), ((1280, 800), "dark")]
WINDOWS = [*WIDE, ((390, 844), "light"), ((320, 640), "dark")]
#: Where all rules are checked: in the widest and in the narrowest window. In those between only the rules about looks
#: are: what the others look at, the document, is as in one of these.
WHOLE = (WINDOWS[0], WINDOWS[-1])
LOOKS = {"type": "rule", "values": ["color-contrast", "target-size"]}
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
#: The least a finger hits for sure (WCAG 2.2, 2.5.8), and on a phone (2.5.5).
LEAST_PX, LEAST_ON_PHONE_PX = 24, 44


async def assert_accessible(tab: Tab, state: str, rules: object = TAGS) -> None:
    options = {"runOnly": rules, "resultTypes": ["violations"]}
    found = AxeResults(await tab.page.evaluate("options => axe.run(options)", options))
    assert found.violations_count == 0, f"{state}: {found.generate_report()}"


async def assert_accessible_in(windows: list, tab: Tab, state: str) -> None:
    """In each of the windows, one after the other."""
    for (width, height), scheme in windows:
        await tab.page.set_viewport_size({"width": width, "height": height})
        await tab.page.emulate_media(color_scheme=scheme)
        what = f"{state}, {scheme}, {width} px wide"
        await assert_accessible(tab, what, TAGS if ((width, height), scheme) in WHOLE else LOOKS)
        await assert_hit(tab, LEAST_ON_PHONE_PX if width < 900 else LEAST_PX, what)


async def assert_hit(tab: Tab, least: int, state: str) -> None:
    """Every button and field that can be seen is large enough."""
    small = await tab.page.evaluate(
        """least => [...document.querySelectorAll('button, select, summary, input:not([type=checkbox]), [role=tab]')]
          .filter((each) => each.checkVisibility({ visibilityProperty: true }))
          .map((each) => [each, each.getBoundingClientRect()])
          .filter(([, { width, height }]) => Math.min(width, height) < least)
          .map(([each, { width, height }]) => `${each.outerHTML.slice(0, 90)} ${width} x ${height}`)""",
        least,
    )
    assert not small, f"{state}: smaller than {least} px: {small}"


async def test_every_state_is_accessible(antiphon, media, browser, new_session):
    media.path(PLAYING)
    session = new_session()
    async with tab_in(browser, f"{antiphon.router.url}/?session={session}", before=AXE_SCRIPT) as tab:
        page = tab.page

        async def check(state: str) -> None:
            await assert_accessible_in(WINDOWS, tab, state)

        await expect(page.locator("#library .row").first).to_be_visible()
        await check("empty")
        await tab.play(PLAYING.url)
        await tab.wait_for_tone(440)
        await check("playing")
        long = "Quite a long title, and one that no phone has room for " * 3
        await tab.send(
            type="queue_add",
            tracks=[
                {"url": "media:gone.mp3", "title": long, "artist": long, "duration_ms": 3_600_000},
                {"url": "media:a folder/of/mine.flac"},
                {"url": "https://example.org/x", "artwork": "https://example.org/not-there.jpg", "title": "A B"},
            ],
        )
        await expect(page.locator("#queue .row")).to_have_count(3)
        await page.get_by_text("Options").click()
        await check("with a queue")
        async for _ in tab.windows():
            await tab.assert_fits(".top *, .stage *, .dock *, .shelves *")
        await page.get_by_role("button", name="Remove A B from the queue").click()
        await expect(tab.button("Undo")).to_be_visible()
        await check("after a removal")
        await page.locator("#queue .row-button").first.click()
        await expect(page.locator(".toast.error").first).to_be_visible()
        await check("after an error")
        await page.get_by_role("tab", name="History").click()
        await expect(page.locator("#history .row").first).to_be_visible()
        await check("history")
        # A phone has no keys, and is shown none.
        await expect(page.locator("#help-open")).to_be_hidden()
        for opener, dialog, windows in (("#why-open", "#why", WINDOWS), ("#help-open", "#help", WIDE)):
            await page.set_viewport_size({"width": windows[0][0][0], "height": windows[0][0][1]})
            await page.locator(opener).click()
            await expect(page.locator(dialog)).to_be_visible()
            await assert_accessible_in(windows, tab, f"with {dialog}")
            async for _ in tab.windows({size for size, _ in windows}):
                await tab.assert_fits(f"{dialog} *")
            await page.keyboard.press("Escape")
        await request("DELETE", f"{antiphon.router.url}/api/v1/sessions/{session}/queue")


@pytest.mark.parametrize(("size", "scheme"), [WINDOWS[0], WINDOWS[3]], ids=["wide-light", "small-phone-dark"])
async def test_signing_in_and_listening_are_accessible(guarded, mint, browser, new_session, size, scheme):
    view = {"width": size[0], "height": size[1]}
    context = await browser.new_context(viewport=view, color_scheme=scheme, **STILL)
    await context.add_init_script(AXE_SCRIPT)
    tab = Tab(await context.new_page())
    await tab.page.goto(f"{guarded.router.url}/?session={new_session()}", wait_until="domcontentloaded")
    await expect(tab.page.get_by_role("dialog", name="Sign in")).to_be_visible()
    await assert_accessible(tab, "signing in")
    await tab.page.get_by_label("Token", exact=True).fill("wrong")
    await tab.page.keyboard.press("Enter")
    await expect(tab.page.get_by_role("alert")).to_contain_text("does not accept")
    await assert_accessible(tab, "after a wrong token")
    await tab.page.get_by_label("Token", exact=True).fill(mint.token(scope="listen"))
    await tab.page.keyboard.press("Enter")
    await expect(tab.page.locator("#listen-only")).to_be_visible()
    await assert_accessible(tab, "listening only")
    await tab.assert_fits(".top *, .stage *, .dock *, .shelves *, .banner *")
    await context.close()


async def test_the_page_holds_at_200_percent(antiphon, media, browser):
    """A window of 1280 px at 200 % is one of 640 px with twice the pixels."""
    media.path(PLAYING)
    half = {"width": 640, "height": 400}
    async with tab_in(browser, antiphon.router.url + "/", viewport=half, device_scale_factor=2) as tab:
        await tab.play(PLAYING.url)
        await tab.send(type="queue_add", url=PLAYING.url)
        await tab.assert_fits(".top *, .stage *, .dock *, .shelves *")
        # What is fixed to the window leaves room for what is not, and covers nothing that has the focus.
        dock = await tab.page.locator(".dock").bounding_box()
        assert dock["height"] < half["height"] * 0.6, dock
        await tab.page.locator("#library .row-button").last.focus()
        focused = await tab.page.locator("#library .row-button").last.bounding_box()
        assert focused["y"] + focused["height"] <= dock["y"], (focused, dock)
        await tab.button("Stop").click()


async def test_motion_is_reduced_where_it_is_asked_for(antiphon, browser):
    async with tab_in(browser, antiphon.router.url + "/", reduced_motion="reduce") as tab:
        moving = await tab.page.evaluate("() => document.getAnimations().length")
        assert moving == 0
        durations = await tab.page.evaluate(
            "() => [...document.querySelectorAll('*')].map((each) => getComputedStyle(each).transitionDuration)"
        )
        assert set(durations) <= {"0s"}, set(durations)


async def test_the_keyboard_goes_through_the_page_in_order(antiphon, media, browser):
    """And wherever it is can be seen."""
    media.path(PLAYING)
    async with tab_in(browser, antiphon.router.url + "/") as tab:
        await tab.play(PLAYING.url)
        await tab.send(type="queue_add", url=PLAYING.url)
        await expect(tab.page.locator("#queue .row")).to_have_count(1)
        seen = []
        for _ in range(22):
            await tab.page.keyboard.press("Tab")
            name, outline = await tab.page.evaluate(
                """() => { const at = document.activeElement;
                  return [at.id || at.className, getComputedStyle(at).outlineStyle] }"""
            )
            assert outline != "none", f"the focus on {name} cannot be seen"
            seen.append(name)
        order = ["help-open", "share", "seek", "mute", "loop", "previous", "play-pause", "skip", "stop", "volume"]
        order += ["why-open", "source-url", "source-play", "source-queue", "tab-next", "queue-clear", "handle"]
        places = [seen.index(name) for name in order if name != "previous"]
        assert places == sorted(places), seen
        await tab.button("Stop").click()


async def test_a_repositorys_page_is_accessible(antiphon, browser, new_session):
    url, repository = antiphon.router.url, new_session()
    async with repository_tab(browser, url, repository, before=AXE_SCRIPT) as tab:

        async def check(state: str) -> None:
            await assert_accessible_in(WINDOWS, tab, state)

        await expect(tab.page.locator("#phase")).to_have_text("Nothing has happened yet")
        await check("nothing has happened")
        await tab.try_it("Failing check")
        await tab.wait_for_piece(1)
        await check("sounding")
        await happen(url, repository, "release", title="A long title, " * 12, outcome="success")
        # It is listed once it sounds, after the first.
        await expect(tab.page.locator("#events .event-row")).to_have_count(2)
        for panel in ("Events", "Try it", "Connect"):
            await tab.page.get_by_role("tab", name=panel).click()
            await check(panel)
        await tab.button("Percussion").click()
        await expect(tab.button("Percussion")).to_have_attribute("aria-pressed", "false")
        await tab.button("Replay the week").click()
        await expect(tab.page.locator("#week")).to_be_visible()
        await check("replaying, a voice silenced")
        await tab.button("Stop the replay").click()
        # Nothing moves but what is told to.
        assert await tab.page.evaluate("() => document.getAnimations().length") == 0
        await tab.page.get_by_role("switch", name="Without a session").check()
        await tab.page.wait_for_function("() => window.antiphon?.stats().player === 'stream'")
        await expect(tab.page.locator("#events .event-row")).to_have_count(2)
        await check("without a session")
        async for _ in tab.windows():
            await tab.assert_fits(".top *, .stage *, .dock *, .statistics *, .shelves *")
    context = await browser.new_context(**STILL)
    await context.add_init_script(AXE_SCRIPT)
    tab = RepositoryTab(await context.new_page())
    await tab.page.goto(f"{url}/repository.html", wait_until="domcontentloaded")
    await expect(tab.page.locator("#repositories .row").first).to_be_visible()
    await assert_accessible_in(WINDOWS, tab, "all repositories")
    async for _ in tab.windows():
        await tab.assert_fits(".top *, .stage *, .shelves *")
    await context.close()


async def test_the_keyboard_goes_through_a_repositorys_page(antiphon, browser, new_session):
    """In order, and to be seen; the arrow keys open the tabs."""
    url, repository = antiphon.router.url, new_session()
    await happen(url, repository)
    async with repository_tab(browser, url, repository) as tab:
        await expect(tab.page.locator("#events .event-row")).to_have_count(1)
        seen = []
        for _ in range(14):
            await tab.page.keyboard.press("Tab")
            name, outline = await tab.page.evaluate(
                """() => { const at = document.activeElement;
                  return [at.id || at.dataset.role || at.className, getComputedStyle(at).outlineStyle] }"""
            )
            assert outline != "none", f"the focus on {name} cannot be seen, after {seen}"
            seen.append(name)
        order = ["all-repositories", "volume", "play-pause", "replay", "without-session", "melody", "bed", "tab-events"]
        places = [seen.index(name) for name in order]
        assert places == sorted(places), seen
        await tab.page.locator("#tab-events").focus()
        await tab.page.keyboard.press("ArrowRight")
        await expect(tab.page.locator("#panel-try")).to_be_visible()
        await tab.page.keyboard.press("ArrowRight")
        await tab.page.keyboard.press("ArrowRight")
        await expect(tab.page.locator("#panel-events")).to_be_visible()
