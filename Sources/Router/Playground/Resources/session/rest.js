// Asks the Router over HTTP what is no command of the session's: its answers concern this page alone.

/**
 * Resolves with the JSON body, or with `{error: {code, message, hint}}`; rejects only when aborted.
 * `path` is relative to the page.
 */
export async function getJSON(path, { signal } = {}) {
  let response;
  try {
    response = await fetch(path, { signal });
    const body = await response.json();
    if (response.ok) return body;
    return { error: { code: body.code, message: body.message, hint: body.hint ?? '' } };
  } catch (error) {
    if (signal?.aborted) throw error;
    return {
      error: {
        code: 'no_answer', message: 'The server does not answer.', hint: 'Try it again in a moment.',
      },
    };
  }
}

/** A folder of the media root: `{entries, truncated}`. */
export const listMedia = (path) => getJSON(`api/v1/media?path=${encodeURIComponent(path)}`);

/** What a link holds or a search finds: `{kind, title, entries, truncated}`. */
export const resolveQuery = (query, limit, signal) =>
  getJSON(`api/v1/resolve?${new URLSearchParams({ query, limit })}`, { signal });

/** The engine's answer to "why is it silent?". */
export const askWhy = (session) => getJSON(`api/v1/sessions/${encodeURIComponent(session)}/why`);
