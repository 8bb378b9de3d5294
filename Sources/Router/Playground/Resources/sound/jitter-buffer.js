// The adaptive jitter buffer: decoded sound comes in when the network brings it and goes out when the sound
// card asks. Plain arithmetic without Web Audio, so that it can be tested anywhere.
//
// It waits until `targetMs` of sound are there, then plays. The target follows the jitter measured on
// arrival, grows when the sound ran dry, and shrinks slowly. The level is led to the target by playing
// 0.3 % faster or slower (5 cents: nobody hears it), or, far over it, by skipping with a cross-fade.
// Whatever starts, stops or jumps is faded over 5 ms, so that nothing clicks.

const FRAMES_PER_MS = 48;
export const SAMPLE_RATE = 48_000;

const MIN_TARGET_MS = 60;
const MAX_TARGET_MS = 500;
/** One packet and a margin for the granularity of the sound card's callbacks, added to the jitter. */
const BASE_TARGET_MS = 35;
/** What an underrun multiplies the target by. */
const UNDERRUN_GROWTH = 1.5;
const JITTER_DECAY_MS_PER_S = 3;
/** The shortest transit of the last one to two of these windows is "no jitter". */
const TRANSIT_WINDOW_S = 10;

/** The level is led back when it is further than this from the target, until it is nearer than the second. */
const LEVEL_TOLERANCE_MS = 25;
const LEVEL_REACHED_MS = 4;
const CORRECTION = 0.003;
/** Over this, leading back would take minutes: skip. */
const SKIP_OVER_MS = 120;
const LEVEL_AVERAGING_S = 0.5;
/** Sound arrives two packets at a time: the level is on average half of that under the level at arrival. */
const HALF_MESSAGE_MS = 20;

const FADE_FRAMES = 5 * FRAMES_PER_MS;
/** Cubic interpolation reads two frames ahead and one behind. */
const INTERPOLATION_AHEAD = 2;

/** 5.4 s, a power of two: more than the longest burst a server sends on joining. */
const CAPACITY_FRAMES = 2 ** 18;
const MASK = CAPACITY_FRAMES - 1;
/** Never filled to the last frame: some history is needed behind the read position. */
const MAX_LEVEL_FRAMES = CAPACITY_FRAMES - SAMPLE_RATE;
/** Pushes remembered with their times; a push is 20 ms except for odd first frames. */
const SEGMENTS = 1024;

export class JitterBuffer {
  targetMs = MIN_TARGET_MS;
  underruns = 0;
  skips = 0;
  playing = false;

  #left = new Float32Array(CAPACITY_FRAMES);
  #right = new Float32Array(CAPACITY_FRAMES);
  /** Absolute frame numbers; `#read` has a fraction while the speed is being corrected. */
  #write = 0;
  #read = 0;
  #rate = 1;
  #correcting = false;
  #averageLevelMs = 0;
  /** The end of what is to come has been announced: running dry is not an underrun. */
  #draining = false;
  #fadeInDone = 0;

  /** What fades out beside the new sound. */
  #tailLeft = new Float32Array(FADE_FRAMES);
  #tailRight = new Float32Array(FADE_FRAMES);
  #tailAt = FADE_FRAMES;

  #segmentStart = new Float64Array(SEGMENTS);
  #segmentDueMs = new Float64Array(SEGMENTS);
  #segmentPositionMs = new Float64Array(SEGMENTS);
  #firstSegment = 0;
  #endSegment = 0;

  #jitterMs = 0;
  #minTransitMs = Infinity;
  #previousMinTransitMs = Infinity;
  #windowStartS = 0;

