"""The queue in the playground, put in order by hand and by keys; what holds is asked of the server."""

import asyncio
import time

import pytest
from playwright.async_api import expect

from client import listen, request
from inbox import PATIENCE_SECONDS
from media import FLAC, tone_clip
from page_server import PageServer
from processes import Antiphon
from tab import Tab, tab_in

PLAYING = tone_clip(440, 120, FLAC)
OTHER = tone_clip(880, 60, FLAC)
#: Their names; all are the same sound.
NAMES = ["Kyrie", "Gloria", "Credo", "Sanctus", "Agnus"]


class Desk:
    """A tab whose session plays, and whose queue holds five tracks."""

    def __init__(self, tab: Tab, server: str, session: str) -> None:
        self.tab = tab
        self.base = f"{server}/api/v1/sessions/{session}"

    def row(self, name: str):
        return self.tab.page.locator("#queue .track-row", has_text=name)

    def handle(self, name: str):
        return self.tab.button(f"Move {name}")

    async def server_queue(self, offset: int = 0) -> dict:
        answer = await request("GET", f"{self.base}/queue?offset={offset}")
        assert answer.status == 200, answer
        return answer.body

    async def assert_order(self, *names: str) -> None:
        """On the page, which shows a move at once, and, what matters, on the server."""
        await expect(self.tab.page.locator("#queue .row-name")).to_have_text(list(names))
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (held := [entry["title"] for entry in (await self.server_queue())["tracks"]]) != list(names):
            assert time.monotonic() < deadline, f"the page shows {names}, the server has {held}"
            await asyncio.sleep(0.05)
        await expect(self.tab.page.locator("#queue .row-name")).to_have_text(list(names))

    async def drag(self, name: str, to: str, *, below: bool) -> None:
        """With the mouse, from one row to the upper or lower half of another."""
        mouse = self.tab.page.mouse
        box = await self.row(name).locator(".row-name").bounding_box()
        target = await self.row(to).bounding_box()
        await mouse.move(box["x"] + 10, box["y"] + 8)
        await mouse.down()
        y = target["y"] + target["height"] * (0.8 if below else 0.2)
        await mouse.move(box["x"] + 10, y, steps=6)
        await expect(self.tab.page.locator("#queue .drop-mark")).to_have_count(1)


@pytest.fixture
async def desk(antiphon, media, browser, new_session):
    media.make(PLAYING, OTHER)
    session = new_session()
    async with tab_in(browser, f"{antiphon.router.url}/?session={session}") as tab:
        await tab.play(PLAYING.url)
        tracks = [{"url": OTHER.url, "title": name, "duration_ms": 60_000} for name in NAMES]
        await tab.send(type="queue_add", tracks=tracks)
        desk = Desk(tab, antiphon.router.url, session)
        await desk.assert_order(*NAMES)
        yield desk
        await tab.send(type="stop")
        await tab.assert_no_errors()


# MARK: Order


async def test_a_row_is_dragged_with_the_mouse(desk):
    await desk.drag("Kyrie", "Credo", below=True)
    await desk.tab.page.mouse.up()
    await desk.assert_order("Gloria", "Credo", "Kyrie", "Sanctus", "Agnus")
    await desk.drag("Agnus", "Gloria", below=False)
    await desk.tab.page.mouse.up()
    await desk.assert_order("Agnus", "Gloria", "Credo", "Kyrie", "Sanctus")
    # The click that ends a drag plays nothing, and Escape changes nothing.
    await desk.drag("Sanctus", "Agnus", below=False)
    await desk.tab.page.keyboard.press("Escape")
    await desk.tab.page.mouse.up()
    await expect(desk.tab.page.locator("#queue .drop-mark")).to_have_count(0)
    await desk.assert_order("Agnus", "Gloria", "Credo", "Kyrie", "Sanctus")
    assert (await desk.server_queue())["current"]["url"] == PLAYING.url


async def test_what_others_do_meanwhile_does_not_disturb_a_drag(desk):
    await desk.drag("Kyrie", "Credo", below=True)
    # Before the place it goes to something comes, and something else is taken away.
    gone = (await desk.server_queue())["tracks"][1]["id"]
    await request("DELETE", f"{desk.base}/queue/{gone}")
    await request("POST", f"{desk.base}/queue", {"url": OTHER.url, "title": "Introitus", "next": True})
    # The answer comes after the news of both.
    await desk.tab.send(type="queue")
    await desk.tab.page.mouse.up()
    await desk.assert_order("Introitus", "Credo", "Kyrie", "Sanctus", "Agnus")


