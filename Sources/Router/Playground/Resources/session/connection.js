// One session's WebSocket: connects, reconnects by itself, pairs answers with commands, and pings for the
// engine's clock. Used in the sound worker and, with the fallback player, in the page.

import { EngineClock, localNowMs } from './engine-clock.js';

const FIRST_RETRY_MS = 100;
/** A server that is back soon is heard again within a second. */
const SOON_RETRY_MS = 500;
/** Anyone who has been away for long is asked for less often: after waits of at most this share of its absence. */
const ABSENCE_SHARE = 0.05;
const LAST_RETRY_MS = 5000;
/** So that the tabs of one server do not come back all at once, a wait is cut by up to this share. */
const JITTER = 0.4;
/** An address, or a connection, that takes longer than this to come is given up and tried anew. */
const OPEN_TIMEOUT_MS = 5000;
const PING_INTERVAL_MS = 2000;
/** The first pings follow each other quickly, so that the latency shown is right from the start. */
const FIRST_PINGS = 5;
const FIRST_PING_INTERVAL_MS = 150;
/** After the device has said that its network changed, a connection has this long to prove that it lives. */
const PROOF_MS = 1500;
/** Every ping is answered, so a connection silent for three of them is dead, whatever TCP believes. */
const SILENCE_LIMIT_MS = 3 * PING_INTERVAL_MS;
/** A play may wait for a slow server; the engine itself gives up before this. */
const ANSWER_TIMEOUT_MS = 60_000;
/** The close code for a session that another Router has taken over: the next connection leads there. */
const MOVED = 1012;

export class Connection {
  clock = new EngineClock();

  #makeURL;
  #protocol;
  #handlers;
  #socket = null;
  #attempt = 0;
  #pings = 0;
  #pingTimer = 0;
  #openTimer = 0;
  #retryTimer = 0;
  #awaySinceMs = performance.now();
  #openedAtMs = 0;
  #heardAtMs = 0;
  #pending = new Map();
  #requestPrefix = Math.random().toString(36).slice(2, 10);
  #requestCount = 0;