  get bufferedMs() {
    return Math.max(0, this.#write - this.#read) / FRAMES_PER_MS;
  }

  /**
   * Takes `left.length` frames that are due at `dueMs` and lie at `positionMs` of the track. `nowMs` is the
   * sound card's time, or null when the arrival says nothing about jitter (a burst on joining).
   */
  push(left, right, dueMs, positionMs, nowMs) {
    if (nowMs !== null) this.#measure(nowMs - dueMs, nowMs / 1000);
    const segment = this.#endSegment++ % SEGMENTS;
    if (this.#endSegment - this.#firstSegment > SEGMENTS) this.#firstSegment = this.#endSegment - SEGMENTS;
    this.#segmentStart[segment] = this.#write;
    this.#segmentDueMs[segment] = dueMs;
    this.#segmentPositionMs[segment] = positionMs;
    for (let i = 0; i < left.length; i++) {
      const at = (this.#write + i) & MASK;
      this.#left[at] = left[i];
      this.#right[at] = right[i];
    }
    this.#write += left.length;
    this.#draining = false;
    // Nobody takes anything while the browser holds the sound card back.
    if (this.#write - this.#read > MAX_LEVEL_FRAMES) this.#read = this.#write - this.targetMs * FRAMES_PER_MS;
  }

  /** Nothing follows for now: play what is there, then be silent. */
  drain() {
    this.#draining = true;
  }

  /** What is buffered must not be heard any more. */
  flush() {
    if (this.playing) this.#fadeOut(-1);
    this.playing = false;
    this.#draining = false;
    this.#read = this.#write;
    this.#rate = 1;
    this.#correcting = false;
  }

  /** The track position at the read position, or null when nothing sounds. */
  get positionMs() {
    return this.#lookUp(this.#segmentPositionMs);
  }

  /** The due time at the read position, or null when nothing sounds. */
  get dueMs() {
    return this.#lookUp(this.#segmentDueMs);
  }

  /** Fills the sound card's arrays. Allocates nothing. */
  pull(outLeft, outRight) {
    const frames = outLeft.length;
    outLeft.fill(0);
    outRight.fill(0);
    if (!this.playing) this.#startIfReady();
    let done = 0;
    if (this.playing) {
      this.#adjustRate(frames);
      done = this.#play(outLeft, outRight, frames);
    }
    this.#mixTail(outLeft, outRight, done < frames ? done : 0);
  }

  #startIfReady() {
    const level = this.#write - this.#read;
    const target = this.targetMs * FRAMES_PER_MS;
    if (level < target && !(this.#draining && level > 0)) return;
    if (level > target) this.#read = this.#write - Math.round(target);
    this.#averageLevelMs = this.bufferedMs - HALF_MESSAGE_MS;
    this.#fadeInDone = 0;
    this.playing = true;
  }

  /** Plays until the frames are full or the sound runs dry; returns how many were played. */
  #play(outLeft, outRight, frames) {
    for (let i = 0; i < frames; i++) {
      const whole = Math.floor(this.#read);
      const fraction = this.#read - whole;
      const ahead = fraction > 0 ? INTERPOLATION_AHEAD : 0;
      if (whole + ahead >= this.#write) {
        this.#underrun();
        return i;
      }
      let gain = 1;
      if (this.#fadeInDone < FADE_FRAMES) gain = this.#fadeInDone++ / FADE_FRAMES;
      if (fraction > 0) {
        outLeft[i] = gain * interpolate(this.#left, whole, fraction);
        outRight[i] = gain * interpolate(this.#right, whole, fraction);
      } else {
        outLeft[i] = gain * this.#left[whole & MASK];
        outRight[i] = gain * this.#right[whole & MASK];
      }
      this.#advance();
    }
    return frames;
  }

  #advance() {
    this.#read += this.#rate;
    if (this.#rate === 1 || this.#correcting) return;
    // Back to the sound as it is, without interpolation, once the fraction has come round to nothing.
    const nearest = Math.round(this.#read);
    if (Math.abs(this.#read - nearest) <= CORRECTION) {
      this.#read = nearest;
      this.#rate = 1;
    }
  }

  #underrun() {
    if (!this.#draining) {
      this.underruns += 1;
      this.#jitterMs = Math.min(MAX_TARGET_MS, this.targetMs * UNDERRUN_GROWTH) - BASE_TARGET_MS;
      this.#setTarget();
    }
    this.#fadeOut(-1);
    this.playing = false;
    this.#draining = false;
    this.#read = this.#write;
    this.#rate = 1;
    this.#correcting = false;
  }

  /** Decides about speed, once a call of the sound card. */
  #adjustRate(frames) {
    const seconds = frames / SAMPLE_RATE;
    this.#jitterMs = Math.max(0, this.#jitterMs - JITTER_DECAY_MS_PER_S * seconds);
    this.#setTarget();
    const share = Math.min(1, seconds / LEVEL_AVERAGING_S);
    this.#averageLevelMs += (this.bufferedMs - this.#averageLevelMs) * share;
    // Towards its end the level falls because nothing follows, not because it was set wrongly.
    if (this.#draining) return;
    const excessMs = this.#averageLevelMs - (this.targetMs - HALF_MESSAGE_MS);
    if (excessMs > SKIP_OVER_MS) {
      this.#skip();
    } else if (Math.abs(excessMs) > LEVEL_TOLERANCE_MS) {
      this.#correcting = true;
      this.#rate = 1 + Math.sign(excessMs) * CORRECTION;
    } else if (Math.abs(excessMs) < LEVEL_REACHED_MS) {
      this.#correcting = false;
    }
  }

  #skip() {
    this.#fadeOut(1);
    this.#read = this.#write - Math.round(this.targetMs * FRAMES_PER_MS);
    this.#rate = 1;
    this.#correcting = false;
    this.#averageLevelMs = this.targetMs - HALF_MESSAGE_MS;
    this.#fadeInDone = 0;
    this.skips += 1;
  }

  /**
   * Lets the sound at the read position fade: onwards (`step` 1), or, where nothing follows, mirrored
   * backwards (`step` −1), which goes on without a jump.
   */
  #fadeOut(step) {
    const from = Math.floor(this.#read) - (step < 0 ? 1 : 0);
    const level = Math.min(1, this.#fadeInDone / FADE_FRAMES);
    for (let i = 0; i < FADE_FRAMES; i++) {
      const at = (from + step * i) & MASK;
      const gain = level * (1 - i / FADE_FRAMES);
      this.#tailLeft[i] = gain * this.#left[at];
      this.#tailRight[i] = gain * this.#right[at];
    }
    this.#tailAt = 0;
  }

  #mixTail(outLeft, outRight, from) {
    for (let i = from; i < outLeft.length && this.#tailAt < FADE_FRAMES; i++, this.#tailAt++) {
      outLeft[i] += this.#tailLeft[this.#tailAt];
      outRight[i] += this.#tailRight[this.#tailAt];
    }
  }

  #measure(transitMs, nowS) {
    if (nowS - this.#windowStartS > TRANSIT_WINDOW_S || nowS < this.#windowStartS) {
      this.#previousMinTransitMs = this.#minTransitMs;
      this.#minTransitMs = transitMs;
      this.#windowStartS = nowS;
    }
    this.#minTransitMs = Math.min(this.#minTransitMs, transitMs);
    const jitterMs = transitMs - Math.min(this.#minTransitMs, this.#previousMinTransitMs);
    if (jitterMs > this.#jitterMs) {
      this.#jitterMs = Math.min(jitterMs, MAX_TARGET_MS - BASE_TARGET_MS);
      this.#setTarget();
    }
  }

  #setTarget() {
    this.targetMs = Math.min(MAX_TARGET_MS, Math.max(MIN_TARGET_MS, BASE_TARGET_MS + this.#jitterMs));
  }

  #lookUp(values) {
    if (!this.playing) return null;
    while (this.#firstSegment + 1 < this.#endSegment
      && this.#segmentStart[(this.#firstSegment + 1) % SEGMENTS] <= this.#read) {
      this.#firstSegment += 1;
    }
    const segment = this.#firstSegment % SEGMENTS;
    return values[segment] + (this.#read - this.#segmentStart[segment]) / FRAMES_PER_MS;
  }
}

/** Catmull-Rom through the four frames around the place. */
function interpolate(samples, whole, t) {
  const a = samples[(whole - 1) & MASK];
  const b = samples[whole & MASK];
  const c = samples[(whole + 1) & MASK];
  const d = samples[(whole + 2) & MASK];
  return b + 0.5 * t * (c - a + t * (2 * a - 5 * b + 4 * c - d + t * (3 * (b - c) + d - a)));
}
