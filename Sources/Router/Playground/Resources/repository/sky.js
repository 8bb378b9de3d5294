// The sky over a repository: every event is a constellation of its notes, which light up as they are heard, and which
// fades slowly when others have come. The bed is the glow of the two choirs at its sides.

import { constellation } from './constellation.js';
import { drawConstellation } from './sky-brush.js';
import { SkyColors } from './sky-colors.js';

/** Those before are smaller and go to a frieze above the one that sounds: middles and sizes as shares of the sky. */
const PLACES = [0.1, 0.3, 0.5, 0.7, 0.9].map((x) => ({ x, y: 0.09 }));
const FRONT = { x: 0.5, y: 0.6, width: 0.84, height: 0.6, scale: 1 };
const BACK = { width: 0.15, height: 0.13, scale: 0.5 };
const MOVE_MS = 2600;
/** How long a constellation is seen after its piece, and what of it is left while it is in front. */
const FADE_MS = 240_000;
const FRONT_LIGHT = 0.62;
const DIM_MS = 9000;
const BACK_LIGHT = 0.5;
/** Narrower skies have room for the one in front alone. */
const NARROW_PX = 480;
const STAVE_LINES = 4;
const STAVE_STEP = 0.14;
const DUST = 56;
/** For people who asked for less motion: what is there changes, and nothing moves. */
const REDUCED_INTERVAL_MS = 250;
const REDUCED_IDLE_MS = 1500;

export class Sky {
  #canvas;
  #context;
  #colors = new SkyColors();
  #reducedMotion = matchMedia('(prefers-reduced-motion: reduce)');
  /** Oldest first: `{figure, label, elapsed(), overAtMs, slot, from, movedAtMs}`; the one in front has no slot yet. */
  #constellations = [];
  #solo = null;
  #muted = new Set();
  #loudness;
  #glow = 0;
  #lastMs = 0;
  #dust = dust();

