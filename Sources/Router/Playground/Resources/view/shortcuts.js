// The keyboard's shortcuts, and the dialog that lists them. Single letters can be switched off there, since speech
// control and slips of the hand press them too.

import { byId, closeByBackdrop, make } from './elements.js';

const SEEK_MS = 5000;
const STORAGE_KEY = 'antiphon.shortcuts';
/** Where keys are text, or choose among several. */
const TAKES_KEYS = 'input:not([type=range], [type=checkbox]), textarea, select, [contenteditable]';
/** What the keys of these are for. */
const USES_SPACE = 'button, a, summary, input';
const USES_ARROWS = '[role=tab], #volume';

export class Shortcuts {
  #shortcuts;
  #dialog = byId('help');
  #areLettersOn = byId('shortcuts-on');

  /** `transport` and `queue` are the views of that name; `find()` goes to the search field. */
  constructor({ transport, queue, find }) {
    this.#shortcuts = [
      { key: ' ', label: 'Play or pause', run: () => transport.toggle() },
      { key: 'ArrowLeft', repeats: true, label: '5 seconds back', run: () => transport.seekBy(-SEEK_MS) },
      { key: 'ArrowRight', repeats: true, label: '5 seconds on', run: () => transport.seekBy(SEEK_MS) },
      { key: 'ArrowLeft', shift: true, label: 'Previous track', run: () => transport.previous() },
      { key: 'ArrowRight', shift: true, label: 'Next track', run: () => transport.next() },
      { key: 'm', label: 'Mute this device', run: () => transport.toggleMute() },
      { key: 'l', label: 'Repeat: off, the queue, this track', run: () => transport.cycleLoop() },
      { key: 's', label: 'Shuffle the queue', run: () => queue.shuffle() },
      { key: '/', label: 'Search, or paste a link', run: find },
      { key: '?', label: 'This list', run: () => this.open() },
    ];
    this.#areLettersOn.checked = recall();
    this.#areLettersOn.onchange = () => remember(this.#areLettersOn.checked);
    byId('help-open').onclick = () => this.open();
    byId('help-close').onclick = () => this.#dialog.close();
    closeByBackdrop(this.#dialog);
    byId('shortcuts').replaceChildren(...this.#shortcuts.map(line),
      line({ keys: ['Alt', '↑'], or: '↓', label: 'Move the chosen track in the queue' }));
    document.addEventListener('keydown', (event) => this.#take(event));
  }

  open() {
    this.#dialog.showModal();
  }

  #take(event) {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    // A dialog is in front of everything that could be meant.
    if (document.querySelector('dialog[open]') || event.target.closest(TAKES_KEYS)) return;
    const shortcut = this.#shortcuts.find(({ key, shift = false }) =>
      key === event.key.replace(/^[A-Z]$/, (letter) => letter.toLowerCase())
        && (!key.startsWith('Arrow') || shift === event.shiftKey));
    if (!shortcut || this.#isTaken(shortcut, event)) return;
    event.preventDefault();
    if (!event.repeat || shortcut.repeats) shortcut.run();
  }

  #isTaken({ key }, { target }) {
    if (key === ' ') return target.closest(USES_SPACE) && target.type !== 'range';
    if (key.startsWith('Arrow')) return target.closest(USES_ARROWS);
    return !this.#areLettersOn.checked;
  }
}

const NAMES = { ' ': 'Space', ArrowLeft: '←', ArrowRight: '→', m: 'M', l: 'L', s: 'S' };

function line({ key, shift = false, keys = [...(shift ? ['Shift'] : []), NAMES[key] ?? key], or, label }) {
  const caps = keys.flatMap((name, i) => [...(i ? [' + '] : []), make('kbd', { textContent: name })]);
  return make('div', {},
    make('dt', {}, ...caps, ...(or ? [' or ', make('kbd', { textContent: or })] : [])), make('dd', { textContent: label }));
}

// Storage can be forbidden; the choice is then this visit's alone.
function recall() {
  try {
    return localStorage.getItem(STORAGE_KEY) !== 'off';
  } catch {
    return true;
  }
}

function remember(isOn) {
  try {
    localStorage.setItem(STORAGE_KEY, isOn ? 'on' : 'off');
  } catch {
    return;
  }
}
