// Draws one constellation: what is to come as faint points, what sounds as light, what has sounded as stars.

const ATTACK_MS = 60;
const RELEASE_MS = 1100;
const STAR_PX = 2.1;
/** Added to a star's radius by its loudness. */
const LOUD_PX = 2.9;
const HALO_RADII = 6.5;
const POINT_PX = 1.5;
const FULL_TURN = 2 * Math.PI;

/**
 * `place` is `{x, y, width, height, scale}` in pixels; `light` 0 to 1 is how much of the constellation is left;
 * `muted` are roles that are not heard. `elapsedMs` is where in the piece it is.
 */
export function drawConstellation(context, { stars, lines }, { place, light, elapsedMs, muted, colors }) {
  const at = ({ x, y }) => [place.x + x * place.width, place.y + y * place.height];
  const lightOf = (role) => (muted.has(role) ? 0.25 : 1) * light;
  context.lineWidth = Math.max(0.6, 1.1 * place.scale);
  for (const [from, to] of lines) drawLine(context, from, to, at, elapsedMs, lightOf(from.role) * 0.42, colors);
  for (const star of stars) {
    const [x, y] = at(star);
    if (elapsedMs < star.startMs) drawPoint(context, x, y, lightOf(star.role), place.scale, colors.ink(star.role));
    else drawStar(context, star, x, y, { place, light: lightOf(star.role), elapsedMs, colors });
  }
  context.globalAlpha = 1;
}

/** It grows towards the note to come, and is there when that sounds. */
function drawLine(context, from, to, at, elapsedMs, alpha, colors) {
  const done = Math.min(1, (elapsedMs - from.startMs) / Math.max(1, to.startMs - from.startMs));
  if (done <= 0) return;
  const [[x0, y0], [x1, y1]] = [at(from), at(to)];
  context.globalAlpha = alpha;
  context.strokeStyle = colors.ink(from.role);
  context.beginPath();
  context.moveTo(x0, y0);
  context.lineTo(x0 + (x1 - x0) * done, y0 + (y1 - y0) * done);
  context.stroke();
}

function drawPoint(context, x, y, light, scale, ink) {
  context.globalAlpha = 0.45 * light;
  context.fillStyle = ink;
  context.beginPath();
  context.arc(x, y, Math.max(0.7, POINT_PX * scale), 0, FULL_TURN);
  context.fill();
}

function drawStar(context, star, x, y, { place, light, elapsedMs, colors }) {
  const glow = glowOf(star, elapsedMs);
  const radius = (STAR_PX + LOUD_PX * star.size) * place.scale;
  const ink = colors.ink(star.role);
  if (glow > 0.01) {
    const reach = radius * HALO_RADII * (0.75 + 0.5 * star.size);
    context.globalAlpha = 0.75 * glow * light;
    context.drawImage(colors.halo(star.role), x - reach, y - reach, 2 * reach, 2 * reach);
  }
  if (star.role !== 'percussion') drawTail(context, star, x, y, { place, light, elapsedMs, ink, glow });
  context.globalAlpha = light * (0.72 + 0.28 * glow);
  context.fillStyle = context.strokeStyle = ink;
  const size = radius * (0.8 + 0.45 * glow);
  context.beginPath();
  SHAPES[star.role](context, x, y, size);
  if (star.role === 'percussion') context.stroke();
  else context.fill();
}

/** How long the note is held, as far as it has been. */
function drawTail(context, star, x, y, { place, light, elapsedMs, ink, glow }) {
  const share = Math.min(1, (elapsedMs - star.startMs) / Math.max(1, star.endMs - star.startMs));
  context.globalAlpha = light * (0.2 + 0.3 * glow);
  context.strokeStyle = ink;
  context.beginPath();
  context.moveTo(x, y);
  context.lineTo(x + (star.endX - star.x) * share * place.width, y);
  context.stroke();
}

/** 0 to 1: up in a moment, down a little while it is held, and slowly gone when it is let go. */
function glowOf({ startMs, endMs }, elapsedMs) {
  const sinceMs = elapsedMs - startMs;
  if (sinceMs < ATTACK_MS) return sinceMs / ATTACK_MS;
  const held = 0.5 + 0.5 * Math.exp(-sinceMs / 900);
  return elapsedMs < endMs ? held : held * Math.max(0, 1 - (elapsedMs - endMs) / RELEASE_MS) ** 2;
}

/** Each voice has a shape of its own, for people who do not tell the inks apart; also on the voices' buttons. */
const SHAPES = {
  melody(context, x, y, size) {
    const reach = size * 1.35;
    context.moveTo(x, y - reach);
    context.lineTo(x + reach, y);
    context.lineTo(x, y + reach);
    context.lineTo(x - reach, y);
  },
  harmony(context, x, y, size) {
    context.arc(x, y, size, 0, FULL_TURN);
  },
  bass(context, x, y, size) {
    context.rect(x - size * 1.1, y - size * 0.75, size * 2.2, size * 1.5);
  },
  percussion(context, x, y, size) {
    context.moveTo(x - size * 0.8, y - size * 0.8);
    context.lineTo(x + size * 0.8, y + size * 0.8);
    context.moveTo(x + size * 0.8, y - size * 0.8);
    context.lineTo(x - size * 0.8, y + size * 0.8);
  },
  bed(context, x, y, size) {
    context.arc(x, y, size * 0.7, 0, FULL_TURN);
  },
};