  /** `loudness()` gives that of what is heard, 0 to 1. */
  constructor(canvas, { loudness }) {
    this.#canvas = canvas;
    this.#context = canvas.getContext('2d');
    this.#loudness = loudness;
    new ResizeObserver(() => this.#resize()).observe(canvas);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
      this.#colors = new SkyColors();
      this.#draw(performance.now());
    });
    this.#next();
  }

  get isEmpty() {
    return this.#constellations.length === 0;
  }

  /** Another piece begins to sound: it comes to the front. `elapsed()` tells where it is, in milliseconds; null once over. */
  add(music, label, elapsed) {
    const now = performance.now();
    this.#constellations.forEach((each) => this.#moveBack(each, now));
    this.#constellations.push({
      figure: constellation(music), label, elapsed, overAtMs: null, slot: null, from: FRONT,
      movedAtMs: now,
    });
    if (this.#constellations.length > PLACES.length + 1) this.#constellations.shift();
  }

  /** Shows one piece alone, with nights between its days at `marks` (0 to 1); null for the sky as it was. */
  showAlone(music, elapsed, marks = []) {
    this.#solo = music && { figure: constellation(music, music.duration_ms), elapsed, marks, spanMs: music.duration_ms };
  }

  setMuted(roles) {
    this.#muted = new Set(roles);
  }

  #moveBack(each, now) {
    each.from = this.#placeOf(each, now);
    each.slot ??= this.#freeSlot();
    each.movedAtMs = now;
    each.overAtMs ??= now;
  }

  #freeSlot() {
    const taken = new Set(this.#constellations.map(({ slot }) => slot));
    const free = PLACES.findIndex((_, i) => !taken.has(i));
    return free < 0 ? this.#constellations[0].slot ?? 0 : free;
  }

  #resize() {
    const ratio = devicePixelRatio || 1;
    const { clientWidth, clientHeight } = this.#canvas;
    this.#canvas.width = Math.round(clientWidth * ratio);
    this.#canvas.height = Math.round(clientHeight * ratio);
    this.#context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.#draw(performance.now());
  }

  #next() {
    const step = (now) => {
      this.#draw(now);
      this.#next();
    };
    if (!this.#reducedMotion.matches) {
      requestAnimationFrame(step);
      return;
    }
    const isSounding = this.#solo || this.#constellations.at(-1)?.overAtMs === null;
    setTimeout(() => requestAnimationFrame(step), isSounding ? REDUCED_INTERVAL_MS : REDUCED_IDLE_MS);
  }

  #draw(now) {
    const { clientWidth: width, clientHeight: height } = this.#canvas;
    // Nobody sees it.
    if (width === 0) return;
    this.#context.clearRect(0, 0, width, height);
    this.#drawChoirs(width, height, now);
    this.#drawStave(width, height);
    if (this.#solo) {
      this.#drawSolo(width, height);
      return;
    }
    this.#constellations = this.#constellations.filter(({ slot, overAtMs }) => slot === null || now - overAtMs < FADE_MS);
    this.#constellations.forEach((each) => this.#drawOne(each, width, height, now));
  }

  #drawOne(each, width, height, now) {
    const elapsedMs = each.elapsed();
    if (elapsedMs === null) each.overAtMs ??= now;
    const isFront = each.slot === null;
    if (!isFront && width < NARROW_PX) return;
    const place = this.#placeOf(each, now);
    const light = this.#lightOf(each, now);
    const box = {
      x: (place.x - place.width / 2) * width, y: (place.y - place.height / 2) * height,
      width: place.width * width, height: place.height * height, scale: place.scale,
    };
    drawConstellation(this.#context, each.figure, {
      place: box, light, elapsedMs: elapsedMs ?? Infinity, muted: this.#muted, colors: this.#colors,
    });
    if (!isFront) this.#drawLabel(each.label, box, light);
  }

  #drawLabel(label, box, light) {
    const context = this.#context;
    context.globalAlpha = Math.min(1, light * 1.6);
    context.fillStyle = this.#colors.faint;
    context.font = this.#colors.label;
    context.textAlign = 'center';
    context.fillText(label, box.x + box.width / 2, box.y + box.height + 18, box.width * 1.25);
    context.globalAlpha = 1;
  }

  #lightOf({ overAtMs, slot }, now) {
    if (overAtMs === null) return 1;
    const sinceMs = now - overAtMs;
    const fade = 1 - sinceMs / FADE_MS;
    const dimmed = 1 - (1 - FRONT_LIGHT) * Math.min(1, sinceMs / DIM_MS);
    return slot === null ? dimmed * Math.max(0.35, fade) : BACK_LIGHT * Math.max(0, fade);
  }

  /** On its way from where it was to where it belongs. */
  #placeOf({ slot, from, movedAtMs }, now) {
    const goal = slot === null ? FRONT : { ...BACK, ...PLACES[slot] };
    const done = this.#reducedMotion.matches ? 1 : Math.min(1, (now - movedAtMs) / MOVE_MS);
    const eased = done < 0.5 ? 4 * done ** 3 : 1 - (-2 * done + 2) ** 3 / 2;
    return Object.fromEntries(Object.keys(FRONT).map((key) => [key, from[key] + (goal[key] - from[key]) * eased]));
  }

  #drawSolo(width, height) {
    const { figure, elapsed, marks, spanMs } = this.#solo;
    const context = this.#context;
    const place = { x: 0.02 * width, y: 0.12 * height, width: 0.96 * width, height: 0.76 * height, scale: 0.72 };
    context.fillStyle = this.#colors.line;
    for (const mark of marks) context.fillRect(place.x + mark * place.width, 0.05 * height, 1, 0.9 * height);
    const elapsedMs = elapsed();
    drawConstellation(context, figure, { place, light: 1, elapsedMs, muted: new Set(), colors: this.#colors });
    const x = place.x + Math.min(1, elapsedMs / spanMs) * place.width;
    context.globalAlpha = 0.4;
    context.fillStyle = this.#colors.faint;
    context.fillRect(x, 0.05 * height, 1, 0.9 * height);
    context.globalAlpha = 1;
  }

  /** The four lines of an antiphonary. */
  #drawStave(width, height) {
    const context = this.#context;
    context.strokeStyle = this.#colors.line;
    context.lineWidth = 1;
    for (let i = 0; i < STAVE_LINES; i++) {
      const y = Math.round(height * (FRONT.y + STAVE_STEP * (i - (STAVE_LINES - 1) / 2))) + 0.5;
      context.globalAlpha = 0.55;
      context.beginPath();
      context.moveTo(0, y);
      context.lineTo(width, y);
      context.stroke();
    }
    context.globalAlpha = 1;
  }

  /** As bright as the sound is loud, calmly: the bed breathes here. */
  #drawChoirs(width, height, now) {
    const seconds = Math.min(0.2, (now - this.#lastMs) / 1000);
    this.#lastMs = now;
    const goal = Math.min(1, this.#loudness() * 5);
    this.#glow += (goal - this.#glow) * (1 - Math.exp(-seconds * 1.6));
    const context = this.#context;
    // Rubric for the choir at the left, lapis for the one at the right.
    for (const [role, x] of [['melody', 0], ['harmony', 1]]) {
      context.globalAlpha = 0.1 + 0.3 * this.#glow;
      const [across, down] = [width * (0.45 + 0.15 * this.#glow), height * (0.5 + 0.1 * this.#glow)];
      context.drawImage(this.#colors.halo(role), x * width - across, 0.54 * height - down, 2 * across, 2 * down);
    }
    const isStill = this.#reducedMotion.matches;
    context.fillStyle = this.#colors.faint;
    for (const { x, y, size, phase } of this.#dust) {
      const twinkle = isStill ? 0.6 : 0.5 + 0.5 * Math.sin(now / 2300 + phase);
      context.globalAlpha = (0.1 + 0.4 * this.#glow) * twinkle;
      context.fillRect(x * width, y * height, size, size);
    }
    context.globalAlpha = 1;
  }
}

/** Stars of the background, the same at every visit. */
function dust() {
  let seed = 7;
  const random = () => {
    seed = (seed * 16_807) % 2_147_483_647;
    return seed / 2_147_483_647;
  };
  return Array.from({ length: DUST }, () => ({ x: random(), y: random(), size: 0.8 + random(), phase: 6.28 * random() }));
}
