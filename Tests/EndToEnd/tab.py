"""A tab with the playground in headless Chromium, and the tone by which it tells where in a track it is."""

import asyncio
import os
import time
from contextlib import asynccontextmanager

from playwright.async_api import ConsoleMessage, Page, async_playwright, expect
from playwright.async_api import TimeoutError as PageTimeout

from inbox import PATIENCE_SECONDS

expect.set_options(timeout=PATIENCE_SECONDS * 1_000)

STAIR_SECONDS = 2
STAIRS = 30


def stair_pitch(seconds: float) -> int:
    """The pitch at a place of the stairs."""
    return 500 + 50 * int(seconds / STAIR_SECONDS)


#: Where nothing asks for motion: drawing sixty times a second takes more of a core than all else that a page does.
STILL = {"reduced_motion": "reduce"}

#: The same browser without windows, whose tabs take a fifth of the time that a desktop's take.
HEADLESS_SHELL = "/usr/bin/chromium-headless-shell"
#: For what only a desktop's browser does.
DESKTOP_CHROMIUM = "/usr/bin/chromium"


@asynccontextmanager
async def chromium(*arguments: str, executable: str = HEADLESS_SHELL, **environment: str):
    """A browser of its own."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=executable, args=["--no-sandbox", *arguments], env={**os.environ, **environment}
        )
        try:
            yield browser
        finally:
            await browser.close()


class Tab:
    """One tab with the playground, driven through the page's own `window.antiphon`."""

    def __init__(self, page: Page) -> None:
        self.page = page
        page.set_default_timeout(PATIENCE_SECONDS * 1_000)
        self.complaints: list[str] = []
        page.on("pageerror", lambda error: self.complaints.append(f"exception: {error}"))
        page.on("console", self._hear)
        self.unanswered: set[str] = set()
        page.on("request", lambda request: self.unanswered.add(request.url))
        for end in ("requestfinished", "requestfailed"):
            page.on(end, lambda request: self.unanswered.discard(request.url))

    async def open(self, url: str) -> "Tab":
        # Not until `load`, which waits for the first sound of an <audio> element.
        await self.page.goto(url, wait_until="domcontentloaded")
        await self.wait_until_connected()
        return self

    async def wait_until_connected(self) -> None:
        try:
            await self.page.wait_for_function("() => window.antiphon?.sessionId && window.antiphon.stats().connected")
        except PageTimeout as error:
            raise AssertionError(f"{self.page.url} does not connect: {await self._state_of_loading()}") from error

    async def _state_of_loading(self) -> str:
        """How far a page has come that does not get on."""
        seen = f"unanswered {sorted(self.unanswered)}, complaints {self.complaints}"
        try:
            script = "() => JSON.stringify([document.readyState, document.visibilityState, window.antiphon?.stats()])"
            async with asyncio.timeout(5):
                return f"{seen}, {await self.page.evaluate(script)}"
        except TimeoutError:
            return f"{seen}, and no script runs in it"

    def _hear(self, message: ConsoleMessage) -> None:
        # What the page asks for and may be refused: samples, a search, and what it may do.
        refusable = ("path=samples", "/api/v1/resolve?", "/api/v1/me")
        if message.type == "error" and not any(part in message.location["url"] for part in refusable):
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

    async def wait_for_level_below(self, level: float) -> None:
        await self.page.wait_for_function("level => window.antiphon.rms() < level", arg=level)

    async def assert_fits(self, selector: str) -> None:
        """Nothing widens the page, and nothing that can be seen is cut off at the right."""
        cut = await self.page.evaluate(
            """selector => [...document.querySelectorAll(selector)]
              .filter((each) => each.getClientRects().length && each.getBoundingClientRect().right > innerWidth + 0.5)
              .map((each) => each.outerHTML.slice(0, 80))""",
            selector,
        )
        width, window = await self.page.evaluate("() => [document.documentElement.scrollWidth, innerWidth]")
        assert width <= window and not cut, f"{width} px in a window of {window} px; {cut} are cut off"

    async def windows(self, sizes=((1280, 800), (390, 844), (320, 640))):
        """Gives the page each of the windows, from a desktop's to a small phone's, in light and in dark."""
        for width, height in sizes:
            await self.page.set_viewport_size({"width": width, "height": height})
            for scheme in ("light", "dark"):
                await self.page.emulate_media(color_scheme=scheme)
                yield f"{scheme}, {width} px wide"

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

    async def assert_no_errors_shown(self) -> None:
        assert await self.page.locator(".toast.error").all_inner_texts() == []

    async def assert_no_errors(self) -> None:
        await self.assert_no_errors_shown()
        assert not self.complaints, self.complaints

    async def wait_for_frames(self, count: int) -> None:
        """Until so many more packets have come."""
        goal = (await self.stats())["framesReceived"] + count
        await self.page.wait_for_function("goal => window.antiphon.stats().framesReceived >= goal", arg=goal)

    async def stats(self) -> dict:
        return await self.page.evaluate("() => window.antiphon.stats()")

    async def queue_titles(self) -> list[str]:
        """What the list of what waits shows."""
        return await self.page.locator("#queue .row-name").all_inner_texts()

    async def state(self) -> dict:
        return await self.page.evaluate("() => window.antiphon.state()")


@asynccontextmanager
async def tab_in(browser, url: str, before: str = "", **options):
    """A tab; `before` is run in it before the page's own scripts; `options` are those of a browser context."""
    context = await browser.new_context(**STILL | options)
    await context.add_init_script(before)
    try:
        yield await Tab(await context.new_page()).open(url)
    finally:
        await context.close()
