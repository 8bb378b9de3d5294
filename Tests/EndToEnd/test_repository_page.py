"""The page of a repository in headless Chromium: what happens in it is heard, and seen as it is heard."""

import asyncio
import re
from contextlib import asynccontextmanager

import numpy as np
import pytest
from playwright.async_api import expect

from analysis import tone_level_db
from client import bearer
from relay import relay
from repository_page import VOICES, RepositoryTab, happen, page_url, piece, repository_tab
from signals import RATE
from tab import STILL, tab_in

#: What a stranger may write into a commit message, a name, or anything else.
EVIL = '<img src=x onerror="document.title=1">'

SECONDS = 5
WINDOW_MS = 180


@pytest.fixture
def repository(new_session):
    """The ID of a repository in which nothing has happened."""
    return f"repository-{new_session()}"


@asynccontextmanager
async def overview(browser, url: str):
    """The page without a session, which is why no `Tab` waits for it."""
    context = await browser.new_context(**STILL)
    try:
        page = await context.new_page()
        await page.goto(url, wait_until="domcontentloaded")
        await expect(page.locator("#overview")).to_be_visible()
        yield page
    finally:
        await context.close()


def pitch_hertz(pitch: int) -> float:
    return 440 * 2 ** ((pitch - 69) / 12)


def onsets_db(music: dict, position_ms: float, samples: np.ndarray, begin_ms: float) -> list[float]:
    """How much louder each note is after it begins than before, at its own pitch, where nothing of the
    same pitch sounded before."""
    found = []
    voices, notes = music["voices"], music["notes"]
    tones = [note for note in notes if voices[note[0]]["role"] != "percussion"]
    for _, start, length, pitch, _ in tones:
        at = round((position_ms + start - begin_ms) * RATE / 1_000)
        reach = round(WINDOW_MS * RATE / 1_000)
        # The reverberation of the note before, and the overtones of lower ones, would be taken for it.
        masked = any(
            (pitch - other[3]) in (0, 12, 19, 24) and other[1] < start < other[1] + other[2] + 1_500 for other in tones
        )
        if masked or length < WINDOW_MS or at < reach or at + reach > len(samples):
            continue
        before, after = samples[at - reach : at], samples[at : at + reach]
        frequency = pitch_hertz(pitch)
        found.append(tone_level_db(after, frequency) - max(tone_level_db(before, frequency), -70))
    return found


async def test_an_event_is_heard_and_seen_as_it_is_heard(antiphon, browser, repository):
    async with repository_tab(browser, antiphon.router.url, repository, reduced_motion="no-preference") as tab:
        page = tab.page
        await expect(page.locator("#phase")).to_have_text("Nothing has happened yet")
        await expect(page.locator("#events-note")).to_contain_text("Nothing has happened yet")
        # Where nothing has happened the page offers to make something happen.
        await expect(page.get_by_role("tab", name="Try it")).to_have_attribute("aria-selected", "true")
        await tab.try_it("Push")
        begun = await tab.wait_for_piece(1)
        assert begun["positionMs"] is not None, begun
        await expect(page.locator("#phase")).to_have_text("Sounding now")
        dark = await tab.lit_pixels()
        music = await piece(antiphon.router.url, repository, 1)

        # Said to those who do not see it.
        said = await page.locator("#announcer").inner_text()
        assert re.fullmatch(r"push by octocat: .+, [A-G][♭♯]? [a-z ]+, \d+ BPM", said.strip()), said
        # And shown: what, by whom, when.
        row = page.locator("#events .event-row")
        await page.get_by_role("tab", name="Events").click()
        await expect(row).to_have_count(1)
        await expect(row).to_have_class(re.compile("is-playing"))
        await expect(row).to_contain_text(music["event"]["title"])
        await expect(row).to_contain_text("octocat pushed")
        await expect(row.locator("time")).to_have_text("just now")

        await tab.wait_for_piece(1, SECONDS * 1_000)
        assert await tab.lit_pixels() > dark + 200, "no star was lit"
        now = (await tab.heard())[0]
        expected = sum(note[1] <= now["elapsedMs"] for note in music["notes"])
        assert now["lit"] == expected > 0, now

        await tab.wait_for_quiet()
        await expect(page.locator("#phase")).to_have_text("Quiet: only the bed plays")
        await expect(page.locator("#events .is-playing")).to_have_count(0)
        await expect(page.locator("#activity-summary")).to_contain_text("1 event")
        # The bed plays on.
        assert (await tab.state())["state"] == "streaming"
        await tab.assert_no_errors()


