// The tabs of the shelf of tracks: what comes next, and what was played, to play it again.

import { listHistory } from '../session/rest.js';
import { explain } from '../session/troubles.js';
import { byId, say } from './elements.js';
import { historyRow } from './queue-row.js';

/** All that the server keeps. */
const LIMIT = 100;

export class HistoryView {
  #session;
  #actions;
  #tabs = [byId('tab-next'), byId('tab-history')];
  #panels = [byId('panel-next'), byId('panel-history')];
  #list = byId('history');
  /** Of what is shown: the history changes only with what plays. */
  #key = null;
  #isOpen = false;

  /** `actions` as `historyRow` takes them, or null. */
  constructor({ session, actions }) {
    this.#session = session;
    this.#actions = actions;
    this.#tabs.forEach((tab, i) => {
      tab.onclick = () => this.#open(i);
      tab.onkeydown = (event) => this.#turn(event, i);
    });
  }

  /** Called after every event. */
  show({ historyTotal, current }) {
    const key = JSON.stringify([historyTotal, current?.id]);
    if (key === this.#key) return;
    this.#key = key;
    if (this.#isOpen) this.#load();
  }

  #turn(event, i) {
    if (event.key !== 'ArrowLeft' && event.key !== 'ArrowRight') return;
    event.preventDefault();
    this.#open(1 - i);
    this.#tabs[1 - i].focus();
  }

  #open(chosen) {
    this.#isOpen = chosen === 1;
    this.#tabs.forEach((tab, i) => {
      tab.setAttribute('aria-selected', String(i === chosen));
      tab.tabIndex = i === chosen ? 0 : -1;
      this.#panels[i].hidden = i !== chosen;
    });
    byId('queue-tools').hidden = this.#isOpen;
    if (this.#isOpen) this.#load();
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
    if (focused >= 0) ([...this.#list.querySelectorAll('button')][focused] ?? this.#tabs[1]).focus();
    if (tracks.length === 0) say(note, 'Nothing has been played yet.', 'What this session plays is listed here, newest first.');
  }
}
