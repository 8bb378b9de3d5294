// A piece of sound that is there whole, played beside the session's and heard in its place.

import { rootMeanSquare } from './pitch.js';

/** Fast enough to feel immediate, slow enough not to click. */
const FADE_S = 0.03;

export class ReplaySound {
  #output;
  #buffer;
  #source = null;
  #gain;
  #startTime = 0;
  #analyser;

  /** Rejects where the browser cannot decode `bytes`; they are an Ogg Opus file. */
  static async decode(output, bytes) {
    return new ReplaySound(output, await output.context.decodeAudioData(bytes));
  }

  constructor(output, buffer) {
    this.#output = output;
    this.#buffer = buffer;
    this.#gain = new GainNode(output.context, { gain: output.level });
    this.#analyser = new AnalyserNode(output.context, { fftSize: 4096 });
    this.#gain.connect(output.context.destination);
  }

  get durationMs() {
    return this.#buffer.duration * 1000;
  }

  /** `onEnd` is called when it has been played to its end, or was stopped. */
  start(onEnd) {
    const { context } = this.#output;
    this.#source = new AudioBufferSourceNode(context, { buffer: this.#buffer });
    this.#source.connect(this.#analyser);
    this.#source.connect(this.#gain);
    this.#source.onended = onEnd;
    this.#startTime = context.currentTime;
    this.#source.start(this.#startTime);
    this.#output.setDucked(true);
  }

  /** What is being heard, in milliseconds from the beginning. */
  get heardMs() {
    return Math.max(0, performance.now() - this.#output.heardAtMs(this.#startTime));
  }

  /** The loudness of the latest 85 ms, before the volume of this device. */
  rms() {
    const samples = new Float32Array(this.#analyser.fftSize);
    this.#analyser.getFloatTimeDomainData(samples);
    return rootMeanSquare(samples);
  }

  /** Follows the volume and the mute of this device. */
  follow() {
    this.#gain.gain.setTargetAtTime(this.#output.level, this.#output.context.currentTime, FADE_S);
  }

  stop() {
    const { currentTime } = this.#output.context;
    this.#gain.gain.setTargetAtTime(0, currentTime, FADE_S);
    this.#source?.stop(currentTime + 4 * FADE_S);
    this.#output.setDucked(false);
  }
}
