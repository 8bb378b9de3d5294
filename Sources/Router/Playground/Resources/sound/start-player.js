// Connects a player to a session of this server.

import { currentToken } from '../session/token.js';

/** Rejects where the browser cannot start the sound. `scope` is what the page's token is to be used for. */
export async function startPlayer(player, session, scope) {
  // Any first touch of the page may be the one that lets the browser play sound.
  for (const type of ['pointerdown', 'keydown', 'touchend']) {
    addEventListener(type, () => player.resumeSound(), { capture: true });
  }
  const url = new URL('ws', location.href);
  url.protocol = location.protocol === 'https:' ? 'wss:' : 'ws:';
  url.search = new URLSearchParams({ session }).toString();
  const listenURL = new URL(`listen/${encodeURIComponent(session)}.ogg`, location.href);
  listenURL.search = '';
  const pass = { token: currentToken(), session, scope, base: location.href };
  await player.start({ url: url.href, listenURL: listenURL.href, pass });
}
