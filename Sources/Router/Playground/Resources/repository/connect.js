// How this server hears of GitHub: the webhook's address, to be copied, and what it asks GitHub about by itself.

import { agoLabel } from '../session/event-texts.js';
import { byId, make } from '../view/elements.js';
import { clockLabel } from '../view/format.js';

/** Names that no server of GitHub's can reach. */
const LOCAL = /^(?:localhost|127\.|10\.|192\.168\.|\[::1\])/;

/**
 * `webhooks` is false where the server has no secret and takes none; undefined where it does not say. `polling` is what
 * it asks GitHub about: `[{name, last_poll_ms, next_poll_ms, requests_left, problem}]`.
 */
export function showConnect(notices, { webhooks, polling = [] }) {
  const address = new URL('webhooks/github', location.href);
  address.search = address.hash = '';
  const field = byId('webhook-url');
  field.value = address.href;
  byId('webhook-local').hidden = !LOCAL.test(location.hostname);
  byId('webhook-off').hidden = webhooks !== false || polling.length > 0;
  byId('polled').hidden = polling.length === 0;
  byId('polled-sources').replaceChildren(...polling.map((source) => make('li', { textContent: sourceLabel(source) })));
  byId('webhook-copy').onclick = async () => {
    try {
      await navigator.clipboard.writeText(address.href);
      notices.info('Address copied.');
    } catch {
      // Without a secure context there is no clipboard.
      field.select();
    }
  };
}

/** "octocat/Hello-World: asked just now"; with what is wrong, and when it is tried again. */
function sourceLabel({ name, last_poll_ms: last, next_poll_ms: next, problem }) {
  const time = clockLabel(next);
  if (problem) return `${name}: ${problem}. It is tried again at ${time}.`;
  return last ? `${name}: asked ${agoLabel(last, Date.now())}` : `${name}: not asked yet`;
}
