"""The playground while servers and networks go and come back: no reload, no click, and the sound goes on."""

import re

import pytest
from playwright.async_api import expect

from media import FLAC, tone_clip
from processes import ROOT
from relay import relay
from tab import Tab, tab_in

FIRST = tone_clip(440, 120, FLAC)
SECOND = tone_clip(880, 120, FLAC)

#: Is gone after a reload.
MARK = "() => { window.hasStayed = true; }"


async def begin(tab: Tab, media) -> None:
    media.make(FIRST, SECOND)
    await tab.page.evaluate(MARK)
    await tab.play(FIRST.url)
    await tab.send(
        type="queue_add", tracks=[{"url": SECOND.url, "title": "Gloria"}, {"url": FIRST.url, "title": "Credo"}]
    )
    await tab.wait_for_tone(440)


async def assert_goes_on(tab: Tab) -> None:
    """With the sound and the queue it had, and every control in use."""
    await expect(tab.page.locator("#link-state")).to_have_text("Connected")
    await expect(tab.page.locator("#banner")).to_be_hidden()
    await tab.wait_for_tone(440)
    await expect(tab.page.locator("#queue .row-name")).to_have_text(["Gloria", "Credo"])
    assert await tab.page.evaluate("() => window.hasStayed"), "the page was reloaded"
    assert await tab.page.locator(".toast.error").count() == 0
    await tab.button("Next in the queue").click()
    await tab.wait_for_tone(880)
    await expect(tab.page.locator("#queue .row-name")).to_have_text(["Credo"])
    await tab.send(type="stop")


@pytest.mark.parametrize("player", ["webcodecs", "audio"])
async def test_the_router_is_killed_and_comes_back(antiphon, media, browser, player):
    async with tab_in(browser, f"{antiphon.router.url}/?player={player}") as tab:
        await begin(tab, media)
        antiphon.router.kill()
        await expect(tab.page.locator("#link-state")).to_have_text("Reconnecting…")
        await expect(tab.page.locator("#banner")).to_contain_text("goes on when the server answers")
        # A command meanwhile is refused in words; said twice it is one message.
        for _ in range(2):
            await tab.button("Pause").click()
        toast = tab.page.locator(".toast.error")
        await expect(toast).to_have_count(1)
        await expect(toast).to_contain_text("no connection to the server right now. (2 times)")
        antiphon.router.start()
        await assert_goes_on(tab)


async def test_router_and_engine_are_killed_and_come_back(antiphon, media, browser):
    async with tab_in(browser, antiphon.router.url + "/") as tab:
        await begin(tab, media)
        antiphon.router.kill()
        antiphon.engine.kill()
        await expect(tab.page.locator("#link-state")).to_have_text("Reconnecting…")
        antiphon.router.start()
        await tab.phase("The engine is away")
        await expect(tab.page.locator("#banner")).to_contain_text("audio engine is away")
        antiphon.engine.start()
        await assert_goes_on(tab)


async def test_the_router_is_stopped_and_says_so(antiphon, media, browser):
    """As an operator does it for an upgrade."""
    async with tab_in(browser, antiphon.router.url + "/") as tab:
        await begin(tab, media)
        antiphon.router.terminate()
        await expect(tab.page.locator("#link-state")).to_have_text("Reconnecting…")
        await expect(tab.page.locator("#banner")).to_contain_text("stopping. This page comes back by itself")
        antiphon.router.start()
        await assert_goes_on(tab)


async def test_the_network_is_cut_and_mended(antiphon, media, browser):
    """Nothing tells the page: the connection falls silent, and is found to be dead."""
    async with relay(antiphon.router.address) as network, tab_in(browser, network.url + "/") as tab:
        await begin(tab, media)
        network.cut()
        await expect(tab.page.locator("#link-state")).to_have_text("Reconnecting…", timeout=15_000)
        network.restore()
        await assert_goes_on(tab)


async def test_the_device_says_that_it_is_offline(antiphon, media, browser):
    """Then the page looks at once, and says what is wrong."""
    async with relay(antiphon.router.address) as network, tab_in(browser, network.url + "/") as tab:
        await begin(tab, media)
        network.cut()
        await tab.page.context.set_offline(True)
        await expect(tab.page.locator("#link-state")).to_have_text("Offline", timeout=15_000)
        await expect(tab.page.locator("#banner")).to_contain_text("This device is offline")
        network.restore()
        await tab.page.context.set_offline(False)
        await assert_goes_on(tab)


async def test_a_long_absence_is_asked_about_less_often(antiphon, browser):
    """And not by all tabs at the same moment: the waits differ."""
    async with tab_in(browser, antiphon.router.url + "/") as tab:
        waits = await tab.page.evaluate(
            """async () => {
              const { Connection } = await import('./session/connection.js');
              const [setTimer, waits, now] = [self.setTimeout, [], performance.now];
              let awayMs = 0;
              performance.now = () => awayMs;
              self.setTimeout = (run, ms) => {
                // The limit to what is waited for within an attempt is no wait between two.
                if (ms >= 5000) return setTimer(run, ms);
                if (ms >= 50) { waits.push(ms); awayMs += ms; }
                return waits.length < 200 ? setTimer(run, 0) : 0;
              };
              const links = [];
              new Connection(() => Promise.reject(new Error()), 'x', { onLink: (link) => links.push(link) });
              while (waits.length < 200) await new Promise((resolve) => setTimer(resolve, 5));
              performance.now = now;
              self.setTimeout = setTimer;
              return waits;
            }"""
        )
        assert all(wait <= 500 for wait in waits[:10]), waits[:10]
        assert 60 <= waits[0] <= 100 and len(set(waits)) == len(waits), waits
        assert min(waits[-10:]) >= 3_000 and max(waits) <= 5_000, waits[-10:]


