// The pieces that sound in a repository's session, each from the moment it is heard. Pure: time is given.

/** A timed packet's position is counted in 32 bits, which last for seven weeks. */
const WRAP_MS = 2 ** 32;
/** A piece that is said to begin later than this belongs to a time that is over. */
const MAX_AHEAD_MS = 60_000;

export class Pieces {
  /** Newest last: `{music, arrivedMs}`; those that are over are kept no longer than they take. */
  #pieces = [];

  /** Takes a `music` event that came at `nowMs`; anyone who connects anew is told again of what sounds. */
  take(music, nowMs) {
    this.#pieces = [...this.#pieces.filter((each) => each.music.number !== music.number), { music, arrivedMs: nowMs }];
  }

  /** What was begun is not heard to its end: the session was stopped, or begun anew. */
  forget() {
    this.#pieces = [];
  }

  /**
   * What is heard when the session is heard at `heardMs`, newest first: `[{music, elapsedMs}]`. Without sound
   * (`heardMs` is null) a piece goes on from where it was heard last, or counts from its arrival.
   */
  heard(heardMs, nowMs) {
    const timed = this.#pieces.map(({ music, arrivedMs }) => {
      const elapsedMs = heardMs === null || music.position_ms === undefined ? nowMs - arrivedMs
        : distance(music.position_ms, heardMs);
      return { music, elapsedMs };
    });
    this.#pieces = timed.filter(({ music, elapsedMs }) => elapsedMs < music.duration_ms && elapsedMs > -MAX_AHEAD_MS)
      .map(({ music, elapsedMs }) => ({ music, arrivedMs: nowMs - elapsedMs }));
    return timed.filter(({ music, elapsedMs }) => elapsedMs >= 0 && elapsedMs < music.duration_ms).reverse();
  }
}

/** From one position to another, the shorter way round. */
function distance(fromMs, toMs) {
  const differenceMs = (toMs - fromMs) % WRAP_MS;
  if (differenceMs > WRAP_MS / 2) return differenceMs - WRAP_MS;
  return differenceMs < -WRAP_MS / 2 ? differenceMs + WRAP_MS : differenceMs;
}

/** The notes that sound `elapsedMs` after a piece's beginning, as `{role, pitch}`. */
export function soundingNotes({ voices, notes }, elapsedMs) {
  return notes.filter(([, startMs, lengthMs]) => startMs <= elapsedMs && elapsedMs < startMs + lengthMs)
    .map(([voice, , , pitch]) => ({ role: voices[voice]?.role, pitch }));
}

/** How many notes have begun by then. */
export const litCount = ({ notes }, elapsedMs) => notes.filter(([, startMs]) => startMs <= elapsedMs).length;
