// Keeps count of the session's packets: which are new, how many are missing, and which gaps to conceal.

/** Longer gaps have been heard as silence already; filling them up would only make the sound late. */
const MAX_CONCEALED = 5;
/** A step further than this is another count (a restarted server), not a loss. */
const MAX_PLAUSIBLE_GAP = 1000;
/** A packet this much older than the last one is of another clock, not a repetition. */
const MAX_REPEATED_MS = 30_000;

export class PacketOrder {
  received = 0;
  lost = 0;
  #lastSequence = null;
  #lastDueMs = -Infinity;

  /**
   * Takes a packet's header. Returns how many packets to conceal before it, or -1 when the packet has been
   * here before: after a reconnect the server repeats the last half second.
   */
  take({ sequence, dueMs }) {
    const missing = this.#lastSequence === null ? 0 : (sequence - this.#lastSequence - 1) >>> 0;
    const isOlder = dueMs <= this.#lastDueMs && this.#lastDueMs - dueMs < MAX_REPEATED_MS;
    if (missing !== 0 && isOlder) return -1;
    this.#lastSequence = sequence;
    this.#lastDueMs = dueMs;
    this.received += 1;
    if (missing > MAX_PLAUSIBLE_GAP) return 0;
    this.lost += missing;
    return missing <= MAX_CONCEALED ? missing : 0;
  }
}
