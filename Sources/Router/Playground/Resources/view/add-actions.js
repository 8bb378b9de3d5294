// What can be done with a track wherever one is listed: play it, or add it next or at the end.

import { announce, icon } from './elements.js';
import { trackName, tracksLabel } from './format.js';

/** How long a button shows that it has done what it does. */
const DONE_MS = 1200;

/** `{play(track), add(tracks, position, button)}` on the commands of a queue; a position of null is the end. */
export function addActions(commands) {
  return {
    play: (track) => commands.playNow(track),
    async add(tracks, position, button) {
      const count = await commands.add(tracks, position);
      if (count === 0) return;
      const what = tracks.length === 1 ? trackName(tracks[0]) : tracksLabel(count);
      announce(`${what} added ${position === 0 ? 'as the next' : 'to the queue'}.`);
      showDone(button);
    },
  };
}

function showDone(button) {
  const glyph = button.querySelector('.icon');
  if (!glyph || button.dataset.done) return;
  button.dataset.done = '';
  const done = icon('good');
  glyph.replaceWith(done);
  setTimeout(() => {
    done.replaceWith(glyph);
    delete button.dataset.done;
  }, DONE_MS);
}
