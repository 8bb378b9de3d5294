// One session of a Router: its events, its sound and its commands, over a connection that comes back by itself.

import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';

import { Addresses } from './addresses.js';
import { Commands } from './commands.js';
import { connect } from './connection.js';
import { AntiphonError } from './error.js';
import { Outstanding } from './outstanding.js';
import { SessionState } from './state.js';
import { AntiphonStream } from './stream.js';

/** How long `start` and the commands wait for a connection, or for the Router's engine. */
const PATIENCE_MS = 15_000;

/** Waits between two attempts to connect: doubled each time, and cut by up to half at random. */
const FIRST_RETRY_MS = 200;
const LAST_RETRY_MS = 5_000;

/** Where the requestError will be the same until someone changes something. */
const REFUSED_RETRY_MS = 30_000;

/** How often a command that was refused for want of an engine looks for one. */
const ENGINE_LOOK_MS = 200;

/** How long a command that is done waits for the state to be so too. */
const LOOK_LIMIT_MS = 2_000;

/** The longest command, as JSON: the Router closes the connection beyond. */
const COMMAND_LIMIT_BYTES = 64 * 1024;

/** What changes nothing needs no idempotency key. */
const READS = new Set(['status', 'why', 'queue', 'history', 'media', 'resolve', 'ping']);

/**
 * A session, named by its ID (a bot's guild ID, for example).
 *
 * Emits each of the Router's events by its `type`, and all as `event`, when `state` has it; `connection` with
 * `{ connected, error }`; and `packet` with each Opus packet as it comes. An `error` of the Router's is emitted only
 * where someone listens for it.
 */
export class Session extends Commands {
  /** What the session is doing. */
  state = new SessionState();

  #addresses;
  #token;
  #patienceMs;
  #outstanding;
  #streams = new Set();
  #connection = null;
  #isFound = false;
  #isStarted = false;
  #isClosed = false;
  #eventCount = 0;
  #retryMs = FIRST_RETRY_MS;
  #retryTimer = null;

  /**
   * `url` is the Router's, `http(s)://host:port`. Where any of several Routers serves it: an array of theirs, or one text
   * with commas between them. When one is lost the next is tried at once. `token` is one, or a function that gives one or
   * the promise of one: it is asked again before each connection, so also when the Router says that one has expired.
   */
  constructor(url, sessionID, { token = null, patienceMs = PATIENCE_MS } = {}) {
    super();
    this.#addresses = new Addresses(url);
    this.sessionID = sessionID;
    this.#token = token;
    this.#patienceMs = patienceMs;
    this.#outstanding = new Outstanding(patienceMs);
  }

  get isClosed() {
    return this.#isClosed;
  }

  /** Of the Router that the session is connected to, or tried last. */
  get url() {
    return this.#addresses.current;
  }

