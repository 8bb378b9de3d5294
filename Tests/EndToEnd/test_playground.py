"""What the playground shows of a track, finds for a person, and says when it is silent."""

import re

import pytest
from playwright.async_api import expect

from client import listen, request
from media import FLAC, tone_clip
from processes import Antiphon
from tab import Tab, tab_in
from tagged import make_picture, make_tagged

PLAIN = tone_clip(660, 40, FLAC)
CHAPTERS = [(0, "Responsorium"), (20_000, "Versus"), (40_000, "Gloria Patri")]


@pytest.fixture(scope="module")
def vespers(media, tmp_path_factory) -> str:
    """A minute with everything a file can say of itself."""
    tags = {"title": "O vis æternitatis", "artist": "Hildegard", "album": "Symphonia"}
    return make_tagged(
        media, "vespers.m4a", tags, cover=make_picture(tmp_path_factory.mktemp("cover")), chapters=CHAPTERS, seconds=60
    )


async def assert_cover(tab: Tab) -> None:
    """The picture is loaded and can be seen."""
    await expect(tab.page.locator("#cover .artwork.has-picture img")).to_be_visible()
    width = await tab.page.evaluate("() => document.querySelector('#cover img').naturalWidth")
    assert width == 320, f"the cover is {width} pixels wide"


async def test_a_track_is_shown_with_what_it_says_of_itself(antiphon, vespers, media, browser):
    media.path(PLAIN)
    async with tab_in(browser, antiphon.router.url + "/") as tab:
        await tab.play(vespers)
        await expect(tab.page.locator("#title")).to_have_text("O vis æternitatis")
        await expect(tab.page.locator("#byline")).to_have_text("Hildegard · Symphonia")
        await expect(tab.page.locator("#live")).to_be_hidden()
        await assert_cover(tab)
        assert "Hildegard – O vis æternitatis" in await tab.page.title()

        # Another tab that comes later sees the same.
        async with tab_in(browser, f"{antiphon.router.url}/?session={await tab.session()}") as other:
            await expect(other.page.locator("#byline")).to_have_text("Hildegard · Symphonia")
            await assert_cover(other)
            await expect(other.page.locator("#chapters .chapter")).to_have_count(3)

        # Something without a cover has a mark in its place, and nothing of what was before.
        await tab.play(PLAIN.url)
        await expect(tab.page.locator("#byline")).to_be_empty()
        await expect(tab.page.locator("#cover .artwork")).to_be_visible()
        await expect(tab.page.locator("#cover img")).to_have_count(0)
        await expect(tab.page.locator("#chapters-shelf")).to_be_hidden()
        await tab.button("Stop").click()
        await tab.assert_no_errors()


async def test_chapters_are_marked_and_gone_to(antiphon, vespers, browser):
    async with tab_in(browser, antiphon.router.url + "/") as tab:
        await tab.play(vespers)
        await tab.phase("Now playing")
        await expect(tab.page.locator("#chapter-marks span")).to_have_count(2)
        current = tab.page.locator("#chapters [aria-current] .row-name")
        await expect(current).to_have_text("Responsorium")
        await tab.page.get_by_role("button", name="Versus").click()
        await tab.page.wait_for_function("() => window.antiphon.state().positionMs >= 20000")
        assert (await tab.state())["positionMs"] < 25_000
        await expect(current).to_have_text("Versus")
        await expect(tab.page.locator("#seek")).to_have_attribute("aria-valuetext", re.compile("Versus"))
        await tab.button("Stop").click()
        await expect(tab.page.locator("#chapters-shelf")).to_be_hidden()
        await tab.assert_no_errors()


async def test_a_strangers_words_stay_words(antiphon, media, browser):
    evil = '<img src=x onerror="document.title=1">'
    chapters = [(0, evil), (5_000, "b")]
    url = make_tagged(media, "evil.mkv", {"title": evil, "artist": evil, "album": evil}, chapters=chapters)
    async with tab_in(browser, antiphon.router.url + "/") as tab:
        await tab.play(url)
        await expect(tab.page.locator("#title")).to_have_text(evil)
        await expect(tab.page.locator("#byline")).to_have_text(f"{evil} · {evil}")
        await expect(tab.page.locator("#chapters .row-name").first).to_have_text(evil)
        assert await tab.page.locator("img[src=x]").count() == 0
        await tab.button("Stop").click()
        await tab.assert_no_errors()


