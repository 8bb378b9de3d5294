// The commands that change the queue, in portions that the server takes.

import { listQueue } from './rest.js';

/** A command's limits: in tracks, and in bytes with room for its other fields (64 KiB is the most). */
const MAX_TRACKS = 500;
const MAX_BYTES = 56 * 1024;
const PAGE = 100;

export class QueueCommands {
  #ask;
  #session;
  #snapshot;

  /** `ask(command)` resolves with the answer; what is refused has been shown then. */
  constructor(ask, session, snapshot) {
    this.#ask = ask;
    this.#session = session;
    this.#snapshot = snapshot;
  }

  /** Adds tracks, at the end or at a position of what waits; resolves with how many were taken. */
  async add(tracks, position = null) {
    let count = 0;
    for (const portion of portions(tracks.map(fieldsOf))) {
      const place = position === null ? {} : { position: position + count };
      const what = portion.length === 1 ? portion[0] : { tracks: portion };
      const answer = await this.#ask({ type: 'queue_add', ...what, ...place });
      if (answer.type === 'error') break;
      count += portion.length;
    }
    return count;
  }

  /** Plays a track at once, from a place in it, as loud and as good as the session is; what waits goes on waiting. */
  playNow({ url }, startMs = 0) {
    const { volume, queue } = this.#snapshot;
    const quality = queue.bitrateKbps ? { bitrate_kbps: queue.bitrateKbps } : {};
    return this.#ask({ type: 'play', url, start_ms: startMs, volume, ...quality });
  }

  move(id, position) {
    return this.#ask({ type: 'queue_move', id, position });
  }

  remove(id) {
    return this.#ask({ type: 'queue_remove', id });
  }

  skipTo(id) {
    return this.#ask({ type: 'skip_to', id });
  }

  shuffle() {
    return this.#ask({ type: 'queue_shuffle' });
  }

  clear() {
    return this.#ask({ type: 'queue_clear' });
  }

  /** All that waits, page by page; null where it cannot be had. */
  async list(total) {
    const tracks = [];
    for (let offset = 0; offset < total; offset += PAGE) {
      const page = await listQueue(this.#session, offset, PAGE);
      if (page.error) return null;
      tracks.push(...page.tracks);
    }
    return tracks;
  }
}

/** What the server keeps of a track; what is not known is left out. */
function fieldsOf({ url, title, artist, duration_ms: duration, artwork, thumbnail }) {
  const fields = { url, title, artist, duration_ms: duration, artwork: artwork ?? thumbnail };
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined && value !== null));
}

function portions(tracks) {
  const encoder = new TextEncoder();
  const all = [];
  let bytes = Infinity;
  for (const track of tracks) {
    const size = encoder.encode(JSON.stringify(track)).length + 1;
    if (bytes + size > MAX_BYTES || all.at(-1).length === MAX_TRACKS) {
      all.push([]);
      bytes = 0;
    }
    all.at(-1).push(track);
    bytes += size;
  }
  return all;
}
