// The player without a session: a repository's event stream (stream-player.js), whose pieces are given to the page as a
// session's music is. Its positions are places in the time of the audio context.

import { listEvents } from '../session/repositories.js';
import { StreamPlayer } from '../stream-player.js';
import { SilentLoop } from './silent-loop.js';
import { SoundOutput } from './sound-output.js';

export class StreamedPlayer {
  name = 'stream';
  output;
  #handlers;
  #id = null;
  #player = null;
  #isConnected = false;
  #pieceCount = 0;
  #silence = new SilentLoop();

  /** `handlers`: `onEvent(event)`, `onLink(link)`, `onAllowed()`. */
  constructor(handlers) {
    this.#handlers = handlers;
    this.output = new SoundOutput(handlers.onAllowed);
  }

  /** `pass` is what `withTicket` takes. */
  async start({ pass: { token, session, base } }) {
    this.#id = session;
    this.#player = new StreamPlayer(session, { server: base, token, context: this.output.context });
    this.output.connect(this.#player.output);
    this.#player.addEventListener('state', ({ detail }) => this.#takeState(detail));
    this.#player.addEventListener('piece', ({ detail }) => this.#takePiece(detail));
    this.#player.addEventListener('error', ({ detail }) => this.#handlers.onEvent({ type: 'error', ...detail }));
    this.#player.start();
  }

  useToken(token) {
    this.#player.token = token;
  }

  async send() {
    return { type: 'error', code: 'no_session', message: 'This page listens without a session.', local: true };
  }

  async resumeSound() {
    await this.output.resume();
    this.#silence.follow();
  }

  /** Whether the page is to sound: then the device is told so. */
  setPlaying(isPlaying) {
    this.#silence.isWanted = isPlaying;
    this.#silence.follow();
  }

  heardPositionMs() {
    return performance.now() - this.output.heardAtMs(0);
  }

  stats() {
    return { player: this.name, connected: this.#isConnected, framesReceived: this.#pieceCount, lost: 0 };
  }

  #takeState({ state, isConnected }) {
    if (isConnected === this.#isConnected && state !== 'reconnecting') return;
    this.#handlers.onLink({ connected: isConnected, wasOpen: this.#isConnected });
    this.#isConnected = isConnected;
    // Between pieces nothing plays.
    if (isConnected) this.#handlers.onEvent({ type: 'session', session: { state: 'idle' }, queue: { total: 0 } });
  }

  /** Its notes are no part of the stream. */
  async #takePiece({ number, params, event, startTime, duration }) {
    this.#pieceCount += 1;
    const { events = [] } = await listEvents(this.#id, { before: number + 1, limit: 1 });
    const known = events.find((each) => each.number === number) ?? { number, params, event, voices: [], notes: [] };
    this.#handlers.onEvent({ ...known, type: 'music', position_ms: startTime * 1000, duration_ms: duration * 1000 });
  }
}
