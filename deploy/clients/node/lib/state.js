// What a session is doing, kept current from its events.

/** The longest list of entries that the Router sends in one piece. */
const QUEUE_PAGE = 100;

/** A view that is always current: read it whenever you need it; only the session writes it. */
export class SessionState {
  /** Whether there is a connection to the Router. */
  connected = false;
  /** Why there is none, until there is one again. */
  error = null;
  /** Whether the Router has an engine. As all that follows, the last that is known while not `connected`. */
  engineConnected = false;
  /** `idle`, `extracting`, `streaming` or `paused`. */
  playback = 'idle';
  /** Streaming, but what is to be sent next has not been produced yet. */
  buffering = false;
  /** Linear gain, 0 to 10. */
  volume = 1;
  /** Of the queue: `off`, `track` or `queue`. */
  loop = 'off';
  /** What waits: the first 100 entries. */
  queue = [];
  /** How many wait. */
  total = 0;
  /** How many `history` and `previous` can reach. */
  historyTotal = 0;
  /** What `quality` was set to, in kbit/s; null for the engine's own. */
  bitrateKbps = null;

  #now;
  #entry = null;
  /** What the engine says of what plays: of `ready` or a session object. */
  #details = {};
  #positionMs = 0;
  /** When the position was that; null where it does not move. */
  #movesSinceMs = null;

  constructor(now = () => performance.now()) {
    this.#now = now;
  }

  /** What plays or is being opened: an entry's fields and `ready`'s; null where nothing is. */
  get current() {
    const entry = this.#entry;
    if (!entry && !this.#details.url) return null;
    // Between two tracks the two can be of different ones for a moment: the entry then says what plays.
    const details = entry && entry.url !== this.#details.url ? {} : this.#details;
    const { url, title, artist, album, artwork, live, station, genre, chapters, codec, passthrough } = details;
    const found = { url, title, artist, album, artwork, live, station, genre, chapters, codec, passthrough, ...entry };
    // The engine has measured it.
    found.duration_ms = details.duration_ms ?? entry?.duration_ms;
    return Object.fromEntries(Object.entries(found).filter(([, value]) => value !== undefined));
  }

  /** Of the current track; null where it is not known, or the stream has no end. */
  get durationMs() {
    return this.current?.duration_ms ?? null;
  }

  /** Where in the current track the session is, now; 0 where nothing plays. The sound is heard a little later. */
  get positionMs() {
    let position = this.#positionMs;
    if (this.#movesSinceMs !== null) position += this.#now() - this.#movesSinceMs;
    const duration = this.durationMs;
    // A track that goes round by itself is counted on past its end.
    if (duration) position = this.#details.loop ? position % duration : Math.min(position, duration);
    return Math.floor(position);
  }

  /** Whether packets are to come now. */
  get isSounding() {
    return this.playback === 'streaming' && !this.buffering && this.engineConnected;
  }

  /** Takes an event of the Router's; for the session. */
  apply(event) {
    if (event.engine) this.#takeEngine(Boolean(event.engine.connected));
    if (event.type === 'session' || event.type === 'status') this.#takeSession(event.session);
    if (event.queue) this.#takeQueue(event.queue);
    switch (event.type) {
      case 'extracting':
        this.#details = { url: event.url };
        this.#takePlayback('extracting', 0);
        break;
      case 'ready':
        this.#details = event;
        this.volume = event.volume ?? this.volume;
        break;
      case 'metadata':
        this.#details = { ...this.#details, title: event.title, artist: event.artist };
        break;
      case 'playing':
      case 'resumed':
      case 'rebased':
        this.#takePlayback('streaming', event.position_ms);
        break;
      case 'seeked':
        this.#takePlayback(this.playback, event.position_ms);
        break;
      case 'buffering':
        this.#takePlayback('streaming', event.position_ms, true);
        break;
      case 'paused':
        this.#takePlayback('paused', event.position_ms);
        break;
      case 'ended':
        this.#details = {};
        this.#takePlayback('idle', 0);
        break;
    }
  }

  #takeSession(session) {
    // Not every session object has the chapters.
    const chapters = session.url === this.#details.url ? this.#details.chapters : undefined;
    this.#details = session.url ? { chapters, ...session } : {};
    this.volume = session.volume ?? this.volume;
    this.#takePlayback(session.state ?? 'idle', session.position_ms ?? 0, Boolean(session.buffering));
  }

  #takeQueue(queue) {
    this.#entry = queue.current ?? null;
    this.total = queue.total;
    this.historyTotal = queue.history_total ?? 0;
    this.loop = queue.loop ?? 'off';
    this.bitrateKbps = queue.bitrate_kbps ?? null;
    // A page that was asked for from further on, or of few, is not the first hundred.
    const isFirstPage = (queue.offset ?? 0) === 0 && queue.tracks?.length === Math.min(this.total, QUEUE_PAGE);
    if (isFirstPage) this.queue = queue.tracks;
  }

  #takeEngine(connected) {
    this.engineConnected = connected;
    if (connected) return;
    // The position stands until the engine is back and says where the session is.
    this.#positionMs = this.positionMs;
    this.#movesSinceMs = null;
  }

  #takePlayback(playback, positionMs, buffering = false) {
    this.playback = playback;
    this.buffering = buffering;
    this.#positionMs = positionMs;
    this.#movesSinceMs = this.isSounding ? this.#now() : null;
  }
}