async def test_the_notes_sound_where_the_page_lights_them(antiphon, browser, repository):
    url = antiphon.router.url
    async with repository_tab(browser, url, repository) as tab:
        # A machine that stands still breaks the sound, and what was decoded before is gone: then it is the next piece.
        for number in range(1, 5):
            await happen(url, repository)
            begun = await tab.wait_for_piece(number, SECONDS * 1_000)
            samples, begin_ms = await tab.decoded(SECONDS - 1)
            music = await piece(url, repository, number)
            rises = onsets_db(music, begun["positionMs"], samples, begin_ms)
            if len(rises) >= 2:
                break
            await tab.wait_for_quiet()
        assert len(rises) >= 2 and np.median(rises) > 6, f"the notes rise by {np.round(rises, 1)} dB"


async def test_what_sounds_is_marked_in_a_list_that_comes_late(antiphon, browser, repository):
    async with repository_tab(browser, antiphon.router.url, repository) as tab:
        page = tab.page
        await expect(page.locator("#events-note")).to_contain_text("Nothing has happened yet")
        sounds = asyncio.Event()

        async def answer_late(route):
            await sounds.wait()
            await route.continue_()

        await page.route("**/api/v1/repositories/*/events?*", answer_late)
        await happen(antiphon.router.url, repository)
        playing = page.locator("#events .is-playing")
        await expect(playing).to_have_count(1)
        row = await playing.element_handle()
        sounds.set()
        await page.wait_for_function("row => !row.isConnected", arg=row)
        await expect(playing).to_have_count(1)
        await tab.assert_no_errors()


async def test_the_page_draws_where_the_sound_is(antiphon, browser, repository):
    """What it says is heard is the place of the sound, not of the packets."""
    async with repository_tab(browser, antiphon.router.url, repository) as tab:
        await happen(antiphon.router.url, repository)
        await tab.wait_for_piece(1, 500)
        state, (piece,) = await tab.page.evaluate("() => [window.antiphon.state(), window.antiphon.heard()]")
        assert abs(state["positionMs"] - piece["positionMs"] - piece["elapsedMs"]) < 400, (state, piece)


async def test_two_repositories_do_not_mix(antiphon, browser, new_session):
    ids = [f"mix-{new_session()}" for _ in range(2)]
    url = antiphon.router.url
    async with repository_tab(browser, url, ids[0]) as one, repository_tab(browser, url, ids[1]) as other:
        await happen(url, ids[0], title="Only here")
        await one.wait_for_piece(1, 1_500)
        await expect(one.page.locator("#byline")).to_contain_text("Only here")
        assert await other.heard() == []
        await expect(other.page.locator("#events .event-row")).to_have_count(0)
        assert await other.frequency(0.3) is None, "the other repository has sound"
        # And the other way round, while the first still sounds.
        await happen(url, ids[1], "star")
        await other.wait_for_piece(1)
        assert [each["title"] for each in await one.heard()] == ["Only here"]


