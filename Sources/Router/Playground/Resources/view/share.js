// The session's name and the button that copies the address with which others join it.

import { shareURL } from '../session/identity.js';
import { byId, make } from './elements.js';

export class ShareButton {
  constructor({ id, shared }, notices) {
    const label = byId('session-id');
    label.textContent = id;
    label.title = shared ? 'You have joined this session: everybody in it hears and controls the same'
      : 'This tab’s own session';
    byId('share').onclick = async () => {
      const url = shareURL(id);
      try {
        await navigator.clipboard.writeText(url);
        notices.info('Link copied. Anyone who opens it hears and controls this session with you.');
      } catch {
        // Without a secure context there is no clipboard: show the address to copy by hand.
        const field = make('input', {
          className: 'copy-field', value: url, readOnly: true, 'aria-label': 'Address of this session',
        });
        notices.info('Copy this link. Anyone who opens it hears and controls this session with you.', field);
        field.select();
      }
    };
  }
}
