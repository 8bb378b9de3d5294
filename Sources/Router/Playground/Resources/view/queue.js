// The queue: what comes next, to remove and to clear.

import { byId, iconButton, make } from './elements.js';
import { sourcePlace, sourceTitle } from './format.js';

export class QueueView {
  #ask;
  #shown = null;

  constructor(ask) {
    this.#ask = ask;
    byId('queue-clear').onclick = () => ask({ type: 'queue_clear' });
  }

  show({ tracks }) {
    const key = JSON.stringify(tracks);
    if (key === this.#shown) return;
    this.#shown = key;
    byId('queue').replaceChildren(...tracks.map((track) => this.#row(track)));
    byId('queue-clear').hidden = tracks.length === 0;
    byId('queue-empty').hidden = tracks.length > 0;
  }

  #row({ id, url }) {
    const name = sourceTitle(url);
    return make('li', { className: 'row', title: url },
      make('div', { className: 'row-text' },
        make('span', { className: 'row-name', textContent: name }),
        make('span', { className: 'row-detail', textContent: sourcePlace(url) })),
      iconButton('remove', `Remove ${name} from the queue`, () => this.#ask({ type: 'queue_remove', id })));
  }
}
