// What is known of the session, kept up to date by its events (docs/http-and-websocket.md#what-each-event-does).

/** The most tracks that the Router sends at once. */
const QUEUE_PAGE = 100;

export class Snapshot {
  /** Before the first `session` event everything here is a guess. */
  isKnown = false;
  state = 'idle';
  buffering = false;
  url = null;
  /** Whether anything of `url` was there to be heard. */
  hasPlayed = false;
  title = null;
  artist = null;
  album = null;
  /** An address of a picture, as the server gave it. */
  artwork = null;
  live = false;
  /** Of a radio station: its name. */
  station = null;
  genre = null;
  /** Of `{start_ms, title}`. */
  chapters = [];
  durationMs = null;
  volume = 1;
  /** The voices of generated music that nobody hears. */
  muted = [];
  loop = false;
  codec = null;
  passthrough = false;
  /** Where the track was when the last event spoke of it; the player knows better while sound comes. */
  positionMs = 0;
  /** Where the last track goes on: it was paused for so long that the engine ended it. */
  continueMs = 0;
  /** What waits: the first 100 tracks of `total`, and how it goes on after them. */
  queue = { current: null, tracks: [], total: 0, historyTotal: 0, loop: 'off', bitrateKbps: null };
  engine = { connected: true };

  /** Applies one event. */
  apply(event) {
    switch (event.type) {
      case 'session':
        this.isKnown = true;
        this.#take(event.session);
        this.#takeQueue(event.queue);
        this.engine = event.engine ?? this.engine;
        break;
      case 'status':
        this.#take(event.session);
        break;
      case 'queue':
        this.#takeQueue(event.queue);
        break;
      case 'engine':
        this.engine = event.engine;
        break;
      case 'extracting':
        this.state = 'extracting';
        this.#newTrack(event.url);
        break;
      case 'ready':
        if (event.url !== this.url) this.#newTrack(event.url);
        this.hasPlayed = true;
        this.volume = event.volume ?? this.volume;
        this.#describe(event);
        this.chapters = event.chapters ?? [];
        break;
      case 'metadata':
        this.title = event.title ?? null;
        this.artist = event.artist ?? null;
        break;
      case 'playing':
      case 'resumed':
      case 'rebased':
        this.state = 'streaming';
        this.buffering = false;
        this.positionMs = event.position_ms;
        break;
      case 'paused':
        this.state = 'paused';
        this.buffering = false;
        this.positionMs = event.position_ms;
        break;
      case 'seeked':
        this.buffering = false;
        this.positionMs = event.position_ms;
        break;
      case 'muted':
        this.muted = event.voices;
        break;
      case 'buffering':
        this.state = 'streaming';
        this.buffering = true;
        this.positionMs = event.position_ms;
        break;
      case 'ended':
        this.continueMs = event.reason === 'cleanup' ? event.position_ms : 0;
        this.state = 'idle';
        this.buffering = false;
        this.positionMs = 0;
        break;
    }
  }

  #newTrack(url) {
    this.url = url;
    this.hasPlayed = false;
    this.continueMs = 0;
    this.#describe({});
    this.chapters = [];
    this.positionMs = 0;
    this.buffering = false;
  }

  #takeQueue({ current, tracks, offset, total, history_total: historyTotal, loop, bitrate_kbps: bitrate }) {
    // A page that somebody asked for may be a later or a shorter one.
    const isFirstPage = !offset && tracks?.length === Math.min(total, QUEUE_PAGE);
    this.queue = {
      current: current ?? null, tracks: isFirstPage ? tracks : this.queue.tracks, total,
      historyTotal: historyTotal ?? 0, loop: loop ?? 'off', bitrateKbps: bitrate ?? null,
    };
  }

  /** What `ready` and a session object say of the track. */
  #describe(track) {
    this.title = track.title ?? null;
    this.artist = track.artist ?? null;
    this.album = track.album ?? null;
    this.artwork = track.artwork ?? null;
    this.live = track.live ?? false;
    this.station = track.station ?? null;
    this.genre = track.genre ?? null;
    this.durationMs = track.duration_ms ?? null;
    this.loop = track.loop ?? false;
    this.codec = track.codec ?? null;
    this.passthrough = track.passthrough ?? false;
  }

  #take(session) {
    this.state = session.state;
    this.buffering = session.buffering ?? false;
    this.volume = session.volume ?? this.volume;
    this.muted = session.muted ?? this.muted;
    // An idle session has no track; the page goes on showing what was last played, to play it again.
    if (session.state === 'idle') {
      this.positionMs = 0;
      return;
    }
    const isSame = session.url === this.url;
    this.url = session.url ?? this.url;
    this.hasPlayed = session.state !== 'extracting';
    this.#describe(session);
    // Not every session object has them.
    this.chapters = session.chapters ?? (isSame ? this.chapters : []);
    this.positionMs = session.position_ms ?? 0;
  }
}

/** Whether no sound follows an event for now. */
export const isPause = ({ type, engine }) =>
  type === 'paused' || type === 'buffering' || type === 'ended' || (type === 'engine' && !engine.connected);
