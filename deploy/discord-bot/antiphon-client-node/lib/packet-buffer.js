// The jitter buffer between the network and whoever sends the packets on.

/** An Opus packet of 20 ms without sound: what Discord wants in a pause. */
export const SILENCE = Buffer.from([0xf8, 0xff, 0xfe]);

/** 100 ms: sound begins when so many packets wait. */
export const TARGET_PACKETS = 5;

/** 400 ms: what waits beyond is dropped at once. */
export const MAXIMUM_PACKETS = 20;

/** 5 s: what was never needed for so long is delay without use. */
export const WINDOW_PACKETS = 250;

/**
 * Opus packets of 20 ms, bounded.
 *
 * Sound begins when `target` packets wait, so that it survives as much jitter. Where the taker is the slower clock, or
 * packets came in a burst, more wait than are needed: when the fewest of 5 s were more than the target, what is too many
 * is dropped. Where the taker is the faster clock, the buffer runs empty at last, and fills again.
 */
export class PacketBuffer {
  #packets = [];
  #counters = { received: 0, played: 0, starved: 0, silent: 0, dropped: 0 };
  #isExpected = true;
  #isFilling = true;
  #hasStarved = false;
  #untaken = 0;
  #fewest = Infinity;
  #takenInWindow = 0;

  constructor(target = TARGET_PACKETS, maximum = MAXIMUM_PACKETS) {
    if (!(target >= 1 && target <= maximum)) {
      throw new RangeError(`target ${target} is not between 1 and maximum ${maximum}`);
    }
    this.target = target;
    this.maximum = maximum;
  }

  get length() {
    return this.#packets.length;
  }

  /** What became of the packets: `received` is `played`, `dropped` and what waits. */
  get counters() {
    return { ...this.#counters };
  }

  /** Adds the newest packet; beyond the maximum the oldest are dropped. */
  put(packet) {
    this.#packets.push(packet);
    this.#untaken += 1;
    this.#counters.received += 1;
    // Where nobody takes, what waits is kept fresh, so that who begins to take has no delay to lose.
    const most = this.#untaken > this.maximum ? this.target : this.maximum;
    if (this.length > most) this.#drop(this.length - this.target);
  }

  /** The packet to be sent now, or `SILENCE`. To be called every 20 ms. */
  take() {
    this.#untaken = 0;
    if (this.#isFilling) {
      // What is too little to begin with is played where no more is to come.
      const isFull = this.length >= this.target || (this.length > 0 && !this.#isExpected);
      if (!isFull) return this.#silence();
      this.#begin();
    }
    if (this.length === 0) {
      this.#isFilling = true;
      this.#hasStarved = this.#isExpected;
      return this.#silence();
    }
    this.#counters.played += 1;
    const packet = this.#packets.shift();
    this.#shed();
    return packet;
  }

  /** Says whether packets are to come now. Where not, as in a pause, an empty buffer is not a starved one. */
  expect(sound) {
    this.#isExpected = sound;
  }

  #begin() {
    this.#isFilling = false;
    this.#hasStarved = false;
    this.#fewest = Infinity;
    this.#takenInWindow = 0;
  }

  /**
   * Drops what was not needed in a whole window. In the steady state one less than the target is left after each taking;
   * one more is let be: it comes of the moment in which the taker began.
   */
  #shed() {
    this.#fewest = Math.min(this.#fewest, this.length);
    this.#takenInWindow += 1;
    if (this.#takenInWindow < WINDOW_PACKETS) return;
    this.#drop(Math.max(0, this.#fewest - this.target));
    this.#fewest = Infinity;
    this.#takenInWindow = 0;
  }

  #drop(count) {
    this.#packets.splice(0, count);
    this.#counters.dropped += count;
  }

  #silence() {
    this.#counters[this.#hasStarved ? 'starved' : 'silent'] += 1;
    return SILENCE;
  }
}
