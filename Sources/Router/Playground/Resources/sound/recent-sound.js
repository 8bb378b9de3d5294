// The last ten seconds of decoded sound since it last began, as one channel, for measuring.

const SAMPLE_RATE = 48_000;
const CAPACITY = 10 * SAMPLE_RATE;

export class RecentSound {
  #samples = new Float32Array(CAPACITY);
  #count = 0;
  /** The position in the track at which the newest sample ends. */
  endMs = 0;

  /** Takes sound that begins at a position of the track. */
  add(left, right, positionMs) {
    this.endMs = positionMs + (1000 * left.length) / SAMPLE_RATE;
    for (let i = 0; i < left.length; i++) {
      this.#samples[this.#count++ % CAPACITY] = 0.5 * (left[i] + right[i]);
    }
  }

  clear() {
    this.#count = 0;
  }

  /** The newest `seconds` of it; null when there is less. */
  last(seconds) {
    const length = Math.max(0, Math.min(Math.round(seconds * SAMPLE_RATE), CAPACITY));
    if (length > this.#count) return null;
    const from = this.#count - length;
    return Float32Array.from({ length }, (_, i) => this.#samples[(from + i) % CAPACITY]);
  }
}
