// One question before what cannot be taken back.

import { byId, setText } from './elements.js';

/** Resolves with whether the person said yes, by the button that is called `label`. */
export function confirmed(question, label) {
  const dialog = byId('confirm');
  setText(byId('confirm-question'), question);
  setText(byId('confirm-yes'), label);
  dialog.returnValue = '';
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.onclose = () => resolve(dialog.returnValue === 'yes');
  });
}