async def test_the_field_takes_links_and_words(antiphon, media, browser):
    media.path(PLAIN)
    async with tab_in(browser, antiphon.router.url + "/") as tab:
        field, results = tab.page.locator("#source-url"), tab.page.locator("#results-shelf")
        await field.fill(PLAIN.url)
        await tab.button("Add to queue").click()
        await tab.wait_for_tone(660)
        await expect(field).to_have_value("")

        await field.fill("two words")
        await expect(tab.button("Search")).to_be_visible()
        await expect(tab.button("Add to queue")).to_be_hidden()
        await field.press("Enter")
        await expect(results).to_be_visible()
        # Results, or why there are none; nothing hangs, and what plays is not disturbed.
        await expect(tab.page.locator("#results .row, #results-note:visible").first).to_be_visible(timeout=90_000)
        await expect(tab.page.locator("#results")).to_have_attribute("aria-busy", "false")
        assert await tab.page.locator(".toast.error").count() == 0
        assert (await tab.state())["state"] == "streaming"
        await tab.button("Close").click()
        await expect(results).to_be_hidden()
        assert await tab.focused("#source"), "the keyboard fell out of the field"

        # A link that is no such thing is refused in words.
        await field.fill("ftp://example.org/a.mp3")
        await field.press("Enter")
        await expect(tab.page.locator(".toast.error")).to_contain_text("ftp")
        await expect(field).to_have_value("ftp://example.org/a.mp3")


async def test_the_quality_is_the_sessions(antiphon, media, browser):
    """Chosen in one tab, shown in the other and by the server, and asked for by what is played then."""
    media.path(PLAIN)
    url = f"{antiphon.router.url}/?session=quality"
    async with tab_in(browser, url) as tab, tab_in(browser, url) as other:
        await tab.page.get_by_text("Options").click()
        await tab.page.get_by_label("Quality").select_option("64")
        await expect(other.page.locator("#quality")).to_have_value("64")
        queue = (await request("GET", f"{antiphon.router.url}/api/v1/sessions/quality/queue")).body
        assert queue["bitrate_kbps"] == 64, queue
        await tab.page.locator("#source-url").fill(PLAIN.url)
        await tab.page.locator("#source-url").press("Enter")
        await tab.wait_for_tone(660)
        session = (await request("GET", f"{antiphon.router.url}/api/v1/sessions/quality")).body
        assert session["bitrate_kbps"] == 64, session
        # Somebody's choice that is none of those offered.
        await other.send(type="quality", bitrate_kbps=77)
        await expect(tab.page.locator("#quality")).to_have_value("77")
        await tab.button("Stop").click()
        await tab.assert_no_errors()


async def test_a_track_that_was_paused_for_too_long_goes_on_where_it_was(tmp_path, media, browser):
    media.path(PLAIN)
    with Antiphon(tmp_path, media.root, engine_options=("--idle-timeout-seconds", "1")) as antiphon:
        async with (
            tab_in(browser, antiphon.router.url + "/") as tab,
            listen(antiphon.router.url, await tab.session()) as listener,
        ):
            await tab.play(PLAIN.url)
            await listener.wait_packets(60)
            await tab.page.locator("#play-pause").click()
            ended = await listener.wait_event("ended")
            assert ended["reason"] == "cleanup" and ended["position_ms"] >= 1_000, ended
            since = listener.mark()
            # The page hears of it by a connection of its own.
            await tab.page.wait_for_function("() => window.antiphon.state().continueMs > 0")
            await expect(tab.page.locator("#play-pause")).to_have_attribute("aria-label", "Play")
            await tab.page.locator("#play-pause").click()
            playing = await listener.wait_event("playing", since)
            assert playing["position_ms"] == ended["position_ms"], (ended, playing)
            await tab.wait_for_tone(660)


# --- Why is it silent? ---


def check(tab: Tab, name: str):
    """One line of what the page finds in itself."""
    return tab.page.locator("#why-checks > div", has=tab.page.locator("dt", has_text=name)).first


async def test_the_page_says_why_it_is_silent(antiphon, media, browser):
    media.path(PLAIN)
    async with tab_in(browser, antiphon.router.url + "/") as tab:
        opened, verdict = tab.button("Why is it silent?"), tab.page.locator("#why-verdict")
        await opened.click()
        await expect(verdict).to_contain_text("Nothing is playing")
        await expect(tab.page.get_by_role("dialog", name="Why is it silent?")).to_be_visible()
        await tab.page.keyboard.press("Escape")
        await expect(tab.page.locator("#why")).to_be_hidden()

        await tab.play(PLAIN.url)
        await tab.wait_for_tone(660)
        await opened.click()
        await expect(verdict).to_contain_text("is not silent")
        await expect(check(tab, "Packets").locator("dd")).to_contain_text("in the last second")
        await expect(check(tab, "Session")).to_contain_text("this tab’s own")
        await tab.button("Close").click()

        await tab.button("Mute here").click()
        await opened.click()
        await expect(verdict).to_contain_text("muted")
        await expect(check(tab, "Mute")).to_have_class("is-bad")
        await tab.button("Unmute").click()
        await expect(verdict).to_contain_text("is not silent")
        await tab.page.keyboard.press("Escape")

        await tab.page.locator("#volume").press("Home")
        await tab.wait_for_level_below(1e-4)
        await opened.click()
        await expect(verdict).to_contain_text("volume is at 0 %")
        await tab.page.keyboard.press("Escape")

        await tab.button("Pause").click()
        await opened.click()
        await expect(verdict).to_contain_text("paused")
        await tab.page.keyboard.press("Escape")
        await tab.button("Stop").click()