  /**
   * `makeURL` gives the address to connect to, or a promise of it, each time anew. `handlers`: `onText(event)`,
   * `onBinary(ArrayBuffer)`, `onLink({connected, attempt, wasOpen, code})`: `attempt` counts those in vain,
   * `wasOpen` and `code` are of the connection that ended.
   */
  constructor(makeURL, protocol, handlers) {
    this.#makeURL = makeURL;
    this.#protocol = protocol;
    this.#handlers = handlers;
    for (const type of ['online', 'offline']) addEventListener(type, () => this.#probeConnection());
    this.#connect();
  }

  get connected() {
    return this.#socket?.readyState === WebSocket.OPEN;
  }

  /** Sends a command; resolves with its answer, which may be an `error` object. */
  send(command) {
    return new Promise((resolve) => {
      const id = `${this.#requestPrefix}-${++this.#requestCount}`;
      if (!this.connected) {
        resolve(localError('not_connected', 'There is no connection to the server right now.'));
        return;
      }
      const timer = setTimeout(() => {
        this.#settle(id, localError('no_answer', 'The server did not answer.'));
      }, ANSWER_TIMEOUT_MS);
      this.#pending.set(id, { resolve, timer });
      this.#socket.send(JSON.stringify({ ...command, request_id: id }));
    });
  }

  /** Does not wait for the next attempt's time. */
  retryNow() {
    if (!this.#retryTimer) return;
    clearTimeout(this.#retryTimer);
    this.#connect();
  }

  async #connect() {
    this.#retryTimer = 0;
    let url;
    try {
      url = await withinMs(OPEN_TIMEOUT_MS, this.#makeURL());
    } catch {
      this.#retryLater({ wasOpen: false });
      return;
    }
    const socket = new WebSocket(url, this.#protocol);
    socket.binaryType = 'arraybuffer';
    this.#socket = socket;
    this.#openTimer = setTimeout(() => this.#abandon(socket), OPEN_TIMEOUT_MS);
    socket.onopen = () => this.#opened();
    socket.onmessage = ({ data }) => {
      this.#heardAtMs = performance.now();
      if (typeof data === 'string') this.#text(data);
      else this.#handlers.onBinary(data);
    };
    socket.onclose = ({ code }) => this.#closed(socket, code);
  }

  #opened() {
    clearTimeout(this.#openTimer);
    this.#attempt = 0;
    this.#awaySinceMs = null;
    this.#pings = 0;
    this.#openedAtMs = performance.now();
    this.#heardAtMs = this.#openedAtMs;
    this.clock.forget();
    this.#handlers.onLink({ connected: true });
    this.#ping();
  }

  #closed(socket, code) {
    if (socket !== this.#socket) return;
    clearTimeout(this.#openTimer);
    clearTimeout(this.#pingTimer);
    this.#socket = null;
    for (const id of [...this.#pending.keys()]) {
      this.#settle(id, localError('connection_lost', 'The connection broke before the answer came.'));
    }
    this.#retryLater({ wasOpen: this.#awaySinceMs === null, code });
  }

  #retryLater(end) {
    this.#awaySinceMs ??= performance.now();
    const absenceMs = performance.now() - this.#awaySinceMs;
    const longestMs = Math.min(LAST_RETRY_MS, Math.max(SOON_RETRY_MS, absenceMs * ABSENCE_SHARE));
    const usualMs = Math.min(longestMs, FIRST_RETRY_MS * 2 ** this.#attempt) * (1 - JITTER * Math.random());
    // A connection that is sent on as soon as it is open is not retried without a pause.
    const hasMoved = end.wasOpen && end.code === MOVED && performance.now() - this.#openedAtMs > FIRST_RETRY_MS;
    const waitMs = hasMoved ? 0 : usualMs;
    this.#attempt += 1;
    this.#retryTimer = setTimeout(() => this.#connect(), waitMs);
    this.#handlers.onLink({ connected: false, attempt: this.#attempt, ...end });
  }

  /** The device's network has come, gone or changed: try at once, and do not trust what was open. */
  #probeConnection() {
    this.retryNow();
    const socket = this.#socket;
    if (!this.connected) return;
    const askedAtMs = performance.now();
    socket.send(JSON.stringify({ type: 'ping', t: localNowMs() }));
    setTimeout(() => {
      if (socket === this.#socket && this.#heardAtMs < askedAtMs) this.#abandon(socket);
    }, PROOF_MS);
  }

  /** Does not wait for a closing handshake that may never come. */
  #abandon(socket) {
    socket.onopen = socket.onmessage = socket.onclose = null;
    socket.close();
    this.#closed(socket);
  }

  #ping() {
    if (performance.now() - this.#heardAtMs > SILENCE_LIMIT_MS) {
      this.#abandon(this.#socket);
      return;
    }
    this.#socket.send(JSON.stringify({ type: 'ping', t: localNowMs() }));
    this.#pings += 1;
    const intervalMs = this.#pings < FIRST_PINGS ? FIRST_PING_INTERVAL_MS : PING_INTERVAL_MS;
    this.#pingTimer = setTimeout(() => this.#ping(), intervalMs);
  }

  #text(data) {
    let event;
    try {
      event = JSON.parse(data);
    } catch {
      event = localError('bad_message', 'The server sent something this page does not understand.');
    }
    if (event.type === 'pong') {
      this.clock.add(event.t, localNowMs(), event.now_ns / 1e6);
      return;
    }
    // The page hears of the event before the requester gets the answer, so the answer finds it applied.
    this.#handlers.onText(event);
    if (event.request_id) this.#settle(event.request_id, event);
  }

  #settle(id, answer) {
    const pending = this.#pending.get(id);
    if (!pending) return;
    this.#pending.delete(id);
    clearTimeout(pending.timer);
    pending.resolve(answer);
  }
}

/** What the promise gives, or a rejection after so long; what comes later is nobody's. */
async function withinMs(limitMs, promise) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`nothing in ${limitMs} ms`)), limitMs);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** An error this page finds itself, in the form of the server's. */
function localError(code, message) {
  return { type: 'error', code, message, severity: 'common', local: true };
}
