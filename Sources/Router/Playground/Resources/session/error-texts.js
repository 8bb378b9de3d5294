// What went wrong, in words for people: what happened, and what to do about it. Codes are those of
// docs/wire-protocol.md, and a few this page has of its own. Pure, so that every error has its texts in one place.

const AGAIN_SOON = 'Try it again in a moment.';
const ANOTHER = 'Choose another track, or another place to get this one from.';
const SITE = 'Choose another place to get it from; the operator can give this server access.';
const RELOAD = 'Reload the page; it may be older than the server.';

/** code → what happened, and what to do. */
const ERROR_TEXTS = {
  // The source.
  invalid_source: ['This is not an address that can be played.', 'Use a link that begins with https://, or a track of the library.'],
  source_not_found: ['The track is not there.', 'Check the address; the file may have been moved or renamed.'],
  source_forbidden: ['This server may not fetch that.', 'Use a public address, or put the file into the library.'],
  source_not_audio: ['There is no sound in this that can be played.', 'Check that the link leads to music and not to something else.'],
  source_empty: ['The track is empty.', ANOTHER],
  source_corrupt: ['The track is damaged.', ANOTHER],
  source_truncated: ['The track broke off before its end.', 'Play it again, or get the file anew: it may be incomplete.'],
  source_unreachable: ['The place where the track is cannot be reached.', AGAIN_SOON],
  source_timeout: ['The place where the track is takes too long to answer.', AGAIN_SOON],
  source_too_large: ['The track is larger than this server allows.', ANOTHER],
  source_needs_sign_in: ['Its site wants somebody to sign in first.', SITE],
  source_age_restricted: ['Its site shows this to grown-ups alone, who have signed in.', SITE],
  source_private: ['Its site shows this to some accounts alone.', SITE],
  source_geo_blocked: ['Its site does not play this in the country where the server is.', SITE],
  source_rate_limited: ['Its site has had too many requests from this server.', 'Try it again in an hour, or take it from another place.'],
  source_crashes_engine: ['This track makes the audio engine fail.', ANOTHER],
  source_crashes_decoder: ['This track makes the decoder fail.', ANOTHER],
  extraction_failed: ['Nothing to play was found on that page.', 'Open the page in the browser to see whether it still plays there.'],
  extractor_unavailable: ['This server cannot search or look into pages now.', 'Use a link straight to a file, or a track of the library.'],
  not_a_picture: ['The track has a cover of a kind that cannot be shown.', 'It plays all the same.'],
  // The server.
  workers_exhausted: ['The server has its hands full.', AGAIN_SOON],
  overloaded: ['The server is too busy for another track of this kind.', AGAIN_SOON],
  too_many_sessions: ['The server has no room for another session or listener.', 'Try it again later; close tabs you do not need.'],
  engine_unavailable: ['The audio engine is away.', 'Nothing is lost. Try it again when it is back.'],
  router_unavailable: ['The session moves to another server.', AGAIN_SOON],
  internal: ['The server made a mistake.', 'Try it again; if it stays, tell its operator.'],
  no_answer: ['The server does not answer.', AGAIN_SOON],
  not_connected: ['There is no connection to the server right now.', 'It is being tried again; repeat this in a moment.'],
  connection_lost: ['The connection broke before the answer came.', 'Look whether it was done; otherwise repeat it.'],
  // What was asked.
  no_such_session: ['Nothing is playing.', 'Play something first.'],
  invalid_state: ['That cannot be done just now.', 'Look what the session is doing; somebody else may have been faster.'],
  superseded: ['Something else was asked for meanwhile.', 'Look what is playing now.'],
  stale_home: ['The session has moved to another server meanwhile.', AGAIN_SOON],
  not_found: ['That is not there any more.', 'Somebody else may have taken it away.'],
  queue_full: ['The queue is full.', 'Remove some of its tracks first.'],
  line_too_long: ['That was too much at once.', 'Add fewer tracks at a time.'],
  storage_failed: ['The server could not save that, so it was not done.', 'Tell its operator that its disk may be full.'],
  idempotency_conflict: ['The same request came twice with different content.', 'Repeat what you did.'],
  invalid_command: ['The server did not understand this page.', RELOAD],
  method_not_allowed: ['The server did not understand this page.', RELOAD],
  invalid_json: ['The server did not understand this page.', RELOAD],
  bad_message: ['The server sent something this page does not understand.', RELOAD],
  invalid_session_id: ['This cannot be the name of a session.', 'A name is 1 to 24 letters, digits and . _ : -'],
  rate_limited: ['That was too much at once.', AGAIN_SOON],
  webhooks_disabled: ['This server takes nothing from GitHub yet.', 'Its operator has to give it a secret first.'],
  // Who may.
  unauthorized: ['This server does not know you, or not any more.', 'Sign in again.'],
  forbidden: ['You may not do that here.', 'Ask for a token that allows it, and sign in with it.'],
};

/**
 * An error object in words: `{what, advice, detail}`; `detail` is the server's own sentence where it says more.
 * A code that is not known here keeps the server's words.
 */
export function explain({ code, message = '', hint = '' }) {
  const known = ERROR_TEXTS[code];
  if (!known) return { what: sentence(message) || 'Something went wrong.', advice: sentence(userHint(hint)), detail: '' };
  const [what, advice] = known;
  return { what, advice, detail: sentence(message) === what ? '' : message };
}

/** With a capital at its beginning and one full stop at its end. */
export function sentence(text) {
  return text ? `${text.charAt(0).toUpperCase()}${text.slice(1)}`.replace(/([^.?!…])$/, '$1.') : '';
}

/** A hint without what is meant for programmers: "the Router keeps trying; GET /health says when it is back". */
const userHint = (hint = '') => hint.split('; ').filter((part) => !FOR_OPERATORS.test(part)).join('; ');

const FOR_OPERATORS = /\b(?:GET|POST|PUT|DELETE) \/|(?:^|\s)--[a-z]|\b[a-z]+_[a-z]+\b|docs\//;
