// The voices of the music, to be silenced one by one: for everybody who listens.

import { announce, byId, make } from '../view/elements.js';

/** role → its name, and what plays it. */
const VOICES = { melody: 'Melody', harmony: 'Harmony', bass: 'Bass', percussion: 'Percussion', bed: 'Bed' };

export class Voices {
  #ask;
  #muted = new Set();
  /** What was asked for last, until the session has it. */
  #wanted = null;
  #buttons;

  /** `ask(command)` resolves with the answer, whose errors have been shown. */
  constructor({ ask, canControl }) {
    this.#ask = ask;
    this.#buttons = new Map(Object.entries(VOICES).map(([role, name]) => [role, this.#button(role, name, canControl)]));
    byId('voices').replaceChildren(...this.#buttons.values());
    byId('voices-note').textContent = canControl ? 'for everyone who listens'
      : 'your token does not allow to silence them';
  }

  get isSilent() {
    return Object.keys(VOICES).every((role) => this.#muted.has(role));
  }

  show(muted) {
    this.#muted = new Set(muted);
    for (const [role, button] of this.#buttons) button.setAttribute('aria-pressed', String(!this.#muted.has(role)));
  }

  #button(role, name, canControl) {
    const button = make('button', {
      type: 'button', className: 'voice', 'aria-pressed': 'true', disabled: !canControl,
      title: `${name}: heard, or silenced for everyone`,
      onclick: () => this.#toggle(role, name),
    }, make('span', { className: 'voice-mark', 'aria-hidden': 'true' }), name);
    button.dataset.role = role;
    return button;
  }

  async #toggle(role, name) {
    const before = this.#wanted ?? this.#muted;
    const isMuted = !before.has(role);
    const wanted = new Set(Object.keys(VOICES).filter((each) => (each === role ? isMuted : before.has(each))));
    this.#wanted = wanted;
    const answer = await this.#ask({ type: 'mute', voices: [...wanted] });
    if (this.#wanted === wanted) this.#wanted = null;
    if (answer.type !== 'error') announce(`${name} is ${isMuted ? 'silenced' : 'heard again'}, for everyone.`);
  }
}