  /**
   * Connects; resolves when the state is known. Rejects where the Router refuses (`unauthorized`, `forbidden`,
   * `invalid_session_id`, …) or cannot be reached in time (`connection_lost`). In the background it is tried on until
   * `close`.
   */
  start() {
    return new Promise((resolve, reject) => {
      const settle = (settled, value) => {
        clearTimeout(timer);
        this.off('connection', onConnection);
        this.off('close', onClose);
        settled(value);
      };
      const onConnection = ({ connected }) => {
        if (connected) settle(resolve);
        else if (this.state.error.isPermanent) settle(reject, this.state.error);
      };
      const onClose = () => settle(reject, closed());
      const timer = setTimeout(() => settle(reject, this.state.error ?? this.#unanswered()), this.#patienceMs);
      this.on('connection', onConnection);
      this.on('close', onClose);
      if (this.#isClosed) onClose();
      else if (this.state.connected) settle(resolve);
      else if (!this.#isStarted) {
        this.#isStarted = true;
        this.#connect();
      }
    });
  }

  /** Disconnects; the session itself plays on. Commands that wait fail with `closed`, streams end. */
  close() {
    if (this.#isClosed) return;
    this.#isClosed = true;
    clearTimeout(this.#retryTimer);
    this.#connection?.close();
    this.#connection = null;
    this.state.connected = false;
    this.#outstanding.fail(closed());
    for (const stream of this.#streams) stream.finish();
    this.emit('close');
  }

  /** The sound from now on: an object-mode Readable of Opus packets, as many of them as you like. */
  packets() {
    const stream = new AntiphonStream();
    stream.expect(this.state.isSounding);
    if (this.#isClosed) stream.finish();
    this.#streams.add(stream);
    stream.once('close', () => this.#streams.delete(stream));
    return stream;
  }

  /**
   * Sends a command and resolves with its answer.
   *
   * What is in flight when the connection breaks is repeated when it is back, with the same idempotency key, so that it
   * is done once. So is what was refused because the Router had no engine. Rejects with an AntiphonError where it is
   * refused, with `connection_lost` where there is no connection in time, with `timeout` where no answer comes in 60 s.
   */
  async command(type, fields = {}) {
    const key = READS.has(type) ? {} : { idempotency_key: randomUUID() };
    const command = { ...key, ...fields, type };
    const giveUpAt = performance.now() + this.#patienceMs;
    for (;;) {
      // With a key of the requester's own it may be a repetition, whose answer is older than all events.
      const eventCount = READS.has(type) ? undefined : fields.idempotency_key ? -1 : this.#eventCount;
      const { event, isLate } = await this.#ask(command, eventCount);
      if (event.type !== 'error') {
        if (isLate) await this.#lookAgain(event);
        return event;
      }
      const isWorthATry = event.code === 'engine_unavailable' && (await this.#engineIsBack(giveUpAt));
      if (!isWorthATry) throw AntiphonError.from(event);
    }
  }

  async #ask(command, eventCount) {
    if (this.#isClosed) throw closed();
    const requestID = randomUUID();
    const text = JSON.stringify({ ...command, request_id: requestID });
    const bytes = Buffer.byteLength(text);
    if (bytes > COMMAND_LIMIT_BYTES) {
      const message = `the command has ${bytes} bytes, and at most ${COMMAND_LIMIT_BYTES} are taken`;
      throw new AntiphonError('line_too_long', message, 'ask in parts');
    }
    const answer = this.#outstanding.add(requestID, text, eventCount);
    if (this.#isFound) this.#connection.send(text);
    return answer;
  }

  /** Brings up to date what the late answer to a change did not. */
  async #lookAgain(answer) {
    const look = this.#ask({ type: answer.type === 'queue' ? 'queue' : 'status' }).catch(() => {});
    const limit = new AbortController();
    await Promise.race([look, sleep(LOOK_LIMIT_MS, null, { signal: limit.signal }).catch(() => {})]);
    limit.abort();
  }

  /** Waits for the Router's engine, and until it has taken up what played: before, it would refuse again. */
  async #engineIsBack(giveUpAt) {
    let wasThere = false;
    while (performance.now() < giveUpAt) {
      await sleep(ENGINE_LOOK_MS);
      if (wasThere && this.state.engineConnected && this.state.playback !== 'extracting') return true;
      wasThere = this.state.engineConnected;
    }
    return false;
  }

  async #connect() {
    const begunAt = performance.now();
    let token;
    try {
      token = typeof this.#token === 'function' ? await this.#token() : this.#token;
    } catch (cause) {
      this.#lost(new AntiphonError('token_unavailable', `the token could not be had: ${cause}`), begunAt);
      return;
    }
    if (this.#isClosed) return;
    try {
      this.#connection = connect(this.url, this.sessionID, token, {
        onText: (text) => this.#takeText(text),
        onPacket: (packet) => this.#takePacket(packet),
        onEnd: (error) => this.#lost(error, begunAt),
      });
    } catch (cause) {
      // An address that is none.
      const error = new AntiphonError('invalid_command', cause.message, 'http://host:port is a Router');
      this.#lost(Object.assign(error, { isPermanent: true }), begunAt);
    }
  }

  #takePacket(packet) {
    for (const stream of this.#streams) stream.put(packet);
    this.emit('packet', packet);
  }

  #takeText(text) {
    let event;
    let isLate;
    try {
      event = JSON.parse(text);
      isLate = this.#outstanding.isLate(event, this.#eventCount);
      if (!isLate) this.state.apply(event);
    } catch (cause) {
      process.emitWarning(`session ${this.sessionID}: an event that cannot be understood: ${cause.message}`);
      return;
    }
    this.#eventCount += 1;
    for (const stream of this.#streams) stream.expect(this.state.isSounding);
    if (!this.#isFound) this.#found();
    this.#outstanding.answer(event, isLate);
    this.emit('event', event);
    if (event.type !== 'error' || this.listenerCount('error') > 0) this.emit(event.type, event);
  }

  /** The Router has said what the session is doing: commands may go. */
  #found() {
    this.#isFound = true;
    for (const text of this.#outstanding.connectionFound()) this.#connection.send(text);
    this.state.connected = true;
    this.state.error = null;
    this.emit('connection', { connected: true, error: null });
  }

  #lost(error, begunAt) {
    if (this.#isClosed) return;
    const isNews = this.state.connected || this.state.error?.code !== error.code;
    this.#connection = null;
    this.#isFound = false;
    this.state.connected = false;
    this.state.error = error;
    this.#outstanding.connectionLost();
    this.#retryTimer = setTimeout(() => this.#connect(), this.#waitMs(error, performance.now() - begunAt));
    if (isNews) this.emit('connection', { connected: false, error });
  }

  /** How long to wait before the next attempt: to the next address none, and after all of them longer each time. */
  #waitMs(error, lastedMs) {
    if (lastedMs > LAST_RETRY_MS) {
      this.#retryMs = FIRST_RETRY_MS;
      this.#addresses.beginRound();
    }
    if (this.#addresses.advance() || (error.isMoved && lastedMs > FIRST_RETRY_MS)) return 0;
    const waitMs = error.isPermanent ? REFUSED_RETRY_MS : this.#retryMs * (0.5 + Math.random() / 2);
    this.#retryMs = Math.min(2 * this.#retryMs, LAST_RETRY_MS);
    this.#addresses.beginRound();
    return waitMs;
  }

  #unanswered() {
    const message = `${this.#addresses} has not answered in ${this.#patienceMs / 1000} s`;
    return new AntiphonError('connection_lost', message, 'is the Router running there?');
  }
}

const closed = () => new AntiphonError('closed', 'the session was closed here', 'make another one');