async def test_voices_are_silenced_for_everyone(antiphon, browser, repository):
    url = antiphon.router.url
    await happen(url, repository)
    async with repository_tab(browser, url, repository) as tab, repository_tab(browser, url, repository) as other:
        await tab.page.wait_for_function("() => window.antiphon.rms() > 1e-3")
        await expect(tab.page.locator("#voices-note")).to_have_text("for everyone who listens")
        for voice in VOICES:
            await tab.button(voice).click()
            await expect(other.button(voice)).to_have_attribute("aria-pressed", "false")
        for each in (tab, other):
            await expect(each.page.locator("#phase")).to_have_text("All voices are silenced")
            await each.page.wait_for_function("() => window.antiphon.rms() < 2e-4")
        # Anyone who comes later is told.
        async with repository_tab(browser, url, repository) as late:
            await expect(late.button("Bed")).to_have_attribute("aria-pressed", "false")
        await other.button("Bed").click()
        await expect(tab.button("Bed")).to_have_attribute("aria-pressed", "true")
        await tab.page.wait_for_function("() => window.antiphon.rms() > 1e-3")
        await tab.assert_no_errors()


async def test_the_week_is_replayed(antiphon, browser, repository):
    url = antiphon.router.url
    for kind in ("push", "star", "release"):
        await happen(url, repository, kind)
    async with repository_tab(browser, url, repository) as tab:
        page = tab.page
        await tab.page.wait_for_function("() => window.antiphon.rms() > 1e-3")
        await tab.button("Replay the week").click()
        await page.wait_for_function("() => window.antiphon.replay()?.elapsedMs > 500")
        await expect(page.locator("#phase")).to_contain_text("The last week: ")
        bar = page.get_by_role("progressbar", name="Replay of the week")
        await expect(bar).to_have_attribute("aria-valuetext", re.compile(r"^\w+day, 0:\d\d of 1:00$"))
        assert await page.locator("#week-days > span").count() in (7, 8)
        # It is heard, or what is seen of it would be silent.
        await page.wait_for_function("() => window.antiphon.replay().rms > 1e-3")
        first = (await page.evaluate("() => window.antiphon.replay()"))["elapsedMs"]
        await page.wait_for_function("first => window.antiphon.replay().elapsedMs > first + 1000", arg=first)
        await tab.button("Stop the replay").click()
        await expect(page.locator("#week")).to_be_hidden()
        assert await page.evaluate("() => window.antiphon.replay()") is None
        await expect(page.locator("#phase")).not_to_contain_text("The last week")
        await tab.assert_no_errors()


async def test_a_week_without_events_is_not_replayed(antiphon, browser, repository):
    async with repository_tab(browser, antiphon.router.url, repository) as tab:
        await tab.button("Replay the week").click()
        await expect(tab.page.locator(".toast")).to_be_visible()
        await expect(tab.button("Replay the week")).to_be_visible()


async def test_the_past_is_listed_page_by_page(antiphon, browser, repository):
    url = antiphon.router.url
    for number in range(25):
        await happen(url, repository, title=f"Change {number}")
    async with repository_tab(browser, url, repository) as tab:
        rows = tab.page.locator("#events .event-row")
        await expect(rows).to_have_count(20)
        await expect(rows.first).to_contain_text("Change 24")
        await expect(tab.page.locator("#events-count")).to_have_text("25")
        await tab.button("Earlier events").click()
        await expect(rows).to_have_count(25)
        await expect(rows.last).to_contain_text("Change 0")
        await expect(tab.page.locator("#events-more")).to_be_hidden()
        assert await tab.focused("#events, #tab-events"), "the keyboard fell out of the list"
        await tab.assert_no_errors()


async def test_a_strangers_words_stay_words(antiphon, browser, repository):
    url = antiphon.router.url
    async with repository_tab(browser, url, repository) as tab:
        await happen(url, repository, title=EVIL, sender="<b>x", branch="<i>")
        await tab.wait_for_piece(1)
        page = tab.page
        await expect(page.locator("#byline")).to_contain_text(EVIL)
        await expect(page.locator("#events")).to_contain_text(EVIL)
        await expect(page.locator("#events")).to_contain_text("<b>x pushed")
        assert await page.locator("img[src=x], main b, main i").count() == 0
        assert await page.title() != "1"
        for link in await page.locator("#events a, #byline a").all():
            assert (await link.get_attribute("href")).startswith("https://"), await link.get_attribute("href")
            assert "noopener" in await link.get_attribute("rel")
        await tab.assert_no_errors()


