"""A page of which a part could not be loaded comes all the same."""

import asyncio

import pytest

from media import FLAC, tone_clip
from network import network
from tab import STILL, Tab

PLAIN = tone_clip(660, 40, FLAC)


@pytest.mark.parametrize("part", ["styles/base.css", "main.js", "session/identity.js", "sound/sound-worker.js"])
async def test_a_part_that_is_missing_at_first(antiphon, media, browser, part):
    media.path(PLAIN)
    context = await browser.new_context(**STILL)
    try:
        lost = 0

        async def lose(route):
            nonlocal lost
            lost += 1
            await route.abort("internetdisconnected")

        await context.route(f"**/{part}", lose, times=2)
        tab = await Tab(await context.new_page()).open(antiphon.router.url + "/")
        # Of its sound, the page has to be loaded for the last time before it plays.
        await tab.page.wait_for_function("() => history.state?.loads >= 2")
        await tab.page.wait_for_function("() => window.antiphon?.stats().connected")
        await tab.play(PLAIN.url)
        await tab.wait_for_tone(660)
        assert lost == 2, lost
    finally:
        await context.close()


@pytest.mark.measures
async def test_pages_load_while_the_machines_addresses_change(antiphon, browser):
    """Chromium ends all that waits for a connection then, also one to the machine itself."""
    loads = []
    with network() as made:
        if made is None:
            pytest.skip("this machine allows no network namespaces")
        while not any(loads) or len(loads) < 5:
            assert len(loads) < 50, "no page has missed a part"
            context = await browser.new_context(**STILL)
            try:
                tab = Tab(await context.new_page())
                await tab.page.goto(antiphon.router.url + "/", wait_until="commit")
                for _ in range(3):
                    await asyncio.to_thread(made.change_address)
                await tab.connected()
                loads.append(await tab.page.evaluate("() => history.state?.loads ?? 0"))
            finally:
                await context.close()
