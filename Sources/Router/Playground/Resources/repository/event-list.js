// What happened in the repository, newest first, with more of the past at the end.

import { listEvents } from '../session/repositories.js';
import { explain } from '../session/error-texts.js';
import { announce, byId, say } from '../view/elements.js';
import { countLabel } from '../view/format.js';
import { eventRow, refreshTime } from './event-row.js';

const PAGE = 20;
/** Beyond this the oldest rows go: the page is left open for days. */
const MAX_ROWS = 500;
const REFRESH_MS = 30_000;

export class EventList {
  #id;
  #list = byId('events');
  #more = byId('events-more');
  #total = 0;
  #playing = new Set();
  #isLoading = false;

  constructor(id) {
    this.#id = id;
    this.#more.onclick = () => this.#loadMore();
    setInterval(() => [...this.#list.children].forEach((row) => refreshTime(row, Date.now())), REFRESH_MS);
  }

  get isEmpty() {
    return this.#total === 0;
  }

  /** Asks for the newest anew; resolves with the newest, or null. */
  async load() {
    const page = await this.#ask({});
    if (!page) return null;
    // What came while the answer was on its way is in none.
    const newest = page.events[0]?.number ?? 0;
    const later = [...this.#list.children].filter((row) => Number(row.dataset.number) > newest);
    this.#list.replaceChildren(...later, ...this.#rows(page.events));
    this.#show(page.total + later.length);
    return page.events[0] ?? null;
  }

  /** One more has come; returns whether it is new. */
  add(music) {
    if (this.#rowOf(music.number)) return false;
    this.#list.prepend(...this.#rows([music]));
    while (this.#list.children.length > MAX_ROWS) this.#list.lastElementChild.remove();
    this.#show(this.#total + 1);
    return true;
  }

  /** Marks those that sound now. */
  mark(numbers) {
    this.#playing = numbers;
    this.#showPlaying(this.#list.children);
  }

  async #loadMore() {
    if (this.#isLoading) return;
    this.#isLoading = true;
    const last = this.#list.lastElementChild;
    const page = await this.#ask({ before: last?.dataset.number });
    this.#isLoading = false;
    if (!page) return;
    const rows = this.#rows(page.events);
    this.#list.append(...rows);
    this.#show(page.total, rows.length < PAGE);
    announce(`${rows.length} more.`);
    // The button may be gone now: the keyboard goes on in what it brought.
    if (this.#more.hidden) (rows[0]?.querySelector('a') ?? byId('tab-events')).focus();
  }

  /** New rows of events, one of which may sound already. */
  #rows(events) {
    const rows = events.map((music) => eventRow(music, Date.now()));
    this.#showPlaying(rows);
    return rows;
  }

  #showPlaying(rows) {
    for (const row of rows) row.classList.toggle('is-playing', this.#playing.has(Number(row.dataset.number)));
  }

  async #ask(stretch) {
    const page = await listEvents(this.#id, { ...stretch, limit: PAGE });
    this.#list.setAttribute('aria-busy', 'false');
    if (!page.error) return page;
    // A repository of which nothing is known has had no events.
    if (page.error.status === 404) return { events: [], total: 0 };
    const { what, advice } = explain(page.error);
    say(byId('events-note'), what, advice);
    return null;
  }

  #show(total, isWhole = false) {
    this.#total = total;
    byId('events-count').textContent = total ? countLabel(total) : '';
    this.#more.hidden = isWhole || this.#list.children.length >= total;
    byId('events-note').hidden = total > 0;
    if (total === 0) say(byId('events-note'), 'Nothing has happened yet.', 'Try it out, or connect GitHub.');
  }

  #rowOf(number) {
    return this.#list.querySelector(`[data-number="${Number(number)}"]`);
  }
}
