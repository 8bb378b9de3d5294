// A track that was found, in the library or by a search: to play, and to add next or at the end.

import { icon, iconButton, make } from './elements.js';

/** `glyph` stands before the name: a cover, or a mark. `actions` are those of `addActions`. */
export function foundRow(track, { name, detail, glyph, actions }) {
  const row = make('li', { className: 'row found-row', title: name },
    make('button', {
      type: 'button', className: 'row-button', 'aria-label': `Play ${name}`, onclick: () => actions.play(track),
    },
      glyph,
      make('span', { className: 'row-text' },
        make('span', { className: 'row-name', textContent: name, dir: 'auto' }),
        make('span', { className: 'row-detail', textContent: detail, dir: 'auto' })),
      make('span', { className: 'row-glyph', 'aria-hidden': 'true' }, icon('play'))),
    iconButton('next', `Play ${name} next`, ({ currentTarget }) => actions.add([track], 0, currentTarget)),
    iconButton('add', `Add ${name} to the queue`, ({ currentTarget }) => actions.add([track], null, currentTarget)));
  row.dataset.url = track.url;
  return row;
}