async def test_a_session_that_has_moved_is_followed_at_once(antiphon, browser):
    """Close code 1012: another Router has it. Others wait a little, and so does one that is sent on again at once."""
    async with tab_in(browser, antiphon.router.url + "/") as tab:
        waits = await tab.page.evaluate(
            """async () => {
              const { Connection } = await import('./session/connection.js');
              const [setTimer, now, Socket] = [self.setTimeout, performance.now, self.WebSocket];
              let [nowMs, socket, waits] = [0, null, []];
              performance.now = () => nowMs;
              self.setTimeout = (run, ms) => {
                waits.push(ms);
                return setTimer(run, ms === 5000 ? ms : 0);
              };
              self.WebSocket = class { static OPEN = 1; constructor() { socket = this; } send() {} close() {} };
              new Connection(() => Promise.resolve('ws://x/'), 'x', { onLink() {} });
              const found = [];
              for (const [code, lastedMs] of [[1012, 60_000], [1012, 50], [1006, 60_000]]) {
                while (!socket) await new Promise((resolve) => setTimer(resolve, 5));
                const closing = socket;
                closing.onopen();
                nowMs += lastedMs;
                socket = null;
                waits = [];
                closing.onclose({ code });
                found.push(waits[0]);
              }
              performance.now = now;
              self.setTimeout = setTimer;
              self.WebSocket = Socket;
              return found;
            }"""
        )
        moved, bounced, lost = waits
        assert moved == 0 and 60 <= bounced <= 100 and 60 <= lost <= 100, waits


async def test_an_address_that_does_not_come_is_asked_for_again(antiphon, browser):
    """As a ticket of a server that accepts and says nothing; one that comes too late is used no more."""
    async with tab_in(browser, antiphon.router.url + "/") as tab:
        seen = await tab.page.evaluate(
            """async () => {
              const { Connection } = await import('./session/connection.js');
              const [setTimer, clearTimer, Socket] = [self.setTimeout, self.clearTimeout, self.WebSocket];
              const [limits, give, opened, links] = [[], [], [], []];
              self.setTimeout = (run, ms) => { if (ms >= 1000) limits.push(ms); return setTimer(run, 0); };
              self.WebSocket = class { constructor(url) { opened.push(url); } };
              const address = () => new Promise((resolve) => give.push(resolve));
              new Connection(address, 'x', { onLink: (link) => links.push(link) });
              while (give.length < 4) await new Promise((resolve) => setTimer(resolve, 5));
              give[0]('ws://late/');
              await new Promise((resolve) => setTimer(resolve, 20));
              const late = opened.length;
              // One that comes in time is connected to.
              self.setTimeout = setTimer;
              const asked = give.length;
              while (give.length === asked) await new Promise((resolve) => setTimer(resolve, 5));
              give.at(-1)('ws://in-time/');
              await new Promise((resolve) => setTimer(resolve, 20));
              self.WebSocket = Socket;
              return { limits, late, opened, links };
            }"""
        )
        assert seen["limits"][:3] == [5_000] * 3, seen
        assert seen["late"] == 0 and seen["opened"] == ["ws://in-time/"], seen
        assert [link["attempt"] for link in seen["links"][:3]] == [1, 2, 3], seen
        assert not any(link["connected"] or link["wasOpen"] for link in seen["links"]), seen


# MARK: Error texts

#: Some codes, and words that say what to do.
ERROR_TEXTS = {
    "source_not_found": "Check the address",
    "source_not_audio": "leads to music",
    "overloaded": "in a moment",
    "engine_unavailable": "when it is back",
    "queue_full": "Remove some",
    "forbidden": "token",
    "unauthorized": "Sign in",
    "internal": "tell its operator",
}


def documented_codes() -> set[str]:
    """Every error code there is."""
    text = (ROOT / "docs/wire-protocol.md").read_text().partition("## Error codes")[2].partition("\n## ")[0]
    return set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE))


async def test_every_error_has_texts_and_no_codes(antiphon, browser):
    codes = documented_codes()
    assert len(codes) > 25 and codes >= ERROR_TEXTS.keys(), codes
    async with tab_in(browser, antiphon.router.url + "/") as tab:
        for code in codes:
            told = await tab.page.evaluate(
                """async (code) => (await import('./session/error-texts.js')).explain(
                  { code, message: 'the raw message', hint: 'GET /health says; --flag' })""",
                code,
            )
            assert told["detail"] == "the raw message", f"{code} has no words of its own: {told}"
            said = f"{told['what']} {told['advice']}"
            assert ERROR_TEXTS.get(code, "") in said, (code, told)
            assert code not in said.split() and "GET" not in said and "--" not in said, told
        unknown = await tab.page.evaluate(
            """async () => (await import('./session/error-texts.js')).explain(
              { code: 'new_code', message: 'something new', hint: 'wait a little; see GET /health' })"""
        )
        assert unknown == {"what": "Something new.", "advice": "Wait a little.", "detail": ""}, unknown
