// One track of the queue or of the history, as a row.

import { artworkTile } from './artwork.js';
import { icon, iconButton, make } from './elements.js';
import { sourcePlace, timeLabel, trackName } from './format.js';

/**
 * A track that waits. `actions`: `playNow`, `playNext`, `remove`, each called with the track; null where the page may
 * not control the session.
 */
export function queueRow(track, actions, isFirst) {
  const name = trackName(track);
  const row = make('li', { className: 'row track-row', title: track.url });
  row.dataset.id = track.id;
  if (!actions) {
    row.append(artworkTile(track.artwork, 'small'), text(track, name), time(track));
    return row;
  }
  const next = iconButton('next', `Move ${name} to the top`, () => actions.playNext(track));
  next.classList.add('play-next');
  next.disabled = isFirst;
  row.append(
    make('button', {
      type: 'button', className: 'handle', title: 'Drag to move, or press the up and down arrow keys',
      'aria-label': `Move ${name}`, 'aria-describedby': 'queue-help',
    }, icon('grip')),
    playButton(track, name, `Play ${name} now`, actions.playNow),
    next,
    iconButton('remove', `Remove ${name} from the queue`, () => actions.remove(track)),
  );
  return row;
}

/** A track that was played. `actions`: `playNow` and `add`; null as above. */
export function historyRow(track, actions) {
  const name = trackName(track);
  const row = make('li', { className: 'row track-row', title: track.url });
  row.dataset.id = track.id;
  if (!actions) row.append(artworkTile(track.artwork, 'small'), text(track, name), time(track));
  else row.append(
    playButton(track, name, `Play ${name} again`, actions.playNow),
    iconButton('add', `Add ${name} to the queue`, ({ currentTarget }) => actions.add([track], null, currentTarget)));
  return row;
}

const playButton = (track, name, label, play) =>
  make('button', { type: 'button', className: 'row-button', 'aria-label': label, onclick: () => play(track) },
    artworkTile(track.artwork, 'small'), text(track, name), time(track));

const text = (track, name) =>
  make('span', { className: 'row-text' },
    make('span', { className: 'row-name', textContent: name, dir: 'auto' }),
    make('span', { className: 'row-detail', textContent: track.artist || sourcePlace(track.url), dir: 'auto' }));

const time = ({ duration_ms: durationMs }) =>
  make('span', { className: 'row-time', textContent: durationMs ? timeLabel(durationMs) : '' });
