import { Readable } from 'node:stream';

import { PacketBuffer } from './packet-buffer.js';

/**
 * A session's Opus packets, for `createAudioResource(stream, { inputType: StreamType.Opus })`.
 *
 * An object-mode Readable that always has a packet: whenever the player reads, every 20 ms, it gets the next one, or a
 * frame of silence. It ends when the session is closed. Made by `session.packets()`.
 *
 * Read it, do not let it flow: without a pause between its reads, `pipe` or `data` are given silence without end.
 */
export class AntiphonStream extends Readable {
  #buffer;
  #isLast = false;

  constructor(buffer = new PacketBuffer()) {
    // One packet is read ahead: with more, silence would be, while the sound is yet to come.
    super({ objectMode: true, highWaterMark: 1 });
    this.#buffer = buffer;
  }

  /** `received`, `played`, `starved`, `silent`, `dropped`, `repeated`: packets, and frames of silence. */
  get counters() {
    return this.#buffer.counters;
  }

  /** For the session: a packet has come. */
  put(packet) {
    this.#buffer.put(packet);
  }

  /** For the session: whether packets are to come now. */
  expect(sound) {
    this.#buffer.expect(sound);
  }

  /** For the session: nothing follows what waits. */
  finish() {
    this.#isLast = true;
    this.#buffer.expect(false);
  }

  _read() {
    this.push(this.#isLast && this.#buffer.length === 0 ? null : this.#buffer.take());
  }
}
