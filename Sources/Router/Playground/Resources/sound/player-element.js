// The player for every other browser: an <audio> element on the endless Ogg stream, and a connection in the
// page for commands and events. The browser buffers as much as it likes, so it is a few seconds late.

import { Connection } from '../session/connection.js';
import { isPause } from '../session/snapshot.js';
import { withTicket } from '../session/tickets.js';
import { dominantFrequency } from './pitch.js';
import { SoundOutput } from './sound-output.js';

const SAMPLE_RATE = 48_000;
/** The longest stretch an analyser keeps: 0.68 s. */
const TAP_FRAMES = 32_768;
const RELOAD_DELAY_MS = 1000;
/** Live playback that lags further behind than this jumps to the newest sound. */
const MAX_BEHIND_S = 4;
const BEHIND_AFTER_JUMP_S = 0.6;

export class ElementPlayer {
  name = 'audio';
  output;
  #handlers;
  #audio = new Audio();
  #tap;
  #connection = null;
  #connected = false;
  #framesReceived = 0;
  #stalls = 0;
  #isWanted = false;
  #listenURL;
  /** What `withTicket` takes. */
  #pass;
  /** Where the track was, and when; null while it does not move. */
  #anchor = null;

  constructor(handlers) {
    this.#handlers = handlers;
    this.output = new SoundOutput(handlers.onAllowed);
    this.#tap = new AnalyserNode(this.output.context, { fftSize: TAP_FRAMES });
  }

  /** Connects to `url`; the sound comes from `listenURL`; `pass` is what `withTicket` takes. */
  async start({ url, listenURL, pass }) {
    this.#listenURL = listenURL;
    this.#pass = pass;
    const source = this.output.context.createMediaElementSource(this.#audio);
    source.connect(this.#tap);
    this.output.connect(source);
    this.#audio.onerror = this.#audio.onended = () => this.#loadLater();
    this.#audio.onwaiting = () => (this.#stalls += 1);
    this.#audio.onprogress = () => this.#catchUp();
    this.#connection = new Connection(() => withTicket(url, this.#pass), 'antiphon.opus.v1', {
      onBinary: () => (this.#framesReceived += 1),
      onText: (event) => this.#takeEvent(event),
      onLink: (link) => this.#takeLink(link),
    });
  }

  /** Connects with another token from now on. */
  useToken(token) {
    this.#pass.token = token;
    this.#connection.retryNow();
  }

  send(command) {
    return this.#connection.send(command);
  }

  /** Whether the session sounds: while it does not, neither does the element, and the device is told so. */
  setPlaying(isPlaying) {
    if (isPlaying === this.#isWanted) return;
    this.#isWanted = isPlaying;
    if (!isPlaying) this.#audio.pause();
    // A stream without an end, begun now, would keep the page "loading".
    else if (document.readyState === 'complete') this.#load();
    else addEventListener('load', () => this.#load(), { once: true });
  }

  /** Of what leaves the loudspeaker, at most 0.68 s; null while the browser lets nothing out. */
  async dominantFrequency(seconds) {
    if (!this.output.isAllowed) return null;
    const samples = new Float32Array(TAP_FRAMES);
    this.#tap.getFloatTimeDomainData(samples);
    return dominantFrequency(samples.slice(-Math.round(seconds * SAMPLE_RATE)), SAMPLE_RATE);
  }

  async resumeSound() {
    await this.output.resume();
    // Refused until the first click; then the page asks again.
    if (this.#isWanted && this.#audio.paused) await this.#audio.play().catch(() => {});
  }

  /** The Ogg stream does not say where in the track it is: counted on from the last event that did. */
  heardPositionMs() {
    if (!this.#anchor) return null;
    const bufferedMs = Math.max(0, this.#bufferedEnd - this.#audio.currentTime) * 1000;
    return Math.max(0, this.#anchor.positionMs + performance.now() - this.#anchor.atMs - bufferedMs);
  }

  stats() {
    return {
      player: this.name,
      connected: this.#connected,
      framesReceived: this.#framesReceived,
      lost: 0,
      bufferedMs: Math.max(0, this.#bufferedEnd - this.#audio.currentTime) * 1000,
      targetMs: null,
      latencyMs: null,
      roundTripMs: this.#connection?.clock.roundTripMs ?? null,
      underruns: Math.max(0, this.#stalls - 1),
      skips: 0,
    };
  }

  get #bufferedEnd() {
    const { buffered } = this.#audio;
    return buffered.length ? buffered.end(buffered.length - 1) : 0;
  }

  /** Anew, so that what comes is what is played now. */
  async #load() {
    try {
      const address = await withTicket(this.#listenURL, this.#pass);
      if (!this.#isWanted) return;
      this.#audio.src = address;
    } catch {
      this.#loadLater();
      return;
    }
    // Held back by the browser, it plays after the first click.
    this.#audio.play().catch(() => {});
  }

  #loadLater() {
    setTimeout(() => {
      if (this.#isWanted) this.#load();
    }, RELOAD_DELAY_MS);
  }

  #catchUp() {
    if (this.#bufferedEnd - this.#audio.currentTime > MAX_BEHIND_S) {
      this.#audio.currentTime = this.#bufferedEnd - BEHIND_AFTER_JUMP_S;
    }
  }

  #takeEvent(event) {
    const { type, session } = event;
    if (type === 'session' || type === 'status') {
      const isMoving = session.state === 'streaming' && !session.buffering && event.engine?.connected !== false;
      this.#setAnchor(isMoving ? session.position_ms : null);
    } else if (type === 'playing' || type === 'resumed' || type === 'rebased' || (type === 'seeked' && event.due_ns)) {
      this.#setAnchor(event.position_ms);
    } else if (isPause(event)) {
      this.#setAnchor(null);
    }
    this.#handlers.onEvent(event);
  }

  #setAnchor(positionMs) {
    this.#anchor = positionMs === null ? null : { positionMs, atMs: performance.now() };
  }

  #takeLink(link) {
    const isBack = link.connected && !this.#connected && this.#audio.error !== null;
    this.#connected = link.connected;
    if (!link.connected) this.#setAnchor(null);
    if (isBack && this.#isWanted) this.#load();
    this.#handlers.onLink(link);
  }
}
