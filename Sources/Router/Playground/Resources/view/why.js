// "Why is it silent?": what this page finds, and what the engine says of the way from the command to the sound.

import { askWhy } from '../session/rest.js';
import { examineSilence } from '../session/silence.js';
import { explain } from '../session/error-texts.js';
import { byId, closeByBackdrop, icon, make, setText } from './elements.js';
import { millisecondsLabel } from './format.js';
import { waterfall } from './waterfall.js';

/** The page's own checks; the engine is asked less often. */
const CHECK_INTERVAL_MS = 500;
const ASK_INTERVAL_MS = 2000;
/** Packets are counted over about a second. */
const COUNTED_MS = 1000;
/** Codes of a server that cannot say. */
const NO_ANSWER = new Set(['not_found', 'invalid_command']);
const END_REASONS = {
  finished: 'It came to its end', loadFailed: 'It could not be played', stopped: 'It was stopped',
  replaced: 'Something else was played', cleanup: 'It was given up, since nobody listened',
};

export class WhyPanel {
  #dialog = byId('why');
  #facts;
  #session;
  #remedies;
  #timers = [];
  /** `{count, atMs}`, the oldest of about a second first. */
  #counts = [];

  /** `facts()` gives what `examineSilence` wants, with `framesReceived` in place of its rate. */
  constructor({ session, facts, allow, unmute }) {
    this.#facts = facts;
    this.#session = session;
    this.#remedies = { allow: ['Let it sound', allow], unmute: ['Unmute', unmute] };
    byId('why-open').onclick = () => this.#open();
    byId('why-close').onclick = () => this.#dialog.close();
    this.#dialog.onclose = () => this.#timers.forEach(clearInterval);
    closeByBackdrop(this.#dialog);
  }

  #open() {
    this.#counts = [];
    byId('why-engine').replaceChildren(make('p', { className: 'empty', textContent: 'Asking the engine…' }));
    this.#dialog.showModal();
    this.#check();
    this.#ask();
    this.#timers = [
      setInterval(() => this.#check(), CHECK_INTERVAL_MS), setInterval(() => this.#ask(), ASK_INTERVAL_MS),
    ];
  }

  #check() {
    const { framesReceived, ...facts } = this.#facts();
    const { verdict, remedy, checks } = examineSilence({ ...facts, packetsPerSecond: this.#rate(framesReceived) });
    setText(byId('why-verdict'), verdict);
    const button = byId('why-remedy');
    button.hidden = remedy === null;
    if (remedy) {
      const [label, act] = this.#remedies[remedy];
      setText(button, label);
      button.onclick = async () => {
        await act();
        this.#check();
      };
    }
    byId('why-checks').replaceChildren(...checks.map(({ name, text, isBad }) =>
      make('div', { className: isBad ? 'is-bad' : '' },
        make('dt', {}, icon(isBad ? 'bad' : 'good'), name),
        make('dd', { textContent: text }))));
  }

  #rate(count) {
    const now = performance.now();
    this.#counts.push({ count, atMs: now });
    while (this.#counts.length > 2 && this.#counts[1].atMs <= now - COUNTED_MS) this.#counts.shift();
    const [{ count: before, atMs }] = this.#counts;
    return now - atMs < COUNTED_MS / 2 ? null : Math.round(((count - before) * 1000) / (now - atMs));
  }

  async #ask() {
    const answer = await askWhy(this.#session.id);
    if (!this.#dialog.open) return;
    byId('why-engine').replaceChildren(...(answer.error ? [requestError(answer.error)] : report(answer)));
  }
}

function requestError(error) {
  if (NO_ANSWER.has(error.code)) {
    return make('p', { className: 'empty', textContent: 'This server does not keep such a record.' });
  }
  const { what, advice } = explain(error);
  return make('p', { className: 'empty', textContent: `${what} ${advice}` });
}

/** The engine's answer, from its sentence to its last error. */
function report({ summary, stages = [], underruns, restarts, last_error: lastError, ended }) {
  const figures = [
    ['Underruns', underruns?.count ? `${underruns.count}, ${millisecondsLabel(underruns.total_ms)} in all, the longest `
      + millisecondsLabel(underruns.longest_ms) : 'none'],
    ['Restarts of the source', restarts ? String(restarts) : 'none'],
  ];
  if (ended) figures.push(['The last track', `${END_REASONS[ended.reason] ?? ended.reason}, ${agoLabel(ended.ago_ms)}`]);
  return [
    make('p', { className: 'why-summary', textContent: summary }),
    lastError ? troubleNote(lastError) : '',
    waterfall(stages) ?? '',
    make('dl', { className: 'why-figures' }, ...figures.map(([name, text]) =>
      make('div', {}, make('dt', { textContent: name }), make('dd', { textContent: text })))),
  ];
}

function troubleNote(error) {
  const { what, advice, detail } = explain(error);
  return make('div', { className: 'why-error' },
    make('strong', { textContent: what }), ' ', advice, detail ? make('p', { className: 'toast-detail', textContent: detail }) : '');
}

function agoLabel(ms) {
  if (ms < 60_000) return `${Math.max(1, Math.round(ms / 1000))} s ago`;
  return ms < 3_600_000 ? `${Math.round(ms / 60_000)} min ago` : `${Math.round(ms / 3_600_000)} h ago`;
}
