import { EventEmitter } from 'node:events';

/**
 * The commands as docs/http-and-websocket.md has them, with its names for the fields. Each resolves with its answer, or
 * rejects with an AntiphonError.
 */
export class Commands extends EventEmitter {
  /** Plays at once, in place of what plays; resolves with `ready` when there is sound, which may take seconds. */
  play(url, fields = {}) {
    return this.command('play', { ...fields, url });
  }

  pause() {
    return this.command('pause');
  }

  resume() {
    return this.command('resume');
  }

  /** Ends what plays; the queue waits. */
  stop() {
    return this.command('stop');
  }

  seek(positionMs) {
    return this.command('seek', { position_ms: positionMs });
  }

  /** Sets the linear gain, 0 to 10; it stays from track to track. */
  volume(level) {
    return this.command('volume', { level });
  }

  /** Sets what later tracks are encoded with: 8 to 510 kbit/s, or null for the engine's own. */
  quality(bitrateKbps) {
    return this.command('quality', { bitrate_kbps: bitrateKbps });
  }

  /** The session object in `session`; with its chapters. */
  status() {
    return this.command('status');
  }

  /** Why it is silent: `summary` is a sentence for people. */
  why() {
    return this.command('why');
  }

  /** A page of what waits. */
  queue(offset = 0, limit = 100) {
    return this.command('queue', { offset, limit });
  }

  /**
   * Adds one of `url`, `query` (a link or words to be searched for) and `tracks` (1 to 500, each with `url`). Where
   * nothing plays, the first plays at once. The answer's `queue.added` has the new entries' IDs.
   */
  queueAdd(fields) {
    return this.command('queue_add', fields);
  }

  queueRemove(id) {
    return this.command('queue_remove', { id });
  }

  /** Moves an entry to an index in what waits; 0 is played next. */
  queueMove(id, position) {
    return this.command('queue_move', { id, position });
  }

  queueShuffle() {
    return this.command('queue_shuffle');
  }

  /** Empties what waits; what plays goes on. */
  queueClear() {
    return this.command('queue_clear');
  }

  /** `off`, `track` or `queue`. */
  queueLoop(mode) {
    return this.command('queue_loop', { mode });
  }

  /** Plays the next track, or stops where none waits. */
  skip() {
    return this.command('skip');
  }

  skipTo(id) {
    return this.command('skip_to', { id });
  }

  previous() {
    return this.command('previous');
  }

  /** What was played: `tracks`, the newest first. */
  history(limit) {
    return this.command('history', { limit });
  }

  /** What a link or words stand for: `entries` of `url`, `title`, `artist`, `duration_ms`, `thumbnail`, `live`. */
  resolve(query, limit = 10) {
    return this.command('resolve', { query, limit });
  }

  /** A folder below the engine's media root: `entries` of `name`, `kind`, `url`, `bytes`. */
  media(path) {
    return this.command('media', { path });
  }
}