async def test_the_page_says_that_the_server_is_gone(antiphon, browser):
    async with tab_in(browser, antiphon.router.url + "/") as tab:
        verdict = tab.page.locator("#why-verdict")
        await tab.button("Why is it silent?").click()
        antiphon.engine.kill()
        await expect(verdict).to_contain_text("engine is away")
        antiphon.router.kill()
        await expect(verdict).to_contain_text("no connection")
        await expect(check(tab, "Connection")).to_have_class("is-bad")
        await expect(tab.page.locator("#why-engine")).to_contain_text("does not answer")
        antiphon.engine.start()
        antiphon.router.start()
        await expect(verdict).to_contain_text("Nothing is playing")


async def test_the_engine_says_what_happened_on_the_way(antiphon, media, browser):
    media.path(PLAIN)
    async with tab_in(browser, antiphon.router.url + "/") as tab:
        await tab.play(PLAIN.url)
        await tab.wait_for_tone(660)
        await tab.button("Why is it silent?").click()
        await expect(tab.page.locator("#why-engine .why-summary")).not_to_be_empty()
        rows = tab.page.locator(".waterfall tr")
        for name in ("Waited for a worker", "Opened the source", "Looked what it is", "Made the first sound"):
            row = rows.filter(has_text=name)
            await expect(row.locator(".time")).to_have_text(r := await row.locator(".time").inner_text())
            assert r.endswith(" ms") or r.endswith(" s"), f"{name} took {r!r}"
        await expect(tab.page.locator(".why-figures")).to_contain_text("Underruns")
        await tab.page.keyboard.press("Escape")

        await tab.page.locator("#source-url").fill("media:not there.flac")
        await tab.page.locator("#source-url").press("Enter")
        await tab.phase("Not played")
        await tab.button("Why is it silent?").click()
        await expect(tab.page.locator(".why-error")).to_contain_text("not there.flac")


#: What is different from a page that sounds → the words of its sentence, and the checks that are bad.
SILENCES = [
    ({}, "is not silent", set()),
    ({"connected": False, "muted": True}, "no connection", {"Connection", "Mute"}),
    ({"engine": {"connected": False}}, "engine is away", set()),
    ({"state": "idle", "packetsPerSecond": 0, "bufferedMs": 0, "rms": 0}, "Nothing is playing", set()),
    ({"state": "extracting"}, "being opened", set()),
    ({"state": "paused", "muted": True}, "paused", {"Mute"}),
    ({"isAllowed": False, "rms": 0}, "until you click", {"Sound", "Loudness"}),
    ({"muted": True}, "muted", {"Mute"}),
    ({"volume": 0, "rms": 0}, "0 %", {"Session volume", "Loudness"}),
    ({"buffering": True, "bufferedMs": 0, "rms": 0}, "waits for it", {"Buffer", "Loudness"}),
    ({"packetsPerSecond": 0, "rms": 0}, "no sound reaches", {"Packets", "Loudness"}),
    ({"packetsPerSecond": None}, "is not silent", set()),
    ({"rms": 0}, "is silence", {"Loudness"}),
]


async def test_every_silence_has_its_sentence(antiphon, browser):
    sounding = {
        "connected": True,
        "engine": {"connected": True},
        "state": "streaming",
        "buffering": False,
        "isAllowed": True,
        "muted": False,
        "volume": 1,
        "packetsPerSecond": 50,
        "bufferedMs": 60,
        "rms": 0.1,
        "player": "webcodecs",
        "session": {"id": "a", "shared": True},
    }
    async with tab_in(browser, antiphon.router.url + "/") as tab:
        for change, words, bad in SILENCES:
            found = await tab.page.evaluate(
                "async facts => (await import('./session/silence.js')).examineSilence(facts)", sounding | change
            )
            assert words in found["verdict"], (change, found)
            assert {each["name"] for each in found["checks"] if each["isBad"]} == bad, change


async def test_all_of_it_fits(antiphon, vespers, browser):
    async with tab_in(browser, antiphon.router.url + "/") as tab:
        await tab.page.get_by_text("Options").click()
        await tab.play(vespers)
        await assert_cover(tab)
        async for _ in tab.windows():
            await tab.assert_fits(".top *, .stage *, .dock *, .shelves *")
        await tab.button("Why is it silent?").click()
        await expect(check(tab, "Packets").locator("dd")).to_contain_text("in the last second")
        async for _ in tab.windows():
            await tab.assert_fits(".why, .why *")
        await tab.page.keyboard.press("Escape")
        await tab.button("Stop").click()
        await tab.assert_no_errors()


async def test_somebody_elses_play_is_shown_without_being_asked_about(antiphon, vespers, browser):
    async with (
        tab_in(browser, f"{antiphon.router.url}/?session=guest") as tab,
        listen(antiphon.router.url, "guest") as bot,
    ):
        await bot.play(vespers, volume=0.5, loop=True)
        await expect(tab.page.locator("#volume-value")).to_have_text("50 %")
        await expect(tab.page.locator("#place")).to_contain_text("on repeat")
        await assert_cover(tab)
        await bot.command("stop")
        assert not bot.events("status"), "nobody had to ask"
        await tab.assert_no_errors()
