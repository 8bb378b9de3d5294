// The AudioWorklet processor around the jitter buffer: takes decoded sound from the worker's port, gives it
// to the sound card, and tells the page several times a second what is being heard.

import { JitterBuffer, SAMPLE_RATE } from './jitter-buffer.js';

/** 25 reports a second: enough for a position that moves smoothly. */
const REPORT_INTERVAL_FRAMES = SAMPLE_RATE / 25;

class JitterProcessor extends AudioWorkletProcessor {
  #buffer = new JitterBuffer();
  #epoch = 0;
  #nextReportFrame = 0;
  /** Reused: the page gets a copy. */
  #report = {
    epoch: 0, contextTime: 0, playing: false, dueMs: null, positionMs: null,
    bufferedMs: 0, targetMs: 0, underruns: 0, skips: 0,
  };

  constructor() {
    super();
    this.port.onmessage = ({ data }) => {
      data.port.onmessage = (message) => this.#take(message.data);
    };
  }

  process(_, outputs) {
    const [left, right] = outputs[0];
    this.#buffer.pull(left, right);
    if (currentFrame >= this.#nextReportFrame) {
      this.#nextReportFrame = currentFrame + REPORT_INTERVAL_FRAMES;
      this.#sendReport(left.length);
    }
    return true;
  }

  #take(message) {
    switch (message.type) {
      case 'sound':
        this.#buffer.push(
          message.left, message.right, message.dueMs, message.positionMs,
          message.isBurst ? null : currentTime * 1000,
        );
        break;
      case 'drain':
        this.#buffer.drain();
        break;
      case 'flush':
        this.#buffer.flush();
        this.#epoch = message.epoch;
        break;
    }
  }

  #sendReport(frames) {
    const report = this.#report;
    const buffer = this.#buffer;
    report.epoch = this.#epoch;
    report.contextTime = currentTime + frames / SAMPLE_RATE;
    report.playing = buffer.playing;
    report.dueMs = buffer.dueMs;
    report.positionMs = buffer.positionMs;
    report.bufferedMs = buffer.bufferedMs;
    report.targetMs = buffer.targetMs;
    report.underruns = buffer.underruns;
    report.skips = buffer.skips;
    this.port.postMessage(report);
  }
}

registerProcessor('antiphon-jitter', JitterProcessor);
