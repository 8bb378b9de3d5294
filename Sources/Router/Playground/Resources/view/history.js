// The tabs of the shelf of tracks: what comes next, and what was played, to play it again.

import { listHistory } from '../session/rest.js';
import { explain } from '../session/error-texts.js';
import { byId, say } from './elements.js';
import { historyRow } from './queue-row.js';
import { Tabs } from './tabs.js';

/** All that the server keeps. */
const LIMIT = 100;

export class HistoryView {
  #session;
  #actions;
  #list = byId('history');
  /** Of what is shown: the history changes only with what plays. */
  #key = null;
  #isOpen = false;

  /** `actions` as `historyRow` takes them, or null. */
  constructor({ session, actions }) {
    this.#session = session;
    this.#actions = actions;
    new Tabs([byId('tab-next'), byId('tab-history')], { onOpen: (chosen) => this.#open(chosen === 1) });
  }

  /** Called after every event. */
  show({ historyTotal, current }) {
    const key = JSON.stringify([historyTotal, current?.id]);
    if (key === this.#key) return;
    this.#key = key;
    if (this.#isOpen) this.#load();
  }

  #open(isOpen) {
    this.#isOpen = isOpen;
    byId('queue-tools').hidden = isOpen;
    if (isOpen) this.#load();
  }

  async #load() {
    const key = this.#key;
    const { tracks, error } = await listHistory(this.#session, LIMIT);
    if (key !== this.#key) return;
    const note = byId('history-note');
    note.hidden = true;
    if (error) {
      const { what, advice } = explain(error);
      say(note, what, advice);
      return;
    }
    const focused = [...this.#list.querySelectorAll('button')].indexOf(document.activeElement);
    this.#list.replaceChildren(...tracks.map((track) => historyRow(track, this.#actions)));
    if (focused >= 0) ([...this.#list.querySelectorAll('button')][focused] ?? byId('tab-history')).focus();
    if (tracks.length === 0) say(note, 'Nothing has been played yet.', 'What this session plays is listed here, newest first.');
  }
}
