// How this tab's next track is to be played: its quality, and whether it begins anew at its end.

import { byId } from './elements.js';

const STORAGE_KEY = 'antiphon.quality';

export class PlayOptions {
  #quality = byId('quality');
  #loop = byId('loop');

  constructor() {
    this.#quality.value = recall();
    // A value that is no choice any more leaves none chosen.
    if (this.#quality.selectedIndex < 0) this.#quality.value = '';
    this.#quality.onchange = () => remember(this.#quality.value);
  }

  /** The fields of a `play`; what is not given is the engine's to choose. */
  get fields() {
    return {
      ...(this.#quality.value ? { bitrate_kbps: Number(this.#quality.value) } : {}),
      ...(this.#loop.checked ? { loop: true } : {}),
    };
  }
}

// Storage can be forbidden; the choice is then this visit's alone.
function recall() {
  try {
    return localStorage.getItem(STORAGE_KEY) ?? '';
  } catch {
    return '';
  }
}

function remember(value) {
  try {
    localStorage.setItem(STORAGE_KEY, value);
  } catch {
    return;
  }
}
