// Estimates the engine's clock (CLOCK_MONOTONIC) from pings.
//
// Of the last pings the one with the shortest round trip is believed: it waited least in queues, so its
// middle is closest to the moment the engine read its clock.

const SAMPLES_KEPT = 16;

/** Milliseconds since the Unix epoch with the resolution of performance.now; the same in page and worker. */
export const localNowMs = () => performance.timeOrigin + performance.now();

export class EngineClock {
  #samples = [];

  /** Takes one ping: sent and received by localNowMs, and what the engine's clock said in between. */
  add(sentMs, receivedMs, engineMs) {
    this.#samples.push({
      roundTripMs: receivedMs - sentMs,
      offsetMs: engineMs - (sentMs + receivedMs) / 2,
    });
    if (this.#samples.length > SAMPLES_KEPT) this.#samples.shift();
  }

  /** What to add to localNowMs to have the engine's clock; null before the first answer. */
  get offsetMs() {
    return this.#best?.offsetMs ?? null;
  }

  get roundTripMs() {
    return this.#best?.roundTripMs ?? null;
  }

  /** Another connection may lead to another machine. */
  forget() {
    this.#samples = [];
  }

  get #best() {
    let best = null;
    for (const sample of this.#samples) {
      if (!best || sample.roundTripMs < best.roundTripMs) best = sample;
    }
    return best;
  }
}
