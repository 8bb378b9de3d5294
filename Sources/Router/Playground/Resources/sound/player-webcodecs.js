// The player of modern browsers: connection and WebCodecs in a worker, jitter buffer in an AudioWorklet.
// This is the page's end of the two; sound itself never passes through here.

import { isSupported as isDecoderSupported } from './opus-decoder.js';
import { SilentLoop } from './silent-loop.js';
import { SoundOutput } from './sound-output.js';

const LATENCY_AVERAGING = 0.15;

/** Why this player cannot be used here, in one sentence; null when it can. */
export async function whyUnavailable() {
  if (!self.isSecureContext) {
    return 'This address is not a secure one (https or localhost), and browsers offer low-latency sound only '
      + 'there, so the plain Ogg player is used: everything works, a few seconds later.';
  }
  if (!('AudioWorkletNode' in self) || !(await isDecoderSupported().catch(() => false))) {
    return 'This browser cannot decode Opus with WebCodecs, so the plain Ogg player is used: everything works, '
      + 'a few seconds later.';
  }
  return null;
}

export class WebCodecsPlayer {
  name = 'webcodecs';
  output;
  #handlers;
  #worker = new Worker(new URL('./sound-worker.js', import.meta.url), { type: 'module' });
  #stats = { framesReceived: 0, lost: 0, engineOffsetMs: null, roundTripMs: null };
  #report = null;
  #latencyMs = null;
  #epoch = 0;
  #connected = false;
  #silence = new SilentLoop();
  #questions = new Map();
  #questionCount = 0;

  /** `handlers`: `onEvent(event)`, `onLink(link)`, `onAllowed()`, `onFailure(message)`. */
  constructor(handlers) {
    this.#handlers = handlers;
    this.output = new SoundOutput(handlers.onAllowed);
    this.#worker.onmessage = ({ data }) => this.#take(data);
    // An exception in it has a message. Without one, it could not be loaded.
    this.#worker.onerror = ({ message }) => {
      if (!message) reportMissing();
    };
  }

  /** Connects to `url` and plays whatever comes; `pass` is what `withTicket` takes. */
  async start({ url, pass }) {
    try {
      await this.output.context.audioWorklet.addModule(new URL('./jitter-worklet.js', import.meta.url));
    } catch (error) {
      if (error.name === 'AbortError') reportMissing();
      throw error;
    }
    const node = new AudioWorkletNode(this.output.context, 'antiphon-jitter', {
      numberOfInputs: 0, numberOfOutputs: 1, outputChannelCount: [2],
    });
    node.port.onmessage = ({ data }) => this.#takeReport(data);
    this.output.connect(node);
    const { port1, port2 } = new MessageChannel();
    node.port.postMessage({ port: port1 }, [port1]);
    this.#worker.postMessage({ type: 'start', url, pass, port: port2 }, [port2]);
  }

  /** Connects with another token from now on. */
  useToken(token) {
    this.#worker.postMessage({ type: 'token', token });
  }

  send(command) {
    return this.#ask({ type: 'send', command });
  }

  dominantFrequency(seconds) {
    return this.#ask({ type: 'dominantFrequency', seconds });
  }

  /** The last `seconds` that were decoded, as one channel of 48 kHz: `{samples, endMs}`; null while there is less. */
  recentSound(seconds) {
    return this.#ask({ type: 'recentSound', seconds });
  }

  async resumeSound() {
    await this.output.resume();
    this.#silence.follow();
  }

  /** Whether the session sounds: then the device is told so. */
  setPlaying(isPlaying) {
    this.#silence.isWanted = isPlaying;
    this.#silence.follow();
  }

  /** The track position being heard now; null when nothing is. */
  heardPositionMs() {
    if (!this.#report?.playing || this.#report.epoch !== this.#epoch) return null;
    return this.#report.positionMs + performance.now() - this.output.heardAtMs(this.#report.contextTime);
  }

  stats() {
    return {
      player: this.name,
      connected: this.#connected,
      framesReceived: this.#stats.framesReceived,
      lost: this.#stats.lost,
      bufferedMs: this.#report?.bufferedMs ?? 0,
      targetMs: this.#report?.targetMs ?? null,
      latencyMs: this.#report?.playing ? this.#latencyMs : null,
      roundTripMs: this.#stats.roundTripMs,
      underruns: this.#report?.underruns ?? 0,
      skips: this.#report?.skips ?? 0,
    };
  }

  #ask(question) {
    const id = ++this.#questionCount;
    this.#worker.postMessage({ ...question, id });
    return new Promise((resolve) => this.#questions.set(id, resolve));
  }

  #take(message) {
    switch (message.type) {
      case 'event':
        this.#epoch = message.epoch;
        this.#handlers.onEvent(message.event);
        break;
      case 'link':
        this.#connected = message.link.connected;
        this.#handlers.onLink(message.link);
        break;
      case 'stats':
        this.#stats = message;
        break;
      case 'answer':
        this.#questions.get(message.id)(message.answer);
        this.#questions.delete(message.id);
        break;
      case 'decoder-failed':
        this.#handlers.onFailure(message.message);
        break;
    }
  }

  #takeReport(report) {
    this.#report = report;
    if (!report.playing || this.#stats.engineOffsetMs === null) {
      this.#latencyMs = null;
      return;
    }
    const heardMs = performance.timeOrigin + this.output.heardAtMs(report.contextTime);
    const latencyMs = heardMs + this.#stats.engineOffsetMs - report.dueMs;
    this.#latencyMs = this.#latencyMs === null
      ? latencyMs : this.#latencyMs + (latencyMs - this.#latencyMs) * LATENCY_AVERAGING;
  }
}

/** A part of the sound could not be loaded: the page is loaded again (load-again.js). */
const reportMissing = () => dispatchEvent(new Event('sound-missing'));
