// The last stretch to the loudspeaker, the same for both players: input → left and right analyser, and
// input → local volume and mute → destination. What is measured is therefore what would be heard without them.

import { rootMeanSquare } from './pitch.js';

const SAMPLE_RATE = 48_000;
const FFT_SIZE = 4096;
/** Fast enough to feel immediate, slow enough not to click. */
const MUTE_FADE_S = 0.015;

export class SoundOutput {
  context = new AudioContext({ sampleRate: SAMPLE_RATE, latencyHint: 'interactive' });
  analysers;
  muted = false;
  #level = 1;
  #isDucked = false;
  #input = new GainNode(this.context, { channelCount: 2, channelCountMode: 'explicit' });
  #gain = new GainNode(this.context);
  #samples = new Float32Array(FFT_SIZE);

  /** `onState` is called when the browser allows sound or takes the permission back. */
  constructor(onState) {
    const splitter = new ChannelSplitterNode(this.context, { numberOfOutputs: 2 });
    const options = { fftSize: FFT_SIZE, smoothingTimeConstant: 0.72, minDecibels: -95, maxDecibels: -18 };
    this.analysers = [0, 1].map(() => new AnalyserNode(this.context, options));
    this.#input.connect(splitter);
    this.analysers.forEach((analyser, channel) => splitter.connect(analyser, channel));
    this.#input.connect(this.#gain).connect(this.context.destination);
    this.context.onstatechange = onState;
  }

  /** Whether the browser lets sound out; until somebody touches the page it may not. */
  get isAllowed() {
    return this.context.state === 'running';
  }

  connect(source) {
    source.connect(this.#input);
  }

  /** Best called from a click or a key press; harmless otherwise. */
  async resume() {
    if (this.context.state !== 'running') await this.context.resume();
  }

  setMuted(muted) {
    this.muted = muted;
    this.#apply();
  }

  /** How loud this device is, linear, 0 to 1. */
  setLevel(level) {
    this.#level = level;
    this.#apply();
  }

  get level() {
    return this.muted ? 0 : this.#level;
  }

  /** Makes room for another sound of the page's, for as long as that lasts. */
  setDucked(isDucked) {
    this.#isDucked = isDucked;
    this.#apply();
  }

  #apply() {
    const level = this.#isDucked ? 0 : this.level;
    this.#gain.gain.setTargetAtTime(level, this.context.currentTime, MUTE_FADE_S);
  }

  /** The latest 85 ms of one channel (0 left, 1 right). */
  recent(channel) {
    this.analysers[channel].getFloatTimeDomainData(this.#samples);
    return this.#samples;
  }

  /** The loudness of the latest 85 ms, both channels together. */
  rms() {
    return Math.hypot(...[0, 1].map((channel) => rootMeanSquare(this.recent(channel)))) / Math.SQRT2;
  }

  /** When what is played at `contextTime` (seconds) is heard, in milliseconds of performance.now. */
  heardAtMs(contextTime) {
    const stamp = this.context.getOutputTimestamp?.();
    if (stamp?.performanceTime > 0) return stamp.performanceTime + (contextTime - stamp.contextTime) * 1000;
    const latency = this.context.outputLatency ?? this.context.baseLatency ?? 0;
    return performance.now() + (contextTime + latency - this.context.currentTime) * 1000;
  }
}
