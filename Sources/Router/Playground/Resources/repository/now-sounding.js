// What is heard, in words: the repository, what has happened in it, and what that sounds like.

import { keyLabel, musicLabel, OUTCOMES, safeLink, summary } from '../session/event-texts.js';
import { byId, make, setText } from '../view/elements.js';

export class NowSounding {
  #key = null;

  /** `heard` is the piece that sounds, or null; `replay` what is heard in its place. */
  show({ snapshot, isConnected, known, id, heard, replay, isSilent }) {
    const name = known?.name ?? heard?.event.repository ?? `Repository ${id}`;
    setText(byId('title'), name);
    document.title = `${heard && !replay ? `${heard.event.title} · ` : ''}${name} · Antiphon`;
    setText(byId('phase'), phase({ snapshot, isConnected, known, heard, replay, isSilent }));
    const event = replay ? replay.event : heard?.event ?? null;
    this.#showEvent(event);
    setText(byId('place'), replay ? '\u00a0' : heard ? musicLine(heard.params) : key(known));
  }

  #showEvent(event) {
    const shown = event && JSON.stringify([event.title, event.url, event.sender, event.kind, event.received_ms]);
    if (shown === this.#key) return;
    this.#key = shown;
    if (!event) {
      byId('byline').replaceChildren('\u00a0');
      return;
    }
    const url = safeLink(event.url);
    const text = event.title || event.kind;
    const title = url
      ? make('a', { href: url, target: '_blank', rel: 'noopener noreferrer', textContent: text, dir: 'auto', title: text })
      : make('span', { textContent: text, dir: 'auto', title: text });
    const outcome = OUTCOMES[event.outcome] ? `: ${OUTCOMES[event.outcome]}` : '';
    byId('byline').replaceChildren(title,
      make('span', { className: 'byline-deed', textContent: `${summary(event)}${outcome}`, dir: 'auto' }));
  }
}

function phase({ snapshot, isConnected, known, heard, replay, isSilent }) {
  if (!isConnected) return 'Reconnecting…';
  if (replay) return `The last week: ${replay.day}`;
  if (!snapshot.isKnown) return 'Connecting…';
  if (!snapshot.engine.connected) return 'The engine is away';
  if (isSilent) return 'All voices are silenced';
  if (heard) return 'Sounding now';
  if (snapshot.state === 'idle' || snapshot.state === 'extracting') {
    return known ? 'Silent until something happens' : 'Nothing has happened yet';
  }
  if (snapshot.state === 'paused') return 'Paused for everyone';
  return snapshot.codec === 'score' ? 'Quiet: only the bed plays' : 'Something else plays here';
}

const musicLine = (params) =>
  [musicLabel(params), (params?.instrument ?? '').replaceAll('_', ' ')].filter(Boolean).join(' · ') || '\u00a0';

const key = (known) => (known?.key ? `Its music is in ${keyLabel(known.key)}` : '\u00a0');
