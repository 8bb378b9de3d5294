// Asks the Router over HTTP what is no command of the session's: its answers concern this page alone.

import { authorization } from './token.js';

/** Tells `unauthorized` when the server does not know this page's token any more. */
export const requestErrors = new EventTarget();

/**
 * Resolves with the JSON body, or with `{error: {code, message, hint}}`; rejects only when aborted.
 * `path` is relative to the page; `token` is one to be tried.
 */
export const getJSON = (path, options) => request(path, (response) => response.json(), options);

/** As `getJSON`, for what is asked with a body. */
export const postJSON = (path, body) => request(path, (response) => response.json(), {
  method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body),
});

/** Resolves with `{bytes}`, or with an error as above. */
export const getBytes = (path, options) =>
  request(path, async (response) => ({ bytes: await response.arrayBuffer() }), options);

async function request(path, read, { signal, token, headers = {}, ...options } = {}) {
  try {
    const response = await fetch(path, { signal, headers: { ...headers, ...authorization(token) }, ...options });
    if (response.ok) return await read(response);
    const body = await response.json();
    if (response.status === 401 && !token) requestErrors.dispatchEvent(new Event('unauthorized'));
    return { error: { status: response.status, code: body.code, message: body.message, hint: body.hint ?? '' } };
  } catch (error) {
    if (signal?.aborted) throw error;
    return { error: { code: 'no_answer', message: 'The server does not answer.', hint: 'Try it again in a moment.' } };
  }
}

/** A folder of the media root: `{entries, truncated}`. */
export const listMedia = (path) => getJSON(`api/v1/media?path=${encodeURIComponent(path)}`);

/** What a link holds or a search finds: `{kind, title, entries, truncated}`. */
export const resolveQuery = (query, limit, signal) =>
  getJSON(`api/v1/resolve?${new URLSearchParams({ query, limit })}`, { signal });

/** The engine's answer to "why is it silent?". */
export const askWhy = (session) => getJSON(`${pathOf(session)}/why`);

/** A stretch of what waits, at most 100 tracks. */
export const listQueue = (session, offset, limit) =>
  getJSON(`${pathOf(session)}/queue?${new URLSearchParams({ offset, limit })}`);

/** What was played, newest first: `{tracks, total}`. */
export const listHistory = (session, limit) => getJSON(`${pathOf(session)}/history?${new URLSearchParams({ limit })}`);

const pathOf = (session) => `api/v1/sessions/${encodeURIComponent(session)}`;
