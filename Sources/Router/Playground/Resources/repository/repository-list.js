// The repositories of this server, each a link to its page.

import { agoLabel, keyLabel } from '../session/event-texts.js';
import { listRepositories } from '../session/repositories.js';
import { explain } from '../session/error-texts.js';
import { byId, make, say } from '../view/elements.js';
import { countLabel } from '../view/format.js';

/** Resolves with what the server said. */
export async function showRepositories() {
  const answer = await listRepositories();
  const list = byId('repositories');
  list.setAttribute('aria-busy', 'false');
  if (answer.error) {
    const { what, advice } = explain(answer.error);
    say(byId('repositories-note'), what, advice);
    return answer;
  }
  list.replaceChildren(...answer.repositories.map(card));
  return answer;
}

export const pageOf = (id) => `repository.html?${new URLSearchParams({ id })}`;

function card({ id, name, language, events, last_event_ms: lastMs, key, listeners }) {
  const music = key ? `in ${keyLabel(key)}` : '';
  const facts = [language, music, `${countLabel(events)} ${events === 1 ? 'event' : 'events'}`,
    lastMs ? `last ${agoLabel(lastMs, Date.now())}` : '',
    listeners ? `${listeners} listening` : ''].filter(Boolean).join(' · ');
  return make('li', {}, make('a', { className: 'row repository-row', href: pageOf(id) },
    make('span', { className: 'key-tile', 'aria-hidden': 'true', textContent: key ? keyLabel(key) : '' }),
    make('span', { className: 'row-text' },
      make('span', { className: 'row-name', textContent: name, dir: 'auto' }),
      make('span', { className: 'row-detail', textContent: facts })),
    make('span', { className: 'chevron', textContent: '›', 'aria-hidden': 'true' })));
}
