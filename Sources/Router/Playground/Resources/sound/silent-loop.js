// Silence in an <audio> element, going round for as long as the session sounds. Browsers give a page the keys of
// a keyboard and the controls of a lock screen only while such an element plays; sound that an AudioContext makes
// does not count. Chromium wants more than five seconds of it, and neither muted nor from a MediaStream.

const SECONDS = 10;
const RATE = 8000;
const HEADER_BYTES = 44;
/** Of 8-bit PCM, which has no sign. */
const MIDDLE = 0x80;

export class SilentLoop {
  isWanted = false;
  #audio = null;

  /** Plays or pauses as wanted; what the browser refuses now is tried again with the next call. */
  follow() {
    if (this.isWanted) {
      this.#audio ??= Object.assign(new Audio(URL.createObjectURL(silence())), { loop: true });
      if (this.#audio.paused) this.#audio.play().catch(() => {});
    } else {
      this.#audio?.pause();
    }
  }
}

/** A WAV file: one channel of 8 bits. */
function silence() {
  const length = SECONDS * RATE;
  const bytes = new Uint8Array(HEADER_BYTES + length).fill(MIDDLE);
  const view = new DataView(bytes.buffer);
  const text = (at, characters) => [...characters].forEach((each, i) => view.setUint8(at + i, each.charCodeAt(0)));
  const number = (at, value) => view.setUint32(at, value, true);
  text(0, 'RIFF');
  number(4, HEADER_BYTES - 8 + length);
  text(8, 'WAVEfmt ');
  number(16, 16);
  number(20, 0x0001_0001);
  number(24, RATE);
  number(28, RATE);
  number(32, 0x0008_0001);
  text(36, 'data');
  number(40, length);
  return new Blob([bytes], { type: 'audio/wav' });
}