async def test_a_row_is_dragged_with_a_finger(antiphon, media, browser, new_session):
    """By its handle; elsewhere a finger scrolls. At the window's edge the page scrolls by itself."""
    media.make(PLAYING, OTHER)
    session, phone = new_session(), {"width": 390, "height": 700}
    url = f"{antiphon.router.url}/?session={session}"
    async with tab_in(browser, url, viewport=phone, has_touch=True, is_mobile=True) as tab:
        desk = Desk(tab, antiphon.router.url, session)
        await tab.play(PLAYING.url)
        names = [f"Psalm {number}" for number in range(1, 31)]
        await tab.send(type="queue_add", tracks=[{"url": OTHER.url, "title": name} for name in names])
        await desk.handle("Psalm 1").evaluate("handle => handle.scrollIntoView({ block: 'center' })")
        devtools = await tab.page.context.new_cdp_session(tab.page)

        async def touch(kind: str, *points: dict) -> None:
            await devtools.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": list(points)})

        box = await desk.handle("Psalm 1").bounding_box()
        x, y = box["x"] + 20, box["y"] + 20
        await touch("touchStart", {"x": x, "y": y})
        await touch("touchMove", {"x": x, "y": y + 20})
        scrolled = await tab.page.evaluate("() => scrollY")
        dock = await tab.page.locator(".dock").bounding_box()
        await touch("touchMove", {"x": x, "y": dock["y"] - 5})
        await tab.page.wait_for_function("from => scrollY > from + 400", arg=scrolled)
        await touch("touchMove", {"x": x, "y": dock["y"] - 200})
        await touch("touchEnd")
        await expect(tab.page.locator("#queue .drop-mark")).to_have_count(0)
        await expect(tab.page.locator("#queue .row-name").first).to_have_text("Psalm 2")
        order = await tab.page.locator("#queue .row-name").all_text_contents()
        assert order.index("Psalm 1") > 5 and sorted(order) == sorted(names), order
        await desk.assert_order(*order)
        await tab.send(type="stop")
        await tab.assert_no_errors()


async def test_a_row_is_moved_by_keys(desk):
    page = desk.tab.page
    await desk.handle("Credo").focus()
    await page.keyboard.press("ArrowUp")
    await desk.assert_order("Kyrie", "Credo", "Gloria", "Sanctus", "Agnus")
    assert await desk.tab.focused('[aria-label="Move Credo"]'), "the keyboard did not stay with its track"
    await expect(page.locator("#announcer")).to_have_text("Credo is number 2 of 5.")
    await page.keyboard.press("End")
    await desk.assert_order("Kyrie", "Gloria", "Sanctus", "Agnus", "Credo")
    await page.keyboard.press("Home")
    await desk.assert_order("Credo", "Kyrie", "Gloria", "Sanctus", "Agnus")
    # At the edge nothing happens; from any part of the row Alt does it.
    await page.keyboard.press("ArrowUp")
    await desk.tab.button("Play Sanctus now").focus()
    await page.keyboard.press("Alt+ArrowDown")
    await desk.assert_order("Credo", "Kyrie", "Gloria", "Agnus", "Sanctus")
    assert await desk.tab.focused('[aria-label="Play Sanctus now"]')
    await desk.tab.button("Move Gloria to the top").click()
    await desk.assert_order("Gloria", "Credo", "Kyrie", "Agnus", "Sanctus")


async def test_shuffle_keeps_every_track(desk):
    for _ in range(8):
        await desk.tab.button("Shuffle the queue").click()
        await expect(desk.tab.page.locator("#announcer")).to_contain_text("shuffled")
        order = await desk.tab.queue_titles()
        assert sorted(order) == sorted(NAMES), order
        if order != NAMES:
            break
    else:
        raise AssertionError("eight shuffles, and the order is as it was")
    await desk.assert_order(*order)


# MARK: What is in it


async def test_what_was_removed_and_cleared_comes_back(desk):
    page = desk.tab.page
    await desk.tab.button("Remove Credo from the queue").press("Enter")
    await desk.assert_order("Kyrie", "Gloria", "Sanctus", "Agnus")
    assert await desk.tab.focused('[aria-label="Remove Sanctus from the queue"]'), "the keyboard lost its place"
    await desk.tab.button("Undo").click()
    await desk.assert_order(*NAMES)

    await desk.tab.button("Clear").click()
    await expect(page.locator("#queue-empty")).to_be_visible()
    await desk.assert_order()
    await desk.tab.button("Undo").press("Enter")
    await desk.assert_order(*NAMES)
    await expect(page.locator("#queue-total")).to_have_text("5 tracks · 5 min")
    entry = (await desk.server_queue())["tracks"][0]
    assert entry["duration_ms"] == 60_000, entry