async def test_nothing_but_the_web_is_linked_to(antiphon, browser):
    async with tab_in(browser, antiphon.router.url + "/") as tab:
        links = await tab.page.evaluate(
            """async (urls) => {
              const { safeLink } = await import('./session/event-texts.js');
              return urls.map(safeLink);
            }""",
            [
                "https://github.com/a/b",
                "javascript:alert(1)",
                "data:text/html,x",
                " JavaScript:alert(1)",
                "file:///etc",
                "x",
                "",
            ],
        )
        assert links == ["https://github.com/a/b"] + [None] * 6


async def test_a_newcomer_hears_something_in_two_clicks(antiphon, browser):
    async with tab_in(browser, antiphon.router.url + "/") as tab:
        await tab.page.get_by_role("link", name="Repositories that sing").click()
        await tab.button("Hear an example").click()
        await tab.page.wait_for_function("() => window.antiphon?.heard?.()[0]?.lit > 0")
        await tab.page.wait_for_function("() => window.antiphon.rms() > 1e-3")
        await expect(tab.page.locator("#title")).to_have_text("octocat/Hello-World")
        assert "id=1296269" in tab.page.url
        # From now on it is listed.
        await tab.page.get_by_role("link", name="Repositories", exact=True).click()
        await expect(tab.page.locator("#repositories .row")).to_contain_text(["octocat/Hello-World"])
        await tab.page.get_by_role("link", name="octocat/Hello-World").click()
        await expect(tab.page.locator("#events .event-row").first).to_contain_text("Say hello to the world")


async def test_how_to_connect_github_is_told(antiphon, browser):
    async with overview(browser, f"{antiphon.router.url}/repository.html") as page:
        address = f"{antiphon.router.url}/webhooks/github"
        await expect(page.get_by_label("Payload URL")).to_have_value(address)
        await expect(page.locator("#connect")).to_contain_text("application/json")
        await expect(page.locator("#connect")).to_contain_text("--github-secret-file")
        # This Router has none.
        await expect(page.locator("#webhook-off")).to_be_visible()


async def test_an_id_that_is_none_is_said_so(antiphon, browser):
    async with overview(browser, page_url(antiphon.router.url, "no%20such%20thing")) as page:
        await expect(page.locator(".toast.error")).to_contain_text("cannot be the name")
        await expect(page.locator("#overview-title")).to_be_visible()


async def test_the_page_comes_back(antiphon, browser, repository):
    """After the engine's death and the Router's."""
    url = antiphon.router.url
    await happen(url, repository, title="Before")
    async with repository_tab(browser, url, repository) as tab:
        page = tab.page
        await page.wait_for_function("() => window.antiphon.rms() > 1e-3")
        antiphon.engine.kill()
        await expect(page.locator("#phase")).to_have_text("The engine is away")
        antiphon.engine.start()
        await page.wait_for_function("() => window.antiphon.rms() > 1e-3")
        antiphon.router.kill()
        await expect(page.locator("#phase")).to_have_text("Reconnecting…")
        antiphon.router.start()
        await expect(page.locator("#link-state")).to_have_text("Connected")
        await happen(url, repository, title="After")
        await tab.wait_for_piece(2)
        await expect(page.locator("#events .event-row")).to_have_count(2)
        await expect(page.locator("#title")).to_have_text("sample/repository")


async def test_a_stopped_station_says_so(antiphon, browser, repository):
    url = antiphon.router.url
    await happen(url, repository)
    async with repository_tab(browser, url, repository) as tab:
        await tab.page.wait_for_function("() => window.antiphon.rms() > 1e-3")
        await tab.send(type="stop")
        await expect(tab.page.locator("#phase")).to_have_text("Silent until something happens")
        await tab.page.wait_for_function("() => window.antiphon.rms() < 1e-4")
        await happen(url, repository, "star")
        await tab.wait_for_piece(2)
        await tab.assert_no_errors()


