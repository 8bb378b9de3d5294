// The field to paste an address into.

import { byId } from './elements.js';

export class SourceForm {
  constructor({ play, queue }) {
    const form = byId('source');
    form.onsubmit = async (event) => {
      event.preventDefault();
      const field = byId('source-url');
      const url = field.value.trim();
      if (!url) return;
      const action = event.submitter?.value === 'queue' ? queue : play;
      const answer = await action(url);
      // What failed stays, to be corrected.
      if (answer.type !== 'error' && field.value.trim() === url) field.value = '';
    };
  }
}
