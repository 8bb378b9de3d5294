// Opus packets in, PCM out, in order, by WebCodecs. Marks (drain) travel with the packets, so that they take
// effect between the right two of them although decoding is asynchronous.

const CONFIG = { codec: 'opus', sampleRate: 48_000, numberOfChannels: 2 };
const PACKET_US = 20_000;
/** A decoder that fails this often without a packet between is not going to work. */
const FAILURE_LIMIT = 5;

export const isSupported = async () =>
  'AudioDecoder' in self && (await AudioDecoder.isConfigSupported(CONFIG)).supported === true;

export class OpusDecoder {
  #onSound;
  #onMark;
  #onFailure;
  #decoder = null;
  #failures = 0;
  #isBroken = false;
  /** Packets given to the decoder and not back yet, and the marks between them: oldest first. */
  #waiting = [];
  #nextTimestamp = 0;

  /** `onSound({left, right, about})`, `onMark(mark)`, `onFailure(error)` when decoding is impossible here. */
  constructor({ onSound, onMark, onFailure }) {
    this.#onSound = onSound;
    this.#onMark = onMark;
    this.#onFailure = onFailure;
    this.#open();
  }

  /** Decodes one packet; `about` comes back with its sound. */
  decode(packet, about) {
    if (this.#isBroken) return;
    this.#waiting.push({ timestamp: this.#nextTimestamp, about });
    this.#decoder.decode(new EncodedAudioChunk({
      type: 'key', timestamp: this.#nextTimestamp, duration: PACKET_US, data: packet,
    }));
    this.#nextTimestamp += PACKET_US;
  }

  /** Hands `mark` to onMark after the sound of all packets so far. */
  mark(mark) {
    if (this.#waiting.length === 0) this.#onMark(mark);
    else this.#waiting.push({ mark });
  }

  /** Forgets what is being decoded and the codec's memory of the sound before. */
  reset() {
    this.#waiting = [];
    if (this.#isBroken) return;
    this.#decoder.reset();
    this.#decoder.configure(CONFIG);
  }

  #open() {
    this.#decoder = new AudioDecoder({
      output: (data) => this.#output(data),
      error: (error) => this.#failed(error),
    });
    this.#decoder.configure(CONFIG);
  }

  #output(data) {
    this.#failures = 0;
    // A decoder may swallow a packet, for example one that is damaged: then its entry is passed over.
    while (this.#waiting.length > 0) {
      const entry = this.#waiting[0];
      if (entry.mark === undefined && entry.timestamp + PACKET_US / 2 > data.timestamp) break;
      this.#waiting.shift();
      if (entry.mark !== undefined) this.#onMark(entry.mark);
    }
    const entry = this.#waiting.shift();
    if (entry) this.#onSound({ ...planes(data), about: entry.about });
    data.close();
    while (this.#waiting[0]?.mark !== undefined) this.#onMark(this.#waiting.shift().mark);
  }

  #failed(error) {
    this.#failures += 1;
    this.#waiting = [];
    this.#isBroken = this.#failures >= FAILURE_LIMIT;
    if (this.#isBroken) this.#onFailure(error);
    else this.#open();
  }
}

/** The two channels as arrays of their own; a mono sound is on both. */
function planes(data) {
  const left = new Float32Array(data.numberOfFrames);
  data.copyTo(left, { planeIndex: 0, format: 'f32-planar' });
  if (data.numberOfChannels < 2) return { left, right: left.slice() };
  const right = new Float32Array(data.numberOfFrames);
  data.copyTo(right, { planeIndex: 1, format: 'f32-planar' });
  return { left, right };
}