async def test_listening_here_is_this_devices_own(antiphon, browser, repository):
    url = antiphon.router.url
    await happen(url, repository)
    async with repository_tab(browser, url, repository) as tab, repository_tab(browser, url, repository) as other:
        await tab.button("Stop listening").click()
        await expect(tab.button("Listen")).to_be_visible()
        assert (await other.state())["state"] == "streaming"
        await expect(other.button("Stop listening")).to_be_visible()
        await tab.button("Listen").click()
        await expect(tab.button("Stop listening")).to_be_visible()


async def test_a_listener_without_control_sees_and_hears(guarded, mint, browser, repository):
    url = guarded.router.url
    await happen(url, repository, headers=bearer(mint.token(scope="control")))
    context = await browser.new_context(**STILL)
    tab = RepositoryTab(await context.new_page())
    await tab.page.goto(page_url(url, repository), wait_until="domcontentloaded")
    await expect(tab.page.get_by_role("dialog", name="Sign in")).to_be_visible()
    await tab.page.get_by_label("Token", exact=True).fill(mint.token(repository, "listen"))
    await tab.page.keyboard.press("Enter")
    await tab.page.wait_for_function("() => window.antiphon?.stats().connected")
    await expect(tab.page.locator("#listen-only")).to_be_visible()
    await expect(tab.page.get_by_role("tab", name="Try it")).to_be_hidden()
    for voice in VOICES:
        await expect(tab.button(voice)).to_be_disabled()
    await tab.page.wait_for_function("() => window.antiphon.rms() > 1e-3")
    await expect(tab.page.locator("#events .event-row")).to_have_count(1)
    await happen(url, repository, "star", headers=bearer(mint.token(scope="control")))
    await tab.wait_for_piece(2)
    # The week too is for listeners.
    await tab.button("Replay the week").click()
    await tab.page.wait_for_function("() => window.antiphon.replay()?.rms > 1e-3")
    await tab.assert_no_errors_shown()
    # Another repository is not theirs.
    await tab.page.goto(page_url(url, "another"), wait_until="domcontentloaded")
    await expect(tab.page.get_by_role("dialog", name="Sign in")).to_contain_text("not for the session “another”")
    await context.close()


async def test_a_sample_that_fails_is_explained(antiphon, browser, repository):
    async with repository_tab(browser, antiphon.router.url, repository) as tab:
        await tab.page.get_by_role("tab", name="Try it").click()
        antiphon.router.kill()
        await tab.page.locator("#try-samples").get_by_role("button", name="Star").click()
        await expect(tab.page.locator("#try-result")).to_contain_text("The server does not answer")
        antiphon.router.start()
        await expect(tab.page.locator("#link-state")).to_have_text("Connected")
        await tab.try_it("Star")
        await tab.wait_for_piece(1)


async def test_without_webcodecs_the_page_works(antiphon, browser, repository):
    url = antiphon.router.url
    await happen(url, repository)
    context = await browser.new_context(**STILL)
    await context.add_init_script("delete window.AudioDecoder;")
    tab = await RepositoryTab(await context.new_page()).open(page_url(url, repository))
    assert "WebCodecs" in await tab.page.inner_text("#player-note:visible")
    await tab.page.wait_for_function("() => window.antiphon.rms() > 1e-3")
    await happen(url, repository, "star")
    await tab.wait_for_piece(2)
    await context.close()


