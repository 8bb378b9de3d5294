// The queue: what comes next, to remove and to clear.

import { byId, iconButton, make } from './elements.js';
import { sourcePlace, sourceTitle } from './format.js';

export class QueueView {
  #ask;
  #known;
  #shown = null;

  /** `known` tells what the addresses in it are called. */
  constructor(ask, known) {
    this.#ask = ask;
    this.#known = known;
    byId('queue-clear').onclick = () => ask({ type: 'queue_clear' });
  }

  show({ tracks }) {
    const key = JSON.stringify(tracks.map(({ id, url }) => [id, this.#known.get(url)?.title]));
    if (key === this.#shown) return;
    this.#shown = key;
    const list = byId('queue');
    const clear = byId('queue-clear');
    const focused = [...list.children].findIndex((row) => row.contains(document.activeElement));
    const focusedID = list.children[focused]?.dataset.id;
    const hadFocus = focused >= 0 || clear === document.activeElement;
    list.replaceChildren(...tracks.map((track) => this.#row(track)));
    clear.hidden = tracks.length === 0;
    byId('queue-empty').hidden = tracks.length > 0;
    if (focused >= 0) this.#focusRow(focusedID, focused);
    if (hadFocus && tracks.length === 0) byId('queue-heading').focus();
  }

  /** The keyboard stays with its track, or, when that is gone, at its place in the list. */
  #focusRow(id, place) {
    const rows = [...byId('queue').children];
    const row = rows.find((other) => other.dataset.id === id) ?? rows[place] ?? rows.at(-1);
    row?.querySelector('button').focus();
  }

  #row({ id, url }) {
    const track = this.#known.get(url);
    const name = track?.title ?? sourceTitle(url);
    const row = make('li', { className: 'row', title: url },
      make('div', { className: 'row-text' },
        make('span', { className: 'row-name', textContent: name, dir: 'auto' }),
        make('span', { className: 'row-detail', textContent: track?.artist ?? sourcePlace(url), dir: 'auto' })),
      iconButton('remove', `Remove ${name} from the queue`, () => this.#ask({ type: 'queue_remove', id })));
    row.dataset.id = id;
    return row;
  }
}
