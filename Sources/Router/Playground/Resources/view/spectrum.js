// The two choirs: the left channel's spectrum to the left, the right one's to the right, low notes in the
// middle, and under them a level meter for each.

const LOWEST_HZ = 50;
const HIGHEST_HZ = 15_000;
/** One bar for so many pixels of a side. */
const PIXELS_A_BAR = 11;
const GAP = 0.42;
const REST_HEIGHT = 3;
const METER_HEIGHT = 3;
const METER_GAP = 20;
const METER_INNER_GAP = 2;
const METER_FLOOR_DB = -54;
/** How fast the bars and meters fall, in shares of their height a second. */
const FALL_A_SECOND = 1.6;
/** For people who asked for less motion: calm steps. */
const REDUCED_INTERVAL_MS = 600;

export class Spectrum {
  #canvas;
  #output;
  #context;
  #isActive = false;
  #isRunning = false;
  #lastMs = 0;
  #bars = [[], []];
  #levels = [0, 0];
  #colors = {};
  #bins;
  #reducedMotion = matchMedia('(prefers-reduced-motion: reduce)');

  constructor(canvas, output) {
    this.#canvas = canvas;
    this.#output = output;
    this.#context = canvas.getContext('2d');
    this.#bins = new Uint8Array(output.analysers[0].frequencyBinCount);
    new ResizeObserver(() => this.#resize()).observe(canvas);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.#readColors());
    document.addEventListener('visibilitychange', () => this.#wake());
    this.#readColors();
  }

  /** Whether sound is expected; without it the bars fall and the drawing stops. */
  setActive(isActive) {
    this.#isActive = isActive;
    this.#wake();
  }

  #readColors() {
    const style = getComputedStyle(document.documentElement);
    this.#colors = {
      sides: [style.getPropertyValue('--rubric'), style.getPropertyValue('--lapis')],
      rest: style.getPropertyValue('--line'),
    };
    this.#draw();
  }

  #resize() {
    const ratio = devicePixelRatio || 1;
    const { clientWidth, clientHeight } = this.#canvas;
    this.#canvas.width = Math.round(clientWidth * ratio);
    this.#canvas.height = Math.round(clientHeight * ratio);
    this.#context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const count = Math.max(8, Math.floor(clientWidth / 2 / PIXELS_A_BAR));
    this.#bars = [new Array(count).fill(0), new Array(count).fill(0)];
    this.#draw();
  }

  #wake() {
    if (this.#isRunning || document.hidden || !this.#isActive) return;
    this.#isRunning = true;
    this.#lastMs = performance.now();
    this.#next();
  }

  #next() {
    const step = (now) => this.#step(now);
    if (this.#reducedMotion.matches) setTimeout(() => requestAnimationFrame(step), REDUCED_INTERVAL_MS);
    else requestAnimationFrame(step);
  }

  #step(now) {
    const fall = Math.min(1, ((now - this.#lastMs) / 1000) * FALL_A_SECOND);
    this.#lastMs = now;
    const isMoving = [0, 1].map((side) => this.#measure(side, fall)).includes(true);
    this.#draw();
    this.#isRunning = !document.hidden && (this.#isActive || isMoving);
    if (this.#isRunning) this.#next();
  }

  /** Takes one channel's spectrum and level; returns whether anything is still up. */
  #measure(side, fall) {
    this.#output.analysers[side].getByteFrequencyData(this.#bins);
    const bars = this.#bars[side];
    const hzABin = this.#output.context.sampleRate / 2 / this.#bins.length;
    for (let i = 0; i < bars.length; i++) {
      const from = frequencyAt(i / bars.length) / hzABin;
      const to = frequencyAt((i + 1) / bars.length) / hzABin;
      let peak = 0;
      for (let bin = Math.floor(from); bin <= Math.max(Math.floor(from), Math.ceil(to) - 1); bin++) {
        peak = Math.max(peak, this.#bins[bin]);
      }
      bars[i] = Math.max((peak / 255) ** 1.4, bars[i] - fall);
    }
    this.#levels[side] = Math.max(loudness(this.#output.recent(side)), this.#levels[side] - fall);
    return this.#levels[side] > 0 || bars.some((bar) => bar > 0);
  }

  #draw() {
    const { clientWidth: width, clientHeight: height } = this.#canvas;
    const context = this.#context;
    context.clearRect(0, 0, width, height);
    const middle = (height - METER_GAP - METER_HEIGHT) / 2;
    for (const side of [0, 1]) {
      const direction = side === 0 ? -1 : 1;
      const bars = this.#bars[side];
      const pitch = width / 2 / bars.length;
      const barWidth = pitch * (1 - GAP);
      for (let i = 0; i < bars.length; i++) {
        const barHeight = REST_HEIGHT + bars[i] * (middle * 2 - REST_HEIGHT);
        const center = width / 2 + direction * (i + 0.5) * pitch;
        context.fillStyle = bars[i] > 0.005 ? this.#colors.sides[side] : this.#colors.rest;
        context.beginPath();
        context.roundRect(center - barWidth / 2, middle - barHeight / 2, barWidth, barHeight, barWidth / 2);
        context.fill();
      }
      this.#drawMeter(direction, width / 2, height - METER_HEIGHT, this.#levels[side], this.#colors.sides[side]);
    }
  }

  #drawMeter(direction, half, top, level, color) {
    const length = (half - METER_INNER_GAP) * level;
    this.#context.fillStyle = color;
    const left = direction < 0 ? half - METER_INNER_GAP - length : half + METER_INNER_GAP;
    this.#context.fillRect(left, top, length, METER_HEIGHT);
  }
}

/** The frequency at a place (0 to 1) of a side: equal steps sound equally far apart. */
const frequencyAt = (place) => LOWEST_HZ * (HIGHEST_HZ / LOWEST_HZ) ** place;

/** Root mean square on a scale of decibels, 0 to 1. */
function loudness(samples) {
  let sum = 0;
  for (const sample of samples) sum += sample * sample;
  const decibels = 10 * Math.log10(sum / samples.length + 1e-12);
  return Math.max(0, Math.min(1, 1 - decibels / METER_FLOOR_DB));
}
