// The panel that asks for a token, where the server wants one.

import { findAccess } from '../session/access.js';
import { keepToken } from '../session/token.js';
import { byId, make, setText } from './elements.js';

export class SignIn {
  #dialog = byId('sign-in');
  #field = byId('token');
  #whenDone = null;
  #isVoluntary = false;

  constructor() {
    byId('sign-in-form').onsubmit = (event) => {
      event.preventDefault();
      this.#try();
    };
    byId('sign-in-cancel').onclick = () => this.#dialog.close();
    // There is nothing behind it that could be used without.
    this.#dialog.addEventListener('cancel', (event) => {
      if (!this.#isVoluntary) event.preventDefault();
    });
  }

  /**
   * Asks until a token is accepted, and resolves with the access it gives. `reason` is why it is asked for; `isVoluntary`
   * where the page can be used without.
   */
  ask(reason, { isVoluntary = false } = {}) {
    setText(byId('sign-in-reason'), reason);
    this.#isVoluntary = isVoluntary;
    byId('sign-in-cancel').hidden = !isVoluntary;
    this.#complain('');
    if (!this.#dialog.open) this.#dialog.showModal();
    this.#field.focus();
    return new Promise((resolve) => (this.#whenDone = resolve));
  }

  async #try() {
    const token = this.#field.value.trim();
    if (!token) return;
    const button = byId('sign-in-submit');
    button.disabled = true;
    const access = await findAccess(token);
    button.disabled = false;
    if (!access.isKnown) {
      this.#complain(
        'The server does not accept this token: it has expired, was made for another server, or was not copied whole.');
      this.#field.focus();
      return;
    }
    keepToken(token, { forever: byId('token-keep').checked });
    this.#field.value = '';
    this.#dialog.close();
    this.#whenDone(access);
  }

  #complain(text) {
    byId('token-problem').replaceChildren(...(text ? [make('span', { textContent: text })] : []));
    if (text) this.#field.setAttribute('aria-invalid', 'true');
    else this.#field.removeAttribute('aria-invalid');
  }
}
