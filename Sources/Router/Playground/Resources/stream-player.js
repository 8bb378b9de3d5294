// Plays a repository's event stream: `GET /stream/ID` by `EventSource`, each piece decoded and played after the one
// before, to the sample. For any page; README.md has an example, docs/http-and-websocket.md the reference.

import { withTicket } from './session/tickets.js';
import { canPlayOgg } from './sound/can-play-ogg.js';
import { decodePiece, SAMPLE_RATE } from './sound/piece-decoder.js';

/** Between now and the first sample: what the page may be busy for before it is late. */
const LEAD_S = 0.15;
/** So many pieces wait to be heard; then the server keeps what follows. */
const MOST_WAITING = 8;
/** A stream says something every 30 s; one that is silent for three of these is dead, whatever TCP believes. */
const SILENCE_LIMIT_MS = 90_000;
const FIRST_RETRY_MS = 500;
const LAST_RETRY_MS = 30_000;
/** So that the pages of one server do not come back all at once, a wait is cut by up to this share. */
const JITTER = 0.4;
/** Fast enough to feel immediate, slow enough not to click. */
const FADE_S = 0.015;
/** Request errors that may pass. */
const PASSING = new Set([408, 429]);

/**
 * Events, each with a `detail`: `state` ({state, isConnected}), `parameters` (the stream's `musical_parameters`),
 * `piece` ({number, params, event, startTime, duration}, the place in `context`'s time where it is heard), and `error`
 * ({code, message, hint, number}).
 */
export class StreamPlayer extends EventTarget {
  context;
  /** What is heard, after the volume. */
  output;
  /** `stopped`, `connecting`, `waiting`, `playing`, `reconnecting` or `refused`. */
  state = 'stopped';
  isConnected = false;
  lastEventId = null;
  #id;
  #server;
  #encoding;
  #token;
  #from;
  #silenceLimitMs;
  #level = 1;
  #isMuted = false;
  /** Of what was started last: the node that its pieces go through; null while stopped. */
  #run = null;
  #source = null;
  /** Counts what was opened and left: an answer to an earlier one is nobody's. */
  #turn = 0;
  #attempt = 0;
  /** Why there is no connection: once is enough. */
  #isTold = false;
  /** So much waits that the stream was left until there is room. */
  #isHeldBack = false;
  /** The server wants no such stream; another token may change that. */
  #isRefused = false;
  #retryTimer = 0;
  #silenceTimer = 0;
  #stateTimer = 0;
  /** Pieces that have come and are not over, and of them those that are decoded. */
  #waiting = 0;
  #scheduled = [];
  #decoding = Promise.resolve();
  #shown = 'stopped false';
  /** The first sample after the last piece, counted as the context counts. */
  #end = 0;

