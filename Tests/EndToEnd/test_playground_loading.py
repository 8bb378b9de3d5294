"""A page of which a part could not be loaded comes all the same."""

import asyncio

import pytest
from playwright.async_api import Error

from inbox import PATIENCE_SECONDS
from media import FLAC, tone_clip
from network import network
from processes import Antiphon
from tab import STILL, Tab, chromium

PLAIN = tone_clip(660, 40, FLAC)


@pytest.mark.parametrize("part", ["styles/base.css", "main.js", "session/identity.js", "sound/sound-worker.js"])
async def test_a_part_that_is_missing_at_first(antiphon, media, browser, part):
    media.path(PLAIN)
    lost, navigations = 0, asyncio.Semaphore(0)

    async def lose(route):
        nonlocal lost
        lost += 1
        await route.abort("internetdisconnected")

    async with await browser.new_context(**STILL) as context:
        await context.route(f"**/{part}", lose, times=2)
        tab = Tab(await context.new_page())
        tab.page.on("framenavigated", lambda _: navigations.release())
        await tab.page.goto(antiphon.router.url + "/", wait_until="commit")
        async with asyncio.timeout(PATIENCE_SECONDS):
            # The first, and for each that is lost the state that counts it and another.
            for _ in range(5):
                await navigations.acquire()
        await tab.wait_until_connected()
        await tab.play(PLAIN.url)
        await tab.wait_for_tone(660)
        assert lost == 2, lost


async def test_a_page_loads_while_the_machines_addresses_change(tmp_path, media):
    """Chromium ends all that waits for a connection then, also one to the machine itself."""
    with network() as made:
        if made is None:
            pytest.skip("this machine allows no network namespaces")
        with Antiphon(tmp_path, media.root) as antiphon:
            async with chromium() as browser:
                for _ in range(50):
                    async with await browser.new_context(**STILL) as context:
                        tab = Tab(await context.new_page())
                        try:
                            await tab.page.goto(antiphon.router.url + "/", wait_until="commit")
                        except Error:
                            # The page itself is among what has ended: a change before was noticed late.
                            continue
                        made.change_address()
                        await tab.wait_until_connected()
                        if await tab.page.evaluate("() => history.state?.loads ?? 0"):
                            return
    pytest.fail("no page has missed a part")
