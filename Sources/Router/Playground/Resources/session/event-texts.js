// What happened in a repository, in words. Pure. Names and titles are strangers': they are only ever set as text.

/** The longest label, in characters. */
const SHORT = 24;

/** kind → what it is called. */
export const KINDS = {
  push: 'Push', pull_request: 'Pull request', pull_request_review: 'Review', check_run: 'Check',
  workflow_run: 'Workflow run', deployment_status: 'Deployment', issues: 'Issue', issue_comment: 'Comment',
  release: 'Release', star: 'Star', fork: 'Fork', event: 'Event',
};

/** outcome → its word, where there is one to say. */
export const OUTCOMES = { success: 'succeeded', failure: 'failed', pending: 'pending' };
/** As they are written where they go with a person's name. */
const REVIEWS = { success: 'approved a pull request', failure: 'asked for changes' };
/** Kinds that machines finish. */
const RUNS = { check_run: 'a check', workflow_run: 'a workflow', deployment_status: 'a deployment' };
const SUBJECTS = { pull_request: 'a pull request', issues: 'an issue', release: 'a release' };

/** "monalisa pushed 3 commits to main". */
export function summary(event) {
  return `${event.sender} ${verb(event)}`;
}

/** "push by monalisa", short enough for the sky. */
export function shortLabel({ kind, sender }) {
  const label = `${(KINDS[kind] ?? kind).toLowerCase()} by ${sender}`;
  return label.length > SHORT ? `${label.slice(0, SHORT - 1)}…` : label;
}

function verb({ kind, action, outcome, commits, branch }) {
  const done = (action ?? '').replaceAll('_', ' ');
  switch (kind) {
    case 'push': return `pushed ${commits === 1 ? 'a commit' : `${commits} commits`}${branch ? ` to ${branch}` : ''}`;
    case 'pull_request_review': return REVIEWS[outcome] ?? 'reviewed a pull request';
    case 'pull_request':
      return done === 'closed' && outcome === 'success' ? 'merged a pull request' : `${done || 'changed'} ${SUBJECTS[kind]}`;
    case 'issue_comment': return 'commented';
    case 'star': return done === 'deleted' ? 'took a star back' : 'starred the repository';
    case 'fork': return 'forked the repository';
    case 'event': return outcome && OUTCOMES[outcome] ? OUTCOMES[outcome] : 'said';
    default:
      if (RUNS[kind]) return `ran ${RUNS[kind]}`;
      return SUBJECTS[kind] ? `${done || 'changed'} ${SUBJECTS[kind]}` : `did “${kind}”`;
  }
}

/** "push by monalisa: Fix the tests, D dorian, 96 BPM", for screen readers. */
export function announcement({ event, params }) {
  const what = `${(KINDS[event.kind] ?? event.kind).toLowerCase()} by ${event.sender}`;
  const outcome = OUTCOMES[event.outcome] ? `, ${OUTCOMES[event.outcome]}` : '';
  return `${what}${outcome}: ${[event.title, musicLabel(params)].filter(Boolean).join(', ')}`;
}

/** "D dorian, 96 BPM"; empty where nothing is known of it. */
export function musicLabel(params) {
  if (!params?.key) return '';
  const scale = (params.scale ?? '').replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
  const tempo = Number.isFinite(params.tempo) ? `${Math.round(params.tempo)} BPM` : '';
  return [`${keyLabel(params.key)} ${scale}`.trim(), tempo].filter(Boolean).join(', ');
}

/** "Db" → "D♭". */
export const keyLabel = (key) => key.replace(/^([A-G])b$/, '$1♭').replace(/^([A-G])#$/, '$1♯');

/** An address that may be linked to, or null: nothing but the web. */
export function safeLink(url) {
  if (!url) return null;
  try {
    const { protocol, href } = new URL(url);
    return protocol === 'https:' || protocol === 'http:' ? href : null;
  } catch {
    return null;
  }
}

/** 3 minutes ago, in words; the far past as a date. */
export function agoLabel(atMs, nowMs) {
  const seconds = Math.max(0, Math.round((nowMs - atMs) / 1000));
  if (seconds < 45) return 'just now';
  if (seconds < 3600) return `${Math.max(1, Math.round(seconds / 60))} min ago`;
  if (seconds < 86_400) return `${Math.round(seconds / 3600)} h ago`;
  return new Date(atMs).toLocaleDateString(undefined, { weekday: 'short', day: 'numeric', month: 'short' });
}
