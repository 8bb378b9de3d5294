// The quality of the session: the bit rate at which the tracks from now on are sent to all who listen.

import { byId, make } from './elements.js';

export class Quality {
  #select = byId('quality');

  constructor(ask) {
    this.#select.onchange = () => {
      const { value } = this.#select;
      ask({ type: 'quality', bitrate_kbps: value ? Number(value) : null });
    };
  }

  /** As the server has it; somebody may have chosen a rate that is not offered here. */
  show({ bitrateKbps }) {
    const value = String(bitrateKbps ?? '');
    if (value === this.#select.value) return;
    if (![...this.#select.options].some((option) => option.value === value)) {
      this.#select.append(make('option', { value, textContent: `${value} kbit/s` }));
    }
    this.#select.value = value;
  }
}