async def test_a_row_plays_at_once_and_the_others_wait(desk):
    await desk.tab.button("Play Credo now").click()
    await desk.tab.wait_for_tone(880)
    await desk.assert_order("Kyrie", "Gloria", "Sanctus", "Agnus")


async def test_history_and_previous(desk):
    page = desk.tab.page
    for name in ("Kyrie", "Gloria"):
        await desk.tab.button("Next in the queue").click()
        await expect(desk.row(name)).to_have_count(0)
    await desk.tab.wait_for_tone(880)
    history = page.locator("#history .row-name")
    await page.get_by_role("tab", name="History").click()
    await expect(history.first).to_have_text("Kyrie")
    await expect(history).to_have_count(2)
    await expect(page.locator("#queue")).to_be_hidden()
    # While it is open it follows what plays.
    await page.keyboard.press("Shift+ArrowRight")
    await page.get_by_role("tab", name="History").press("ArrowLeft")
    await expect(page.locator("#queue")).to_be_visible()
    assert await desk.tab.focused("#tab-next")
    await desk.tab.button("Previous track").click()
    await desk.assert_order("Gloria", "Credo", "Sanctus", "Agnus")
    await desk.tab.button("Previous track").click()
    await desk.tab.wait_for_tone(440)
    await desk.assert_order("Kyrie", "Gloria", "Credo", "Sanctus", "Agnus")
    # Before the first there is its beginning.
    await page.locator("#seek").press("ArrowRight")
    await page.wait_for_function("() => window.antiphon.state().positionMs > 5000")
    await desk.tab.button("Previous track").click()
    await page.wait_for_function("() => window.antiphon.state().positionMs < 5000")
    await desk.assert_order("Kyrie", "Gloria", "Credo", "Sanctus", "Agnus")
    await desk.tab.button("Next in the queue").click()
    await desk.tab.wait_for_tone(880)

    await page.get_by_role("tab", name="History").click()
    # What it has shown before is there until the newest has come.
    await expect(history.first).to_have_text("Tone 440 120s flac")
    await page.locator("#history .row-button").first.click()
    await desk.tab.wait_for_tone(440)
    await page.locator("#history .icon-button").first.click()
    await page.get_by_role("tab", name="Up next").click()
    await expect(page.locator("#queue .row")).to_have_count(5)


async def test_the_loop_goes_round(desk):
    loop = desk.tab.page.locator("#loop")
    for mode, label in (("queue", "Repeat: the queue"), ("track", "Repeat: this track"), ("off", "Repeat: off")):
        await loop.click()
        await expect(loop).to_have_attribute("aria-label", label)
        assert (await desk.server_queue())["loop"] == mode
    # Somebody else's choice is shown too.
    await request("POST", f"{desk.base}/queue/loop", {"mode": "track"})
    await expect(loop).to_have_attribute("aria-label", "Repeat: this track")


async def test_a_long_queue_has_pages(desk):
    page = desk.tab.page
    many = [{"url": OTHER.url, "title": f"Antiphon {number}"} for number in range(1, 296)]
    await desk.tab.send(type="queue_add", tracks=many)
    await expect(page.locator("#queue-total")).to_have_text("300 tracks")
    await expect(page.locator("#queue-range")).to_have_text("1 to 100 of 300")
    await expect(page.locator("#queue .row")).to_have_count(100)
    await desk.tab.button("Later").click()
    await expect(page.locator("#queue .row-name").first).to_have_text("Antiphon 96")
    await desk.tab.button("Move Antiphon 97").press("ArrowUp")
    for place, number in enumerate((97, 96)):
        await expect(page.locator("#queue .row-name").nth(place)).to_have_text(f"Antiphon {number}")
    # Before the page is another: there it goes.
    await desk.tab.button("Move Antiphon 97").press("ArrowUp")
    await expect(page.locator("#queue .row-name").first).to_have_text("Antiphon 95")
    await desk.tab.button("Later").press("Enter")
    await expect(page.locator("#queue-range")).to_have_text("201 to 300 of 300")
    assert await page.locator("#queue-later").is_disabled()
    assert await desk.tab.focused("#queue-earlier"), "the keyboard fell out of the pages"
    # The last page goes with its last track.
    await request("DELETE", f"{desk.base}/queue")
    await expect(page.locator("#queue-pager")).to_be_hidden()
    await expect(page.locator("#queue-empty")).to_be_visible()


async def test_a_long_queue_is_cleared_after_a_question(desk):
    page = desk.tab.page
    for _ in range(2):
        await desk.tab.send(type="queue_add", tracks=[{"url": OTHER.url, "title": "Psalm"}] * 300)
    await desk.tab.button("Clear").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("Remove all 605 tracks")
    await page.keyboard.press("Escape")
    assert (await desk.server_queue())["total"] == 605
    await desk.tab.button("Clear").click()
    await desk.tab.button("Remove all").click()
    await expect(page.locator("#queue-empty")).to_be_visible()
    assert (await desk.server_queue())["total"] == 0


