// The jitter buffer between the network and the player that sends the packets on.

/** An Opus packet of 20 ms without sound: what Discord wants in a pause. */
export const SILENCE = Buffer.from([0xf8, 0xff, 0xfe]);

/** 100 ms: sound begins when so many packets wait. */
export const TARGET_PACKETS = 5;

/** 400 ms: what waits beyond is dropped at once. */
export const MAXIMUM_PACKETS = 20;

/** 5 s: what was never needed for so long is delay without use. */
export const WINDOW_PACKETS = 250;

/** 20 s: how long packets wait is looked at in the mean of so many, and corrected once in so many at most. */
export const DRIFT_PACKETS = 1_000;

/** Three quarters of a packet: clocks have drifted where packets wait so much longer or shorter than they used to. */
export const DRIFT_MS = 15;

/**
 * Opus packets of 20 ms, bounded.
 *
 * Sound begins when `target` packets wait, so that it survives as much jitter. When it runs empty, it fills again. Where
 * packets came in a burst, more wait than are needed: when the fewest of 5 s were more than the target, what is too many
 * is dropped.
 *
 * No two clocks are quite alike, so that packets come to wait longer or shorter than at the beginning. One packet is then
 * dropped, or given once more, which is hard to hear; with clocks that differ by 100 ppm that is one in 200 s. What counts
 * is the time: how many packets wait may change from one moment to the next where clocks are alike, too.
 */
export class PacketBuffer {
  // Each with the time at which it was put in.
  #packets = [];
  #counters = { received: 0, played: 0, starved: 0, silent: 0, dropped: 0, repeated: 0 };
  #clock;
  #isExpected = true;
  #isFilling = true;
  #hasStarved = false;
  #untaken = 0;
  #fewest = Infinity;
  #takenInWindow = 0;
  /** To be given once more. */
  #again = null;
  /** How long packets waited in the mean, when the sound began. */
  #usualMs = null;
  #waitedMs = 0;
  #takenInDrift = 0;

  /** `clock` gives milliseconds, from any beginning. */
  constructor(target = TARGET_PACKETS, maximum = MAXIMUM_PACKETS, clock = () => performance.now()) {
    if (!(target >= 1 && target <= maximum)) {
      throw new RangeError(`target ${target} is not between 1 and maximum ${maximum}`);
    }
    this.target = target;
    this.maximum = maximum;
    this.#clock = clock;
  }

  get length() {
    return this.#packets.length;
  }

  /** What became of the packets: `received` is `played`, `dropped` and what waits; each `repeated` was taken once more. */
  get counters() {
    return { ...this.#counters };
  }

  /** Adds the newest packet; beyond the maximum the oldest are dropped. */
  put(packet) {
    this.#packets.push([packet, this.#clock()]);
    this.#untaken += 1;
    this.#counters.received += 1;
    // Where nobody takes, what waits is kept fresh, so that who begins to take has no delay to lose.
    const most = this.#untaken > this.maximum ? this.target : this.maximum;
    if (this.length > most) this.#cut(this.length - this.target);
  }

  /** The packet to be sent now, or `SILENCE`. To be called every 20 ms. */
  take() {
    this.#untaken = 0;
    if (this.#again !== null) {
      const again = this.#again;
      this.#again = null;
      this.#counters.repeated += 1;
      return again;
    }
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
    const [packet, sinceMs] = this.#packets.shift();
    this.#shed();
    this.#follow(packet, this.#clock() - sinceMs);
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
    this.#forget();
  }

  /**
   * Drops what was not needed in a whole window. In the steady state one less than the target is left after each taking;
   * one more is let be: it comes of the moment in which the taker began.
   */
  #shed() {
    this.#fewest = Math.min(this.#fewest, this.length);
    this.#takenInWindow += 1;
    if (this.#takenInWindow < WINDOW_PACKETS) return;
    if (this.#fewest > this.target) this.#cut(this.#fewest - this.target);
    this.#fewest = Infinity;
    this.#takenInWindow = 0;
  }

  /** Makes up for clocks that drift: one packet once in a while, where the mean has left its band. */
  #follow(packet, waitedMs) {
    this.#waitedMs += waitedMs;
    this.#takenInDrift += 1;
    if (this.#takenInDrift < DRIFT_PACKETS) return;
    const meanMs = this.#waitedMs / this.#takenInDrift;
    this.#waitedMs = 0;
    this.#takenInDrift = 0;
    if (this.#usualMs === null) this.#usualMs = meanMs;
    else if (meanMs < this.#usualMs - DRIFT_MS) this.#again = packet;
    else if (meanMs > this.#usualMs + DRIFT_MS && this.length > 0) this.#drop(1);
  }

  /** Drops what came in a burst: what waits then is what is usual. */
  #cut(count) {
    this.#drop(count);
    this.#forget();
  }

  #forget() {
    this.#again = null;
    this.#usualMs = null;
    this.#waitedMs = 0;
    this.#takenInDrift = 0;
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
