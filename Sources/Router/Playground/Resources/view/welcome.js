// The invitation to a newcomer: the sample pieces, one press from sounding.

import { listMedia } from '../session/rest.js';
import { byId, icon, make, passFocus } from './elements.js';
import { fileTitle } from './format.js';

const SAMPLES_FOLDER = 'samples';
const MAX_OFFERED = 3;

export class Welcome {
  /** The first sample, if there is one. */
  firstURL = null;
  #play;

  /** `play(track)`. */
  constructor(play) {
    this.#play = play;
  }

  async loadIfMissing() {
    if (this.firstURL) return;
    const { entries = [] } = await listMedia(SAMPLES_FOLDER);
    const samples = entries.filter(({ kind }) => kind === 'file').slice(0, MAX_OFFERED);
    this.firstURL = samples[0]?.url ?? null;
    byId('welcome').replaceChildren(
      make('p', { textContent: samples.length ? 'Press play on a sample' : 'Paste an address, or choose from the library' }),
      make('div', { className: 'samples' }, ...samples.map(({ name, url }) =>
        make('button', { type: 'button', className: 'sample', onclick: () => this.#play({ url }) },
          icon('play'), fileTitle(name)))));
  }

  show(isWanted) {
    const welcome = byId('welcome');
    if (!isWanted && welcome.contains(document.activeElement)) passFocus();
    welcome.hidden = !isWanted;
  }
}
