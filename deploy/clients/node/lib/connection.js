// One WebSocket to the Router: opened, or refused with a reason, and given up when it is silent.

import WebSocket from 'ws';

import { AntiphonError } from './error.js';
import { TARGET_PACKETS } from './packet-buffer.js';

const PROTOCOL = 'antiphon.opus.v1';

/** What the Router is to send at once of the sound just played: the jitter buffer is full with it. */
const BUFFER_MS = TARGET_PACKETS * 20;

/** How long the opening of a connection may take. */
const OPEN_LIMIT_MS = 10_000;

/**
 * A ping goes out when nothing came for so long, and is to be answered within half of it: a peer that is gone without a
 * word is noticed within 12 s.
 */
const HEARTBEAT_MS = 8_000;

/** How long the Router has to say goodbye. */
const CLOSE_LIMIT_MS = 2_000;

/** The longest message; an event of the Router's has at most 1 MiB. */
const MESSAGE_LIMIT_BYTES = 2 * 1024 * 1024;

/** A requestError's body is one error object. */
const REFUSAL_LIMIT_BYTES = 64 * 1024;

/** Statuses below 500 with which it is worth to try again soon. */
const PASSING = [408, 425, 429];

/** Codes for requestErrors that do not come from a Router, but from what is in its place or before it. */
const CODES = { 400: 'invalid_command', 401: 'unauthorized', 403: 'forbidden', 404: 'not_found' };

/** The Router's close code for a token that has expired. */
const EXPIRED = 4401;

/** The Router's close code for a session that another Router has taken over. */
const MOVED = 1012;

/**
 * Opens the session's WebSocket. `handlers`: `onText(string)`, `onPacket(Buffer)`, and `onEnd(AntiphonError)`, once;
 * its `isPermanent` says whether the next attempt will be refused, too, and its `isMoved` that another Router serves the
 * session. Gives `{ send(text), close() }`.
 */
export function connect(base, sessionID, token, { onText, onPacket, onEnd }) {
  const socket = new WebSocket(address(base, sessionID), PROTOCOL, {
    headers: token === null ? {} : { Authorization: `Bearer ${token}` },
    handshakeTimeout: OPEN_LIMIT_MS,
    maxPayload: MESSAGE_LIMIT_BYTES,
    perMessageDeflate: false,
  });
  let heartbeat = null;
  let error = null;
  let isOver = false;
  const end = (reason) => {
    if (isOver) return;
    isOver = true;
    clearTimeout(heartbeat);
    if (reason) onEnd(reason);
  };
  const heard = () => {
    clearTimeout(heartbeat);
    if (isOver) return;
    heartbeat = setTimeout(() => {
      socket.ping();
      heartbeat = setTimeout(() => {
        error = new Error('nothing comes from there any more');
        socket.terminate();
      }, HEARTBEAT_MS / 2);
    }, HEARTBEAT_MS);
  };
  socket.on('unexpected-response', (_, response) => readError(base, response, end));
  socket.on('open', heard);
  socket.on('ping', heard);
  socket.on('pong', heard);
  socket.on('message', (data, isBinary) => {
    heard();
    if (isOver) return;
    if (isBinary) onPacket(data);
    else onText(data.toString());
  });
  // What is wrong is told before the close that follows.
  socket.on('error', (cause) => { error ??= cause; });
  socket.on('close', (code) => end(reasonOf(base, code, error)));
  return {
    send: (text) => socket.send(text, () => {}),
    close: () => {
      end(null);
      socket.close();
      setTimeout(() => socket.terminate(), CLOSE_LIMIT_MS).unref();
    },
  };
}

function address(base, sessionID) {
  const url = new URL(base);
  url.protocol = { 'http:': 'ws:', 'https:': 'wss:' }[url.protocol] ?? url.protocol;
  url.pathname = `${url.pathname.replace(/\/$/, '')}/ws`;
  url.search = new URLSearchParams({ session: sessionID, buffer_ms: BUFFER_MS });
  return url;
}

function reasonOf(base, code, error) {
  if (code === EXPIRED) return new AntiphonError('unauthorized', 'the token has expired', 'a new one is asked for');
  if (code === MOVED) {
    const message = `${base} does not serve the session any more: another Router does`;
    return Object.assign(new AntiphonError('connection_lost', message), { isMoved: true });
  }
  const what = error ? `cannot be reached: ${error.message}` : `has closed the connection (${code})`;
  return new AntiphonError('connection_lost', `${base} ${what}`, error ? 'is the Router running there?' : null);
}

function readError(base, response, end) {
  const status = response.statusCode;
  const chunks = [];
  let bytes = 0;
  response.on('data', (chunk) => {
    bytes += chunk.length;
    if (bytes > REFUSAL_LIMIT_BYTES) response.destroy();
    else chunks.push(chunk);
  });
  response.on('error', () => {});
  response.on('close', () => {
    const error = requestError(base, status, Buffer.concat(chunks).toString());
    error.isPermanent = status >= 400 && status < 500 && !PASSING.includes(status);
    end(error);
  });
}

function requestError(base, status, body) {
  try {
    const given = JSON.parse(body);
    if (given.code) return AntiphonError.from(given);
  } catch {
    // No Router's answer.
  }
  return new AntiphonError(
    CODES[status] ?? 'connection_lost',
    `${base} answered the WebSocket's upgrade with status ${status}, and not as a Router does`,
    "is it the Router's address, and does a proxy before it pass WebSockets on?",
  );
}
