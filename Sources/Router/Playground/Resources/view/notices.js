// What the page says about trouble: a banner while a connection is gone, and messages that pass.

import { explain, sentence } from '../session/error-texts.js';
import { announce, byId, iconButton, make, passFocus, setText } from './elements.js';

const SHOWN_MS = 9000;
const MAX_SHOWN = 3;
/** A connection that is back this fast was not worth a banner. */
const BANNER_DELAY_MS = 400;
const TOO_SLOW = 1013;

export class Notices {
  #linkText = '';
  #engineText = '';
  #bannerTimer = 0;
  #isClosing = false;

  /** Shows an error object. One of a kind at a time: the next of the same code takes its place and is counted. */
  error(error) {
    const { what, advice, detail } = explain(error);
    const before = [...byId('toasts').children].find(({ dataset }) => dataset.code === (error.code ?? what));
    const count = Number(before?.dataset.count ?? 0) + 1;
    const toast = this.#toast('error', [
      make('p', { className: 'toast-message', textContent: count > 1 ? `${what} (${count} times)` : what }),
      advice ? make('p', { className: 'toast-hint', textContent: advice }) : null,
      detail ? make('p', { className: 'toast-detail', textContent: detail, dir: 'auto' }) : null,
    ]);
    toast.dataset.code = error.code ?? what;
    toast.dataset.count = count;
    if (error.local) toast.dataset.local = '';
    if (before) before.replaceWith(toast);
    else this.#add(toast);
  }

  /** Says what has happened; `children` are to be used, such as an address to copy. */
  info(message, ...children) {
    announce(message);
    this.#add(this.#toast('info', [make('p', { className: 'toast-message', textContent: message }), ...children],
      children.length > 0));
  }

  /** Says what was done, with a button that takes it back. */
  undoable(message, undo) {
    const button = make('button', {
      type: 'button', className: 'quiet-button', textContent: 'Undo',
      onclick: () => {
        remove(toast);
        undo();
      },
    });
    const toast = this.#toast('info', [make('p', { className: 'toast-message', textContent: message })], false, button);
    announce(`${message} Undo is among the messages.`);
    this.#add(toast);
  }

  /** The connection is back: what was said about its absence is over. */
  clearConnectionErrors() {
    byId('toasts').querySelectorAll('[data-local]').forEach(remove);
  }

  /** The server is about to go, and says so. */
  showClosing({ reason }) {
    this.#isClosing = true;
    this.#linkText = closingText(reason);
  }

  showLink({ connected, code, wasOpen }) {
    const state = byId('link-state');
    state.dataset.state = connected ? 'connected' : 'reconnecting';
    setText(state, connected ? 'Connected' : navigator.onLine ? 'Reconnecting…' : 'Offline');
    if (code === TOO_SLOW) {
      this.info('Your connection was too slow for the sound and was begun anew. A lower quality may help.');
    }
    if (connected) {
      this.#isClosing = false;
      clearTimeout(this.#bannerTimer);
      this.#bannerTimer = 0;
      this.#linkText = '';
      this.#showBanner();
    } else {
      if (wasOpen !== undefined && !this.#isClosing) this.#linkText = absenceText();
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

  #toast(kind, content, isLasting = false, ...buttons) {
    const toast = make('div', { className: `toast ${kind}`, role: kind === 'error' ? 'alert' : 'group' },
      make('div', {}, ...content), ...buttons, iconButton('remove', 'Dismiss', () => remove(toast)));
    // What is to be used stays until it is dismissed.
    if (isLasting) return toast;
    let timer = setTimeout(remove, SHOWN_MS, toast);
    // Anyone who is reading it, or about to use it, may take their time.
    const hold = () => clearTimeout(timer);
    const release = () => {
      clearTimeout(timer);
      timer = setTimeout(remove, SHOWN_MS, toast);
    };
    Object.assign(toast, { onpointerenter: hold, onpointerleave: release });
    toast.addEventListener('focusin', hold);
    toast.addEventListener('focusout', release);
    return toast;
  }

  #add(toast) {
    const shown = byId('toasts');
    // The same thing said twice is moved, not repeated.
    [...shown.children].find((other) => other.textContent === toast.textContent)?.remove();
    shown.append(toast);
    while (shown.children.length > MAX_SHOWN) remove(shown.firstElementChild);
  }
}

/** The keyboard does not fall out of the page with it. */
function remove(toast) {
  if (toast.contains(document.activeElement)) passFocus();
  toast.remove();
}

const absenceText = () => (navigator.onLine
  ? 'The connection to the server is gone. It is tried again by itself, and the sound goes on when the server answers.'
  : 'This device is offline. The sound goes on by itself when it is back online.');

const closingText = (reason) =>
  `${reason ? sentence(reason) : 'The server is going away.'} This page comes back by itself, and the sound goes on.`;
