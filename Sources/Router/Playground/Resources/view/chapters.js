// The chapters of what is playing: marks on the seek bar, and a list to go to one by.

import { byId, make } from './elements.js';
import { timeLabel } from './format.js';

export class Chapters {
  #seek;
  #chapters = [];
  #key = null;
  /** Which one the position is in, of those in the list. */
  #current = null;

  /** `seek(positionMs)` goes to a place of the track; null where that is not allowed. */
  constructor(seek) {
    this.#seek = seek;
  }

  show({ state, chapters, durationMs }) {
    // One chapter is the whole track.
    const shown = state === 'idle' || chapters.length < 2 ? [] : chapters;
    const key = JSON.stringify([shown, durationMs, state === 'extracting']);
    if (key === this.#key) return;
    this.#key = key;
    this.#current = null;
    this.#chapters = shown;
    byId('chapters-shelf').hidden = shown.length === 0;
    byId('chapters').replaceChildren(...shown.map(({ start_ms: startMs, title }) =>
      make('li', {},
        make('button', {
          type: 'button', className: 'chapter', disabled: this.#seek === null, onclick: () => this.#seek(startMs),
        },
          make('span', { className: 'time', textContent: timeLabel(startMs) }),
          make('span', { className: 'row-name', textContent: title, dir: 'auto' })))));
    byId('chapter-marks').replaceChildren(...shown.filter(() => durationMs).filter(({ start_ms: startMs }) => startMs > 0)
      .map(({ start_ms: startMs }) => {
        const mark = make('span', {});
        mark.style.setProperty('--at', startMs / durationMs);
        return mark;
      }));
  }

  /** Marks the chapter that a position is in; returns its title, or null. */
  follow(positionMs) {
    const current = this.#chapters.findLastIndex(({ start_ms: startMs }) => startMs <= positionMs);
    if (current !== this.#current) this.#mark(current);
    return this.#chapters[current]?.title ?? null;
  }

  #mark(current) {
    this.#current = current;
    [...byId('chapters').children].forEach((row, i) => {
      const button = row.firstElementChild;
      if (i === current) button.setAttribute('aria-current', 'true');
      else button.removeAttribute('aria-current');
    });
  }
}
