// The stages from the command to the sound as bars on one time, and what happened later in words.

import { make } from './elements.js';
import { millisecondsLabel } from './format.js';

const LABELS = {
  queue: 'Waited for a worker', extract: 'Searched the page', resolve: 'Looked up the name', connect: 'Opened the source',
  probe: 'Looked what it is', first_packet: 'Made the first sound', first_frame_out: 'First sound sent',
  restart: 'Source reopened', underrun: 'Ran dry', error: 'Failed',
};
/** What comes after the start is told by its time, or the start would be too small to be seen. */
const LATER = new Set(['restart', 'underrun', 'error']);

/** A table, or null where there is nothing to show. */
export function waterfall(stages) {
  if (stages.length === 0) return null;
  const opening = stages.filter(({ stage }) => !LATER.has(stage));
  const starts = opening.map(({ at_ms: atMs, ms = 0 }) => atMs - ms);
  const from = Math.min(0, ...starts);
  const span = Math.max(1, ...opening.map(({ at_ms: atMs }) => atMs)) - from;
  const rows = stages.map((record) => (LATER.has(record.stage) ? laterRow(record) : openingRow(record, from, span)));
  return make('table', { className: 'waterfall' },
    make('caption', { textContent: 'From the command to the sound' }),
    make('tbody', {}, ...rows));
}

function openingRow({ stage, at_ms: atMs, ms, detail }, from, span) {
  const bar = make('span', { className: ms === undefined ? 'moment' : 'bar' });
  bar.style.setProperty('--from', (atMs - (ms ?? 0) - from) / span);
  bar.style.setProperty('--length', (ms ?? 0) / span);
  return row(stage, detail, make('span', { className: 'lane', 'aria-hidden': 'true' }, bar),
    ms === undefined ? `at ${millisecondsLabel(atMs)}` : millisecondsLabel(ms));
}

function laterRow({ stage, at_ms: atMs, ms, detail }) {
  return row(stage, detail, `after ${millisecondsLabel(atMs)}`, ms === undefined ? '' : millisecondsLabel(ms));
}

const row = (stage, detail, middle, time) =>
  make('tr', { title: detail ?? '' },
    make('th', { scope: 'row', textContent: LABELS[stage] ?? stage }),
    make('td', {}, middle),
    make('td', { className: 'time', textContent: time }));
