// How GitHub is told of this server: the webhook's address, to be copied.

import { byId } from '../view/elements.js';

/** Names that no server of GitHub's can reach. */
const LOCAL = /^(?:localhost|127\.|10\.|192\.168\.|\[::1\])/;

/** `areWebhooksOn` is false where the server has no secret and takes none; undefined where it does not say. */
export function showConnect(notices, areWebhooksOn) {
  const address = new URL('webhooks/github', location.href);
  address.search = address.hash = '';
  const field = byId('webhook-url');
  field.value = address.href;
  byId('webhook-local').hidden = !LOCAL.test(location.hostname);
  byId('webhook-off').hidden = areWebhooksOn !== false;
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