  /**
   * `id` is the repository's. `server`: the Router's address, where this file is not its own; `encoding`: `opus` where
   * the browser can decode it, else `pcm16`; `token`; `lastEventId`: the piece to go on after, 0 for all that are kept;
   * `context`: an AudioContext of 48 kHz, in which the caller connects `output`; `silenceLimitMs`.
   */
  constructor(id, {
    server = new URL('.', import.meta.url), encoding = canPlayOgg() ? 'opus' : 'pcm16', token = null,
    lastEventId = null, context = null, silenceLimitMs = SILENCE_LIMIT_MS,
  } = {}) {
    super();
    this.#id = id;
    this.#server = new URL(server, location.href);
    this.#encoding = encoding;
    this.#token = token;
    this.#from = lastEventId;
    this.#silenceLimitMs = silenceLimitMs;
    this.context = context ?? new AudioContext({ sampleRate: SAMPLE_RATE });
    if (this.context.sampleRate !== SAMPLE_RATE) {
      throw new RangeError(`the context has ${this.context.sampleRate} Hz: make it with {sampleRate: ${SAMPLE_RATE}}`);
    }
    this.output = new GainNode(this.context);
    if (!context) this.output.connect(this.context.destination);
    this.context.addEventListener('statechange', () => this.#show());
  }

  /** To be called from a click or a key press: browsers let no sound out before. */
  start() {
    this.context.resume();
    if (!this.#run) {
      this.#run = new GainNode(this.context);
      this.#run.connect(this.output);
      this.lastEventId = this.#from;
      this.#attempt = 0;
      this.#isTold = false;
      this.#open();
    } else if (this.#isRefused) {
      this.#open();
    }
  }

  /** Forgets what waits; `start` begins with what is to come. */
  stop() {
    if (!this.#run) return;
    this.#close();
    this.isConnected = false;
    const { currentTime } = this.context;
    this.#run.gain.setTargetAtTime(0, currentTime, FADE_S);
    for (const { source } of this.#scheduled) {
      source.onended = null;
      source.stop(currentTime + 6 * FADE_S);
    }
    this.#run = null;
    this.#waiting = 0;
    this.#scheduled = [];
    this.#end = 0;
    this.#show();
  }

  /** 0 to 1, linear. */
  get volume() {
    return this.#level;
  }

  set volume(level) {
    this.#level = level;
    this.#applyVolume();
  }

  get muted() {
    return this.#isMuted;
  }

  set muted(isMuted) {
    this.#isMuted = isMuted;
    this.#applyVolume();
  }

  /** Uses another token from now on. */
  set token(token) {
    this.#token = token;
    if (this.#retryTimer || this.#isRefused) this.#open();
  }

  #applyVolume() {
    this.output.gain.setTargetAtTime(this.#isMuted ? 0 : this.#level, this.context.currentTime, FADE_S);
  }

  // MARK: The connection

  get #address() {
    const url = new URL(`stream/${encodeURIComponent(this.#id)}`, this.#server);
    url.searchParams.set('encoding', this.#encoding);
    if (this.lastEventId !== null) url.searchParams.set('lastEventId', this.lastEventId);
    return url.href;
  }

  async #open() {
    this.#close();
    const turn = this.#turn;
    this.#watch();
    this.#show();
    let address;
    try {
      address = await withTicket(this.#address, {
        token: this.#token, session: this.#id, scope: 'listen', base: this.#server,
      });
    } catch {
      if (turn !== this.#turn) return;
      this.#markLost();
      this.#diagnose();
      return;
    }
    if (turn !== this.#turn) return;
    this.#source = new EventSource(address);
    this.#source.onmessage = (message) => this.#take(message);
    this.#source.onerror = () => this.#onError();
  }

  #close() {
    this.#turn += 1;
    clearTimeout(this.#retryTimer);
    clearTimeout(this.#silenceTimer);
    this.#retryTimer = 0;
    this.#source?.close();
    this.#source = null;
    this.#isHeldBack = this.#isRefused = false;
  }

  /** A cable that was pulled is nothing that an `EventSource` notices. */
  #watch() {
    clearTimeout(this.#silenceTimer);
    this.#silenceTimer = setTimeout(() => {
      this.#markLost();
      this.#open();
    }, this.#silenceLimitMs);
  }

  #markLost() {
    this.#attempt += 1;
    this.isConnected = false;
  }

  #onError() {
    const isOver = this.#source.readyState === EventSource.CLOSED;
    this.#markLost();
    this.#show();
    if (isOver) this.#diagnose();
    // A ticket is good for one connection; without, the `EventSource` comes back by itself.
    else if (this.#token) this.#retry();
  }

  #retry(requestError = null) {
    this.#close();
    this.#show();
    const waitMs = Math.min(LAST_RETRY_MS, FIRST_RETRY_MS * 2 ** this.#attempt) * (1 - JITTER * Math.random());
    this.#retryTimer = setTimeout(() => this.#open(), waitMs);
    if (!requestError || this.#isTold) return;
    this.#isTold = true;
    this.#fail(requestError);
  }

  /** Finds out why the stream does not open, which an `EventSource` does not say. */
  async #diagnose() {
    this.#close();
    const turn = this.#turn;
    this.#watch();
    const requestError = await this.#findRequestError();
    if (turn !== this.#turn) return;
    const isFinal = requestError?.status >= 400 && requestError.status < 500 && !PASSING.has(requestError.status);
    if (isFinal) this.#refuse(requestError);
    else this.#retry(requestError);
  }

  #refuse(requestError) {
    this.#close();
    this.isConnected = false;
    this.#isRefused = true;
    this.#show();
    this.#fail(requestError);
  }

  /** Resolves with null where the stream would open now. */
  async #findRequestError() {
    const abort = new AbortController();
    const headers = this.#token ? { Authorization: `Bearer ${this.#token}` } : {};
    try {
      const response = await fetch(this.#address, { headers, signal: abort.signal });
      if (response.ok) return null;
      const { status } = response;
      const { code = 'no_answer', message = `The server answers ${status}.`, hint = '' } =
        await response.json().catch(() => ({}));
      return { status, code, message, hint };
    } catch {
      return {
        code: 'no_answer', message: 'The server does not answer, or lets no page of this origin in.',
        hint: 'A page of another origin is let in by the Router’s --allow-origin.',
      };
    } finally {
      abort.abort();
    }
  }

  // MARK: Messages

  #take({ data: text, lastEventId }) {
    this.#watch();
    if (/^\d+$/.test(lastEventId)) this.lastEventId = Number(lastEventId);
    const message = parse(text);
    if (typeof message?.type !== 'string') {
      this.#fail({ code: 'bad_message', message: 'The server sent something that is no message.' });
      return;
    }
    const data = message.data ?? {};
    switch (message.type) {
      case 'connected':
        this.#attempt = 0;
        this.#isTold = false;
        this.isConnected = true;
        this.#show();
        break;
      case 'musical_parameters': this.#tell('parameters', data); break;
      case 'audio_buffer': this.#queue(data); break;
      case 'error': this.#fail(data); break;
      case 'disconnected':
        if (data.reconnect === false) this.#refuse({ code: 'disconnected', message: data.reason });
        break;
    }
  }

  // MARK: Sound

  #queue(piece) {
    const run = this.#run;
    this.#waiting += 1;
    this.#decoding = this.#decoding.then(() => this.#play(piece, run));
    if (this.#waiting >= MOST_WAITING) {
      this.#close();
      this.#isHeldBack = true;
    }
    this.#show();
  }

  async #play(piece, run) {
    if (run !== this.#run) return;
    try {
      const sound = await decodePiece(piece.buffer, this.context);
      if (run === this.#run) this.#schedule(piece, sound);
    } catch ({ message }) {
      if (run !== this.#run) return;
      this.#fail({ code: 'bad_piece', message: `A piece cannot be played: ${message}.`, number: piece.number });
      if (run === this.#run) this.#leave();
    }
  }

  #schedule({ number, params, event }, sound) {
    const { source, start } = this.#start(sound);
    const scheduled = { source, startTime: start / SAMPLE_RATE };
    source.onended = () => {
      this.#scheduled = this.#scheduled.filter((each) => each !== scheduled);
      this.#leave();
    };
    this.#end = start + sound.length;
    this.#scheduled.push(scheduled);
    this.#tell('piece', { number, params, event, startTime: scheduled.startTime, duration: sound.duration });
    this.#show();
  }

  /** Plays a sound after the last, with the sample at which it begins. */
  #start(sound) {
    const { context } = this;
    for (let leadS = LEAD_S; ; leadS *= 2) {
      const start = Math.max(this.#end, Math.ceil((context.currentTime + leadS) * SAMPLE_RATE));
      const source = new AudioBufferSourceNode(context, { buffer: sound });
      source.start(start / SAMPLE_RATE);
      source.connect(this.#run);
      // A page that was held up meanwhile by more than its lead would be heard late, and not where it says.
      if (context.currentTime * SAMPLE_RATE < start) return { source, start };
      source.disconnect();
    }
  }

  /** One piece less waits. */
  #leave() {
    this.#waiting -= 1;
    if (this.#isHeldBack && this.#waiting <= MOST_WAITING / 2) this.#open();
    this.#show();
  }

  // MARK: What is told

  #show() {
    clearTimeout(this.#stateTimer);
    const { currentTime } = this.context;
    const next = this.#scheduled.find(({ startTime }) => startTime > currentTime);
    if (next) this.#stateTimer = setTimeout(() => this.#show(), 1 + 1000 * (next.startTime - currentTime));
    this.state = this.#currentState(currentTime);
    const shown = `${this.state} ${this.isConnected}`;
    if (shown === this.#shown) return;
    this.#shown = shown;
    this.#tell('state', { state: this.state, isConnected: this.isConnected });
  }

  #currentState(currentTime) {
    if (!this.#run) return 'stopped';
    if (this.#scheduled.some(({ startTime }) => startTime <= currentTime)) return 'playing';
    if (this.isConnected || this.#waiting > 0) return 'waiting';
    if (this.#isRefused) return 'refused';
    return this.#attempt > 0 ? 'reconnecting' : 'connecting';
  }

  #fail({ code, message, hint = '', number = null }) {
    this.#tell('error', { code, message, hint, number });
  }

  #tell(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }
}

/** Null where it is no JSON. */
function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