async def test_clearing_and_undo_reach_beyond_the_first_page(desk):
    many = [{"url": OTHER.url, "title": f"Psalm {number}", "artist": "x" * 190} for number in range(1, 396)]
    for start in (0, 200):
        await desk.tab.send(type="queue_add", tracks=many[start : start + 200])
    await expect(desk.tab.page.locator("#queue-total")).to_have_text("400 tracks")
    await desk.tab.button("Clear").click()
    await expect(desk.tab.page.locator("#queue-empty")).to_be_visible()
    # More than one command's 64 KiB.
    await desk.tab.button("Undo").click()
    await expect(desk.tab.page.locator("#queue-total")).to_have_text("400 tracks")
    titles = [each["title"] for page in range(4) for each in (await desk.server_queue(100 * page))["tracks"]]
    assert titles == NAMES + [each["title"] for each in many]


async def test_a_folder_is_added_in_one_command_and_a_file_next(desk, media):
    folder = media.root / "Mass"
    folder.mkdir(exist_ok=True)
    for name in ("one.flac", "two.flac", "three.flac"):
        (folder / name).write_bytes(media.bytes(OTHER))
    page, session = desk.tab.page, await desk.tab.session()
    await desk.tab.button("Refresh").click()
    await page.get_by_role("button", name="Mass").click()
    await expect(desk.tab.button("Play One")).to_be_visible()
    before = await page.evaluate("() => window.antiphon.state().queue.total")
    await desk.tab.button("Add all").click()
    await expect(page.locator("#queue .row")).to_have_count(before + 3)
    await desk.tab.button("Play Two next").click()
    await expect(page.locator("#queue .row-name").first).to_have_text("Two")
    last = [entry["url"] for entry in (await desk.server_queue())["tracks"]][-3:]
    assert last == ["media:Mass/one.flac", "media:Mass/three.flac", "media:Mass/two.flac"], (session, last)


def cast(site: PageServer, count: int) -> str:
    """A podcast's feed, which yt-dlp takes for a playlist."""
    items = "".join(
        f"<item><title>Part {number}</title><guid>g{number}</guid><enclosure url='{site.url}/part.flac?{number}'/>"
        f"<itunes:duration>{number}</itunes:duration></item>"
        for number in range(1, count + 1)
    )
    return (
        "<?xml version='1.0'?><rss version='2.0' xmlns:itunes='http://www.itunes.com/dtds/podcast-1.0.dtd'>"
        f"<channel><title>A cast</title>{items}</channel></rss>"
    )


async def test_a_playlist_is_added_in_one_command(tmp_path, media, browser):
    """With what is known of its tracks; one of them is played next, one at once."""
    media.make(PLAYING, OTHER)
    with PageServer() as site, Antiphon(tmp_path, media.root, allow=("127.0.0.1/32",)) as antiphon:
        site.add("/part.flac", lambda asked: asked.media(media.bytes(OTHER)))
        url = site.add("/playlist/cast", lambda asked: asked.page(cast(site, 12), "application/rss+xml"))
        async with tab_in(browser, f"{antiphon.router.url}/?session=cast") as tab:
            desk = Desk(tab, antiphon.router.url, "cast")
            await tab.play(PLAYING.url)
            await tab.page.locator("#source-url").fill(url)
            await tab.page.locator("#source-url").press("Enter")
            await expect(tab.page.locator("#results .row")).to_have_count(12)
            await expect(tab.page.locator("#results-heading")).to_have_text("A cast")
            async with listen(antiphon.router.url, "cast") as bot:
                since = bot.mark()
                await tab.button("Add all 12").click()
                names = [f"Part {number}" for number in range(1, 13)]
                await desk.assert_order(*names)
                sent = bot.events("queue", since)
            assert len(sent) == 1, f"{len(sent)} changes of the queue for one playlist"
            entry = (await desk.server_queue())["tracks"][4]
            assert entry["url"].endswith("part.flac?5") and entry["duration_ms"] == 5_000, entry
            await tab.button("Play Part 7 next").click()
            await desk.assert_order("Part 7", *names)
            await tab.button("Play Part 3").click()
            await tab.wait_for_tone(880)
            assert (await desk.server_queue())["current"]["url"].endswith("part.flac?3")
            await desk.assert_order("Part 7", *names)
            await tab.button("Close").click()
            await tab.send(type="stop")
            await tab.assert_no_errors()
