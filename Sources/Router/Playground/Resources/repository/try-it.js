// Sample events without GitHub: the server signs them and takes them as it takes GitHub's.

import { KINDS } from '../session/event-texts.js';
import { sendSample } from '../session/repositories.js';
import { explain } from '../session/error-texts.js';
import { byId, icon, make, say, setText } from '../view/elements.js';

/** One press each. */
const SAMPLES = [
  { label: 'Push', fields: { event: 'push' } },
  { label: 'Merge', fields: { event: 'pull_request', outcome: 'success' } },
  { label: 'Failing check', fields: { event: 'check_run', outcome: 'failure' } },
  { label: 'Release', fields: { event: 'release' } },
  { label: 'Star', fields: { event: 'star' } },
];
/** Kinds that can go one way or another. */
const WITH_OUTCOME = new Set(['pull_request', 'pull_request_review', 'check_run', 'workflow_run', 'deployment_status']);
const WITH_TITLE = new Set(['push', 'pull_request', 'check_run', 'workflow_run', 'issues', 'issue_comment', 'release']);

export class TryIt {
  #id;
  #repository;
  #form = byId('try-form');

  /** `repository()` is the name to send: what GitHub would say, `owner/name`. */
  constructor({ id, repository }) {
    this.#id = id;
    this.#repository = repository;
    byId('try-samples').replaceChildren(...SAMPLES.map(({ label, fields }) =>
      make('button', { type: 'button', className: 'sample', onclick: () => this.send(fields) },
        icon(`event-${fields.event}`), label)));
    byId('try-kind').replaceChildren(...Object.entries(KINDS).filter(([kind]) => kind !== 'event').map(([value, textContent]) => make('option', { value, textContent })));
    byId('try-kind').onchange = () => this.#fit();
    this.#form.onsubmit = (event) => {
      event.preventDefault();
      this.send(this.#fields());
    };
    this.#fit();
  }

  /** Sends one; says what became of it. */
  async send(fields) {
    const result = byId('try-result');
    result.removeAttribute('data-state');
    say(result, 'Sending…');
    const answer = await sendSample(this.#id, { repository: this.#repository(), ...fields });
    if (answer.error) {
      const { what, advice, detail } = explain(answer.error);
      result.dataset.state = 'error';
      say(result, what, advice, detail ? ` (${detail})` : '');
    } else {
      result.dataset.state = 'good';
      say(result, 'Queued.', `A ${KINDS[fields.event].toLowerCase()} was signed, sent and taken: it sounds in a moment.`);
    }
  }

  #fields() {
    const { kind, outcome, title, commits } = Object.fromEntries(new FormData(this.#form));
    return {
      event: kind,
      ...(WITH_OUTCOME.has(kind) && outcome ? { outcome } : {}),
      ...(WITH_TITLE.has(kind) && title.trim() ? { title: title.trim() } : {}),
      ...(kind === 'push' ? { commits: Number(commits) } : {}),
    };
  }

  /** Shows the fields that the kind has. */
  #fit() {
    const kind = byId('try-kind').value;
    byId('try-outcome').closest('label').hidden = !WITH_OUTCOME.has(kind);
    byId('try-commits').closest('label').hidden = kind !== 'push';
    // Or it could keep the form from being sent.
    byId('try-commits').disabled = kind !== 'push';
    byId('try-title').closest('label').hidden = !WITH_TITLE.has(kind);
    setText(byId('try-title-label'), kind === 'push' ? 'Commit message' : kind === 'issue_comment' ? 'Comment' : 'Title');
  }
}
