// The best of the two players that works in this browser.

import { canPlayOgg } from './can-play-ogg.js';
import { ElementPlayer } from './player-element.js';
import { WebCodecsPlayer, whyUnavailable } from './player-webcodecs.js';

/** Resolves with `{player, note}`; the note says why it is not the usual one, or is null. */
export async function choosePlayer(handlers) {
  const forced = new URLSearchParams(location.search).get('player') === 'audio';
  const reason = forced ? 'The plain Ogg player is used, because the address asks for it (player=audio).'
    : await whyUnavailable();
  if (!reason) return { player: new WebCodecsPlayer(handlers), note: null };
  const note = canPlayOgg() ? reason
    : 'This browser plays neither WebCodecs nor Ogg Opus, so it can control the session but not be heard. '
      + 'Any current Firefox, Chrome, Edge or Safari can.';
  return { player: new ElementPlayer(handlers), note };
}
