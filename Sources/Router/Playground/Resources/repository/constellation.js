// Where the notes of a piece stand in the sky: from left to right in time, from bottom to top in pitch, the drums
// below all others. Pure: everything lies between 0 and 1.

/** Voices of a piece span at least this many semitones, so that a drone does not fill the sky. */
const LEAST_SPAN = 26;
/** What lies above the drums. */
const TONES_HEIGHT = 0.82;
const DRUMS_TOP = 0.89;
const DRUMS_HEIGHT = 0.1;
/** General MIDI's drums, low to high, as people hear them. */
const DRUM_LANES = [[36, 1], [38, 0.55], [40, 0.55]];
const LAST_NOTE_MS = 1500;
/** Notes this close begin together: a chord. */
const TOGETHER_MS = 30;
/** Lines are drawn from note to note, but not across a longer rest. */
const LONGEST_LINE_MS = 2500;
/** Roles that are drawn as a line in time; the others as chords. */
const LINEAR = new Set(['melody', 'bass']);

/**
 * `{stars, lines}` of `voices` (`[{role}]`) and `notes` (`[[voice, start_ms, length_ms, pitch, velocity]…]`), of which
 * `spanMs` lie from left to right: as a rule all, but not the whole of a long last one.
 * A star: `{role, x, y, endX, startMs, endMs, size}`; a line goes from star to star: `[from, to]`.
 */
export function constellation({ voices, notes }, spanMs = lastOf(notes)) {
  const height = pitchScale(voices, notes);
  const stars = notes.map(([voice, startMs, lengthMs, pitch, velocity]) => {
    const role = voices[voice]?.role ?? 'melody';
    return {
      voice, role, pitch, startMs, endMs: startMs + lengthMs,
      x: startMs / spanMs, endX: Math.min(1, (startMs + lengthMs) / spanMs),
      y: role === 'percussion' ? drumHeight(pitch) : height(pitch), size: velocity / 127,
    };
  }).sort((a, b) => a.startMs - b.startMs || a.pitch - b.pitch);
  const lines = voices.flatMap((_, voice) => linesOf(stars.filter((star) => star.voice === voice)));
  return { stars, lines };
}

const lastOf = (notes) =>
  Math.max(1, ...notes.map(([, startMs, lengthMs]) => startMs + Math.min(lengthMs, LAST_NOTE_MS)));

function pitchScale(voices, notes) {
  const pitches = notes.filter(([voice]) => voices[voice]?.role !== 'percussion').map(([, , , pitch]) => pitch);
  const [low, high] = pitches.length ? [Math.min(...pitches), Math.max(...pitches)] : [60, 60];
  const span = Math.max(LEAST_SPAN, high - low);
  const bottom = (low + high - span) / 2;
  return (pitch) => TONES_HEIGHT * (1 - (pitch - bottom) / span);
}

function drumHeight(pitch) {
  const [, lane] = DRUM_LANES.find(([drum]) => drum >= pitch) ?? [0, 0];
  return DRUMS_TOP + DRUMS_HEIGHT * lane;
}

function linesOf(stars) {
  const role = stars[0]?.role;
  if (!role || role === 'percussion') return [];
  return stars.slice(1).map((star, i) => [stars[i], star]).filter(([from, to]) => {
    const isTogether = to.startMs - from.startMs < TOGETHER_MS;
    return LINEAR.has(role) ? !isTogether && to.startMs - from.startMs < LONGEST_LINE_MS : isTogether;
  });
}
