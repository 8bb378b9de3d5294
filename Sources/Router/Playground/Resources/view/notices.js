// What the page says about trouble: a banner while a connection is gone, and messages that pass.

import { byId, iconButton, make, setText } from './elements.js';
import { capitalized, hintForPeople, sentence } from './format.js';

const SHOWN_MS = 9000;
const MAX_SHOWN = 3;
/** A connection that is back this fast was not worth a banner. */
const BANNER_DELAY_MS = 400;
const FIRST_ATTEMPTS = 3;

export class Notices {
  #linkText = '';
  #engineText = '';
  #bannerTimer = 0;

  /** Shows an error object's `message` and `hint`. */
  error({ message, hint, local }) {
    this.#toast('error', message, hintForPeople(hint), local);
  }

  info(message, ...children) {
    this.#toast('info', message, null, false, ...children);
  }

  /** The connection is back: what was said about its absence is over. */
  clearConnectionErrors() {
    byId('toasts').querySelectorAll('[data-local]').forEach((toast) => toast.remove());
  }

  showLink({ connected, attempt }) {
    const state = byId('link-state');
    state.dataset.state = connected ? 'connected' : 'reconnecting';
    setText(state, connected ? 'Connected' : 'Reconnecting…');
    this.#linkText = connected ? '' : 'The connection to the server is gone. '
      + (attempt > FIRST_ATTEMPTS ? 'It is tried again twice a second; ' : 'Trying again; ')
      + 'the sound goes on by itself when the server answers.';
    if (connected) {
      clearTimeout(this.#bannerTimer);
      this.#bannerTimer = 0;
      this.#showBanner();
    } else {
      this.#bannerTimer ||= setTimeout(() => this.#showBanner(), BANNER_DELAY_MS);
    }
  }

  showEngine({ connected, message }) {
    const text = connected ? '' : 'The audio engine is away; '
      + `what was playing goes on by itself when it is back.${message ? ` (${sentence(message)})` : ''}`;
    if (text === this.#engineText) return;
    this.#engineText = text;
    this.#showBanner();
  }

  #showBanner() {
    const banner = byId('banner');
    const text = this.#linkText || this.#engineText;
    setText(banner, text);
    banner.hidden = text === '';
  }

  #toast(kind, message, hint, isLocal, ...children) {
    const log = byId('toasts');
    const toast = make('div', { className: `toast ${kind}` },
      make('div', {},
        make('p', { className: 'toast-message', textContent: message }),
        hint ? make('p', { className: 'toast-hint', textContent: capitalized(hint) }) : null,
        ...children),
      iconButton('remove', 'Dismiss', () => toast.remove()));
    if (isLocal) toast.dataset.local = '';
    // The same thing said twice is moved, not repeated.
    [...log.children].find((other) => other.textContent === toast.textContent)?.remove();
    log.append(toast);
    while (log.children.length > MAX_SHOWN) log.firstElementChild.remove();
    // What is to be used, such as an address to copy, stays until it is dismissed.
    if (children.length > 0) return;
    let timer = setTimeout(() => toast.remove(), SHOWN_MS);
    // Whoever is reading it may take their time.
    toast.onpointerenter = () => clearTimeout(timer);
    toast.onpointerleave = () => (timer = setTimeout(() => toast.remove(), SHOWN_MS));
  }
}
