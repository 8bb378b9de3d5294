// Listening on this device: on, off and how loud. The session goes on for everyone else.

import { announce, byId, setText } from '../view/elements.js';

export class Listening {
  #player;
  #onChange;
  #isWanted = true;
  #volume = byId('volume');

  constructor({ player, onChange }) {
    this.#player = player;
    this.#onChange = onChange;
    byId('play-pause').onclick = () => this.toggle();
    byId('hear').onclick = () => player.resumeSound();
    this.#volume.oninput = () => {
      this.#setLevel();
      onChange();
    };
    this.#setLevel();
  }

  get isListening() {
    return this.#isWanted && this.#player.output.isAllowed;
  }

  async toggle() {
    // Where the browser has held the sound back until now, the press only lets it out.
    this.#isWanted = !this.isListening;
    this.#player.output.setMuted(!this.#isWanted);
    if (this.#isWanted) await this.#player.resumeSound();
    announce(this.#isWanted ? 'Listening' : 'Not listening');
    this.#onChange();
  }

  show() {
    const { isListening } = this;
    const button = byId('play-pause');
    const label = isListening ? 'Stop listening' : 'Listen';
    button.dataset.state = isListening ? 'streaming' : 'idle';
    button.title = label;
    button.setAttribute('aria-label', label);
    byId('hear').hidden = this.#player.output.isAllowed;
  }

  #setLevel() {
    const value = this.#volume.valueAsNumber;
    // Squared, so that equal steps sound about equally large.
    this.#player.output.setLevel(value ** 2);
    const percent = `${Math.round(100 * value)} %`;
    setText(byId('volume-value'), percent);
    this.#volume.setAttribute('aria-valuetext', percent);
    this.#volume.style.setProperty('--fill', value);
  }
}
