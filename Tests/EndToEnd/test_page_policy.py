"""The pages' Content-Security-Policy, in a real browser: they work, and what got into one could send nothing away."""

import pytest

from media import FLAC, tone_clip
from tab import tab_in

SONG = tone_clip(440, 60, FLAC)
PAGES = ["/", "/repository.html"]

#: Gives what each violates of the policy; whatever is answered or refused.
TRY = """async (foreign) => {
  const violations = [];
  document.addEventListener('securitypolicyviolation', (event) => violations.push(event.effectiveDirective));
  const blocked = async (directive, act) => {
    await act();
    for (let wait = 0; wait < 100 && violations.at(-1) !== directive; wait += 1) {
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    return violations.pop() === directive;
  };
  const result = {};
  result.fetch = await blocked('connect-src', () => fetch(`http://${foreign}/`).catch(() => {}));
  result.socket = await blocked('connect-src', () => { new WebSocket(`ws://${foreign}/ws`); });
  result.elsewhere = await blocked('connect-src', () => { new WebSocket(`wss://example.invalid/`); });
  result.beacon = await blocked('connect-src', () => { navigator.sendBeacon(`http://${foreign}/`, 'x'); });
  result.form = await blocked('form-action', () => {
    const form = document.createElement('form');
    Object.assign(form, { action: `http://${foreign}/`, method: 'post', target: 'elsewhere' });
    document.body.append(form);
    form.submit();
    form.remove();
  });
  result.base = await blocked('base-uri', () => {
    const base = document.createElement('base');
    base.href = `http://${foreign}/`;
    document.head.append(base);
  });
  result.own = (await fetch('/health')).ok;
  return result;
}"""


@pytest.mark.parametrize("path", PAGES)
async def test_nothing_leaves_the_page(antiphon, browser, path):
    async with await browser.new_context() as context:
        page = await context.new_page()
        await page.goto(antiphon.router.url + path, wait_until="domcontentloaded")
        # Another port of the same host is another origin.
        result = await page.evaluate(TRY, antiphon.engine.address)
    assert result == dict.fromkeys(result, True) and len(result) == 7, result


@pytest.mark.parametrize("player", ["webcodecs", "audio"])
async def test_the_page_works_below_its_policy(antiphon, media, browser, player):
    media.path(SONG)
    async with tab_in(browser, f"{antiphon.router.url}/?player={player}") as tab:
        await tab.play(SONG.url)
        await tab.wait_for_tone(440)
        await tab.send(type="stop")
        assert not [each for each in tab.complaints if "Content Security Policy" in each], tab.complaints
