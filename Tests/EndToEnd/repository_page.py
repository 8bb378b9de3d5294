"""A tab with a repository's page, and what its music is held against."""

import base64
from contextlib import asynccontextmanager

import numpy as np
from playwright.async_api import expect

from client import request
from signals import RATE
from tab import STILL, Tab

#: Names of the voices' buttons.
VOICES = ["Melody", "Harmony", "Bass", "Percussion", "Bed"]


class RepositoryTab(Tab):
    """The page of one repository, driven as a person does and measured through its own `window.antiphon`."""

    def _hear(self, message) -> None:
        # Of a repository in which nothing has happened yet nothing is known.
        if "/api/v1/repositories/" not in message.location["url"]:
            super()._hear(message)

    async def try_it(self, label: str = "Push") -> None:
        """Sends one of the samples."""
        await self.page.get_by_role("tab", name="Try it").click()
        await self.page.locator("#try-samples").get_by_role("button", name=label, exact=True).click()
        await expect(self.page.locator("#try-result")).to_contain_text("Queued")

    async def heard(self) -> list[dict]:
        """The pieces that sound, newest first."""
        return await self.page.evaluate("() => window.antiphon.heard()")

    async def wait_for_piece(self, number: int, elapsed_ms: float = 0) -> dict:
        """Until a piece is heard, so many milliseconds after its beginning."""
        found = await self.page.wait_for_function(
            """([number, least]) => window.antiphon.heard()
              .find((each) => each.number === number && each.elapsedMs >= least)""",
            arg=[number, elapsed_ms],
        )
        return await found.json_value()

    async def wait_for_quiet(self) -> None:
        await self.page.wait_for_function("() => window.antiphon.heard().length === 0")

    async def decoded(self, seconds: float) -> tuple[np.ndarray, float]:
        """The last sound that the page has decoded, and the place in the session at which it begins, in ms."""
        found = await self.page.evaluate(
            """async (seconds) => {
              let sound = null;
              // Not at once where there was a break.
              for (let left = 200; left > 0 && !sound; left -= 1) {
                sound = await window.antiphon.recentSound(seconds);
                if (!sound) await new Promise((done) => setTimeout(done, 50));
              }
              if (!sound) return null;
              const bytes = new Uint8Array(sound.samples.buffer);
              let text = '';
              for (let at = 0; at < bytes.length; at += 8192) {
                text += String.fromCharCode(...bytes.subarray(at, at + 8192));
              }
              return { text: btoa(text), endMs: sound.endMs };
            }""",
            seconds,
        )
        assert found, f"less than {seconds} s have been decoded"
        samples = np.frombuffer(base64.b64decode(found["text"]), dtype="<f4")
        return samples, found["endMs"] - 1_000 * len(samples) / RATE

    async def lit_pixels(self) -> int:
        """How much of the sky is bright: stars and their light."""
        return await self.page.evaluate(
            """() => {
              const sky = document.getElementById('sky');
              const { data } = sky.getContext('2d').getImageData(0, 0, sky.width, sky.height);
              let count = 0;
              for (let i = 3; i < data.length; i += 4) count += data[i] > 160;
              return count;
            }"""
        )


def page_url(router: str, repository: str) -> str:
    return f"{router}/repository.html?id={repository}"


@asynccontextmanager
async def repository_tab(browser, router: str, repository: str, before: str = "", **options):
    """A tab with a repository's page; `before` is run in it before the page's own scripts; `options` are those of a
    browser context."""
    context = await browser.new_context(**STILL | options)
    await context.add_init_script(before)
    try:
        yield await RepositoryTab(await context.new_page()).open(page_url(router, repository))
    finally:
        await context.close()


async def happen(router: str, session: str, event: str = "push", headers=None, **fields) -> None:
    """Something happens in a repository, whose session has its ID; `fields` as the route takes them."""
    url = f"{router}/stream/{session}/test"
    answer = await request("POST", url, {"event": event, **fields}, headers=headers)
    assert answer.status == 202, answer


async def piece(router: str, repository: str, number: int) -> dict:
    """One of the pieces, with its notes."""
    url = f"{router}/api/v1/repositories/{repository}/events?before={number + 1}&limit=1"
    answer = await request("GET", url)
    assert answer.status == 200 and answer.body["events"][0]["number"] == number, answer
    return answer.body["events"][0]
