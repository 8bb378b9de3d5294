// One thing that happened, as a row: what, by whom, when, how it went, and what it sounded like.

import { agoLabel, KINDS, musicLabel, OUTCOMES, safeLink, summary } from '../session/event-texts.js';
import { icon, make } from '../view/elements.js';

/** kind → its symbol of repository.html; others have that of a push. */
const ICONS = new Set(Object.keys(KINDS));

export function eventRow({ number, event, params }, nowMs) {
  const row = make('li', { className: 'row event-row' },
    make('span', { className: 'row-glyph event-glyph', 'aria-hidden': 'true' },
      icon(`event-${ICONS.has(event.kind) ? event.kind : 'push'}`)),
    make('div', { className: 'row-text' },
      title(event),
      make('span', { className: 'row-detail' },
        make('bdi', { textContent: summary(event) }), ' · ', time(event, nowMs))),
    make('div', { className: 'event-side' },
      outcome(event), make('span', { className: 'event-music', textContent: musicLabel(params) })));
  row.dataset.number = number;
  row.dataset.outcome = event.outcome ?? '';
  return row;
}

/** Says again how long ago it was. */
export function refreshTime(row, nowMs) {
  const time = row.querySelector('time');
  time.textContent = agoLabel(Date.parse(time.dateTime), nowMs);
}

function title(event) {
  const text = event.title || KINDS[event.kind] || event.kind;
  const url = safeLink(event.url);
  if (!url) return make('span', { className: 'row-name', textContent: text, dir: 'auto', title: text });
  return make('a', {
    className: 'row-name', href: url, target: '_blank', rel: 'noopener noreferrer', textContent: text, dir: 'auto', title: text,
  });
}

function time({ received_ms: atMs }, nowMs) {
  const date = new Date(atMs);
  return make('time', { dateTime: date.toISOString(), textContent: agoLabel(atMs, nowMs), title: date.toLocaleString() });
}

function outcome({ outcome }) {
  return OUTCOMES[outcome] ? make('span', { className: 'event-outcome', textContent: OUTCOMES[outcome] }) : '';
}
