// How much happened over the last day: a bar for every quarter of an hour, and the same in a sentence.

import { byId, make, setText } from '../view/elements.js';
import { clockLabel } from '../view/format.js';

const SVG = 'http://www.w3.org/2000/svg';
const HEIGHT = 100;
const GAP = 0.25;
/** Of a bar in which nothing happened, and of one in which something did. */
const LEAST_HEIGHT = 3;
const LEAST_BUSY = 8;
const BIN_MS = 15 * 60_000;
/** Under the bars a time is written this often. */
const HOURS_APART = 6;

export class Activity {
  /** `[{start_ms, events, commits}]`, oldest first. */
  #bins = [];

  show(bins) {
    this.#bins = bins;
    this.#draw();
  }

  /** Counts an event that has just come. */
  add({ commits, received_ms: atMs }) {
    const newest = this.#bins.at(-1);
    if (!newest || atMs < newest.start_ms) return;
    // The day moves on while the page is open.
    for (let startMs = newest.start_ms + BIN_MS; startMs <= atMs; startMs += BIN_MS) {
      this.#bins = [...this.#bins.slice(1), { start_ms: startMs, events: 0, commits: 0 }];
    }
    const bin = this.#bins.at(-1);
    this.#bins = [...this.#bins.slice(0, -1), { ...bin, events: bin.events + 1, commits: bin.commits + commits }];
    this.#draw();
  }

  #draw() {
    const bins = this.#bins;
    const most = Math.max(1, ...bins.map(({ events }) => events));
    const svg = element('svg', {
      viewBox: `0 0 ${bins.length} ${HEIGHT}`, preserveAspectRatio: 'none', 'aria-hidden': 'true',
    });
    svg.append(...bins.map(({ start_ms: startMs, events }, i) => {
      const height = events ? Math.max(LEAST_BUSY, HEIGHT * Math.sqrt(events / most)) : LEAST_HEIGHT;
      const bar = element('rect', {
        x: i + GAP / 2, y: HEIGHT - height, width: 1 - GAP, height, class: events ? 'busy' : 'calm',
      });
      const title = element('title', {});
      title.textContent = `${clockLabel(startMs)}: ${eventsLabel(events)}`;
      bar.append(title);
      return bar;
    }));
    byId('activity-bars').replaceChildren(svg);
    setText(byId('activity-summary'), summary(bins));
    byId('activity-hours').replaceChildren(...hours(bins));
  }
}

/** "37 events and 12 commits in the last day, most at 14:15". */
function summary(bins) {
  const sum = (field) => bins.reduce((total, bin) => total + bin[field], 0);
  const events = sum('events');
  if (events === 0) return 'Nothing in the last 24 hours';
  const commits = sum('commits');
  const busiest = bins.reduce((most, bin) => (bin.events >= most.events ? bin : most));
  const pushed = commits ? ` and ${commits} ${commits === 1 ? 'commit' : 'commits'}` : '';
  return `${eventsLabel(events)}${pushed} in the last 24 hours, most at ${clockLabel(busiest.start_ms)}`;
}

/** Round hours of the day, each over its bar. */
function hours(bins) {
  return bins.flatMap(({ start_ms: startMs }, i) => {
    const date = new Date(startMs);
    if (date.getMinutes() >= 15 || date.getHours() % HOURS_APART !== 0) return [];
    const label = make('span', { textContent: hour(startMs) });
    label.style.setProperty('--at', i / bins.length);
    return [label];
  });
}

const hour = (ms) => new Date(ms).toLocaleTimeString(undefined, { hour: 'numeric' });
const eventsLabel = (count) => `${count} ${count === 1 ? 'event' : 'events'}`;

function element(name, attributes) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}
