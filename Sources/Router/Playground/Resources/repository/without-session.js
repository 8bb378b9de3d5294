// The switch between the session, which needs a WebSocket, and the event stream, which is plain HTTP.

import { byId } from '../view/elements.js';

/** Shows the switch; whether it is on. The other way is another address, which can be kept and shared. */
export function isWithoutSession() {
  const box = byId('without-session');
  box.checked = new URLSearchParams(location.search).get('player') === 'stream';
  box.onchange = () => {
    const url = new URL(location.href);
    if (box.checked) url.searchParams.set('player', 'stream');
    else url.searchParams.delete('player');
    location.replace(url);
  };
  return box.checked;
}