async def test_all_of_it_fits(antiphon, browser, repository):
    url = antiphon.router.url
    long = "A commit message that no phone has room for, " * 4
    async with repository_tab(browser, url, repository) as tab:
        name = "an-organisation-with-a-long-name/and-a-repository-with-one"
        await happen(url, repository, "check_run", title=long, outcome="failure", repository=name)
        await tab.wait_for_piece(1)
        for panel in ("Events", "Try it", "Connect"):
            await tab.page.get_by_role("tab", name=panel).click()
            async for _ in tab.windows():
                await tab.assert_fits(".top *, .stage *, .dock *, .shelves *")
        await tab.button("Replay the week").click()
        await expect(tab.page.locator("#week")).to_be_visible()
        async for _ in tab.windows():
            await tab.assert_fits(".dock *")
        await tab.button("Stop the replay").click()


async def test_without_a_session_the_page_is_heard_and_seen(mortal, browser, repository):
    """Behind a proxy that breaks WebSockets."""
    url = mortal.router.url
    await happen(url, repository, "star")
    async with await browser.new_context(**STILL) as context, relay(mortal.router.address) as between:
        between.breaks(b"GET /ws")
        tab = RepositoryTab(await context.new_page())
        page = tab.page
        await page.goto(page_url(between.url, repository), wait_until="domcontentloaded")
        await expect(page.locator("#phase")).to_have_text("Reconnecting…")
        switch = page.get_by_role("switch", name="Without a session")
        await expect(switch).not_to_be_checked()
        await switch.check()
        await page.wait_for_function("() => window.antiphon?.stats().connected")
        await expect(switch).to_be_checked()
        await expect(page.locator("#phase")).to_have_text("Silent until something happens")
        # Voices are the session's.
        await expect(page.locator("#voices")).to_be_hidden()
        await happen(url, repository, title="Over plain HTTP")
        begun = await tab.wait_for_piece(2, 1_500)
        await page.wait_for_function("() => window.antiphon.rms() > 1e-3")
        assert begun["notes"] > 0 and begun["lit"] > 0, begun
        await expect(page.locator("#phase")).to_have_text("Sounding now")
        await expect(page.locator("#place")).to_contain_text("BPM")
        await expect(page.locator("#byline")).to_contain_text("Over plain HTTP")
        await expect(page.locator("#events .event-row")).to_have_count(2)
        # Its own volume and mute are the page's.
        await tab.button("Stop listening").click()
        await expect(tab.button("Listen")).to_be_visible()
        await tab.wait_for_quiet()
        # It comes back.
        mortal.router.kill()
        await expect(page.locator("#link-state")).to_have_text("Reconnecting…")
        mortal.router.start()
        await expect(page.locator("#link-state")).to_have_text("Connected")
        await tab.try_it("Star")
        await tab.wait_for_piece(3)
        await tab.assert_no_errors_shown()
        assert not [each for each in tab.complaints if each.startswith("exception")], tab.complaints
    async with repository_tab(browser, url, f"{repository}&player=stream") as tab:
        await tab.page.get_by_role("switch", name="Without a session").uncheck()
        await tab.page.wait_for_function("() => window.antiphon?.stats().player === 'webcodecs'")
        await expect(tab.page.locator("#voices")).to_be_visible()


async def test_without_a_session_a_token_is_needed_too(guarded, mint, browser, repository):
    url = guarded.router.url
    control = bearer(mint.token(scope="control"))
    context = await browser.new_context(**STILL)
    tab = RepositoryTab(await context.new_page())
    await tab.page.goto(page_url(url, f"{repository}&player=stream"), wait_until="domcontentloaded")
    await tab.page.get_by_label("Token", exact=True).fill(mint.token(repository, "listen", seconds=4))
    await tab.page.keyboard.press("Enter")
    await tab.page.wait_for_function("() => window.antiphon?.stats().connected")
    await happen(url, repository, "star", headers=control)
    await tab.wait_for_piece(1)
    # It expires, and the page goes on with another.
    await expect(tab.page.get_by_role("dialog", name="Sign in")).to_contain_text("expired")
    await happen(url, repository, "star", headers=control)
    await tab.page.get_by_label("Token", exact=True).fill(mint.token(repository, "listen"))
    await tab.page.keyboard.press("Enter")
    await tab.wait_for_piece(2)
    await context.close()
