"""A page of somebody's, which plays an event stream with the Router's `stream-player.js`, and records every sample."""

import base64
from contextlib import asynccontextmanager

import numpy as np
from playwright.async_api import Page

from signals import RATE

#: All that goes through the audio graph, with the number of its first frame.
RECORDER = """
registerProcessor('recorder', class extends AudioWorkletProcessor {
  #sound = [[], []];
  #end = 0;
  process([input]) {
    // Counted here: Chromium sometimes tells several blocks the frame of the first of them.
    this.#end = Math.max(this.#end, currentFrame) + 128;
    for (const channel of [0, 1]) this.#sound[channel].push(input[channel]?.slice() ?? new Float32Array(128));
    if (this.#sound[0].length === 16) {
      this.port.postMessage({ end: this.#end, sound: this.#sound });
      this.#sound = [[], []];
    }
    return true;
  }
});
"""

SETUP = """async ([recorder, module, id, options]) => {
  const { StreamPlayer } = await import(module);
  const context = new AudioContext({ sampleRate: 48000 });
  await context.audioWorklet.addModule(URL.createObjectURL(new Blob([recorder], { type: 'text/javascript' })));
  const node = new AudioWorkletNode(context, 'recorder', { channelCount: 2, channelCountMode: 'explicit' });
  Object.assign(window, { context, told: [], recorded: [] });
  node.port.onmessage = ({ data }) => window.recorded.push(data);
  window.player = new StreamPlayer(id, { ...options, context });
  player.output.connect(node).connect(context.destination);
  for (const type of ['state', 'parameters', 'piece', 'error']) {
    player.addEventListener(type, ({ detail }) => window.told.push({ type, ...detail }));
  }
  player.start();
}"""

#: Base64 of the frames from one to another, left and right by turns.
TAKE = """([from, to]) => {
  const taken = new Float32Array(2 * (to - from));
  for (const { end, sound } of recorded) {
    for (const channel of [0, 1]) {
      sound[channel].forEach((block, i) => block.forEach((sample, k) => {
        const frame = end - 128 * (sound[channel].length - i) + k;
        if (frame >= from && frame < to) taken[2 * (frame - from) + channel] = sample;
      }));
    }
  }
  const bytes = new Uint8Array(taken.buffer);
  let text = '';
  for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return btoa(text);
}"""


class StreamPage:
    def __init__(self, page: Page) -> None:
        self.page = page
        #: All that it has asked for.
        self.addresses: list[str] = []
        page.on("request", lambda asked: self.addresses.append(asked.url))

    async def told(self, kind: str) -> list[dict]:
        return await self.page.evaluate("type => told.filter((each) => each.type === type)", kind)

    async def wait_told(self, kind: str, count: int = 1, **fields) -> list[dict]:
        """Until so many of a kind, with these fields, were told; returns them."""
        found = await self.page.wait_for_function(
            """([type, count, fields]) => {
              const found = told.filter((each) => each.type === type
                && Object.entries(fields).every(([name, value]) => each[name] === value));
              return found.length >= count && found;
            }""",
            arg=[kind, count, fields],
        )
        return await found.json_value()

    async def sound(self, first: int, end: int) -> np.ndarray:
        """The frames from one to another, when they have been played: samples by channels."""
        await self.page.wait_for_function("end => recorded.at(-1)?.end >= end", arg=end)
        text = await self.page.evaluate(TAKE, [first, end])
        return np.frombuffer(base64.b64decode(text), dtype="<f4").reshape(-1, 2).astype(np.float64)


def frames(piece: dict) -> tuple[int, int]:
    """The first frame of a piece that was scheduled, and the first after it."""
    first = piece["startTime"] * RATE
    assert abs(first - round(first)) < 1e-3, f"{piece} begins between two frames"
    return round(first), round(first) + round(piece["duration"] * RATE)


@asynccontextmanager
async def stream_page(browser, address: str, router: str, repository: object, before: str = "", **options):
    """A page that plays a repository's stream; `before` is run in it first, `options` are the player's."""
    async with await browser.new_context() as context:
        await context.add_init_script(before)
        page = StreamPage(await context.new_page())
        await page.page.goto(address)
        await page.page.evaluate(SETUP, [RECORDER, f"{router}/stream-player.js", str(repository), options])
        yield page
