"""The playground on a Router that asks for tokens: signing in, what a token allows, and one that expires."""

import pytest
from playwright.async_api import Page, expect

from client import bearer, request
from media import FLAC, tone_clip
from tab import STILL, Tab
from tagged import make_picture, make_tagged

PLAIN = tone_clip(660, 90, FLAC)


@pytest.fixture
async def page(browser):
    context = await browser.new_context(**STILL)
    yield await context.new_page()
    await context.close()


async def sign_in(page: Page, token: str) -> None:
    await page.get_by_label("Token", exact=True).fill(token)
    await page.get_by_role("button", name="Sign in").click()


async def enter(page: Page, url: str, token: str) -> Tab:
    """Opens the page, signs in, and is connected."""
    tab = Tab(page)
    await page.goto(url, wait_until="domcontentloaded")
    await sign_in(page, token)
    await page.wait_for_function("() => window.antiphon?.stats().connected")
    return tab


@pytest.mark.parametrize("player", ["webcodecs", "audio"])
async def test_a_token_lets_a_person_in(guarded, mint, media, tmp_path, page, player):
    url = make_tagged(media, "guarded.m4a", {"title": "O vis"}, cover=make_picture(tmp_path), seconds=60)
    seen: list[str] = []
    page.on("request", lambda asked: seen.append(asked.url))
    page.on("websocket", lambda socket: seen.append(socket.url))
    await page.goto(f"{guarded.router.url}/?player={player}", wait_until="domcontentloaded")
    dialog = page.get_by_role("dialog", name="Sign in")
    await expect(dialog).to_be_visible()
    # There is nothing behind it yet.
    await page.keyboard.press("Escape")
    await expect(dialog).to_be_visible()
    await sign_in(page, mint.token(key="another server's secret, of forty characters"))
    await expect(dialog.get_by_role("alert")).to_contain_text("does not accept this token")
    await expect(dialog).to_be_visible()

    token = mint.token(scope="control")
    await sign_in(page, token)
    await page.wait_for_function("() => window.antiphon?.stats().connected")
    tab = Tab(page)
    await expect(dialog).to_be_hidden()
    await expect(page.locator("#listen-only")).to_be_hidden()
    await tab.play(url)
    await tab.wait_for_tone(440)
    await expect(page.locator("#title")).to_have_text("O vis")
    # The cover too is the server's, and asked for with the token.
    await expect(page.locator("#cover .artwork.has-picture img")).to_be_visible()
    await expect(page.locator("#library .row").first).to_be_visible()
    await tab.send(type="queue_add", url=url)
    await expect(page.locator("#queue .row")).to_have_count(1)
    assert not [address for address in seen if token in address], "the token stands in an address"

    # It is kept as long as the tab is.
    await page.reload(wait_until="domcontentloaded")
    await page.wait_for_function("() => window.antiphon?.stats().connected")
    await tab.wait_for_tone(440)
    assert await page.evaluate("() => localStorage.getItem('antiphon.token')") is None
    await tab.send(type="stop")
    await tab.assert_no_errors_shown()


async def test_a_token_is_kept_on_the_device_only_where_that_is_asked_for(guarded, mint, page):
    await page.goto(guarded.router.url, wait_until="domcontentloaded")
    await page.get_by_label("Stay signed in on this device").check()
    await sign_in(page, mint.token(scope="control"))
    await page.wait_for_function("() => window.antiphon?.stats().connected")
    other = await page.context.new_page()
    await other.goto(guarded.router.url, wait_until="domcontentloaded")
    await other.wait_for_function("() => window.antiphon?.stats().connected")


async def test_a_listener_hears_and_is_told_why_nothing_can_be_done(guarded, mint, media, page, new_session):
    media.path(PLAIN)
    session = new_session()
    base, control = f"{guarded.router.url}/api/v1/sessions/{session}", bearer(mint.token(scope="control"))
    await request("POST", f"{base}/play", {"url": PLAIN.url}, headers=control)
    await request("POST", f"{base}/queue", {"url": PLAIN.url, "title": "Gloria"}, headers=control)
    tab = await enter(page, f"{guarded.router.url}/?session={session}", mint.token(scope="listen"))
    await tab.wait_for_tone(660)
    await expect(page.locator("#listen-only")).to_contain_text("You can listen here, and not control")
    for control_id in ("play-pause", "stop", "skip", "previous", "loop", "seek", "volume"):
        await expect(page.locator(f"#{control_id}")).to_be_disabled()
    await expect(page.locator("#source")).to_be_hidden()
    await expect(page.locator("#queue .row-name")).to_have_text("Gloria")
    assert await page.locator("#queue button").count() == 0
    await page.locator("h1").click()
    for key in ("Space", "l", "s", "Shift+ArrowRight", "ArrowRight"):
        await page.keyboard.press(key)
    # What is this device's own goes on working.
    await page.keyboard.press("m")
    await expect(page.locator("#mute")).to_have_attribute("aria-pressed", "true")
    assert (await tab.state())["state"] == "streaming"
    await tab.assert_no_errors_shown()
    # Escape goes back to listening; another token may do more.
    await tab.button("Use another token").click()
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await tab.button("Use another token").click()
    await sign_in(page, mint.token(scope="control"))
    await page.wait_for_function("() => window.antiphon?.stats().connected")
    await expect(page.locator("#play-pause")).to_be_enabled()
    await tab.button("Stop").click()
    await tab.phase("Last played")


async def test_a_token_for_certain_sessions_leads_there(guarded, mint, page):
    tab = await enter(page, guarded.router.url, mint.token("guild-7", "control"))
    assert await tab.session() == "guild-7"
    await page.evaluate("() => sessionStorage.clear()")
    tab = await enter(page, guarded.router.url, mint.token("team-*", "control"))
    session = await tab.session()
    assert session.startswith("team-") and 6 <= len(session) <= 24, session
    # A link to another session needs another token.
    await page.goto(f"{guarded.router.url}/?session=guild-7", wait_until="domcontentloaded")
    dialog = page.get_by_role("dialog", name="Sign in")
    await expect(dialog).to_contain_text("not for the session “guild-7”")
    await sign_in(page, mint.token("guild-*", "control"))
    await page.wait_for_function("() => window.antiphon?.stats().connected")
    assert await tab.session() == "guild-7"


async def test_a_token_that_expires_is_renewed_without_a_reload(guarded, mint, media, page):
    media.path(PLAIN)
    tab = await enter(page, guarded.router.url, mint.token(scope="control", seconds=8))
    await page.evaluate("() => { window.hasStayed = true; }")
    await tab.play(PLAIN.url)
    await tab.wait_for_tone(660)
    dialog = page.get_by_role("dialog", name="Sign in")
    await expect(dialog).to_contain_text("has expired", timeout=20_000)
    await sign_in(page, mint.token(scope="control"))
    await expect(dialog).to_be_hidden()
    await expect(page.locator("#link-state")).to_have_text("Connected")
    await tab.wait_for_tone(660)
    await tab.button("Stop").click()
    await tab.phase("Last played")
    assert await page.evaluate("() => window.hasStayed"), "the page was reloaded"
