// Asks the Router what is in a folder of the media root.

/** Resolves with `{entries, truncated}`, or with `{error: {message, hint}}`. */
export async function listMedia(path) {
  try {
    const response = await fetch(`api/v1/media?path=${encodeURIComponent(path)}`);
    const body = await response.json();
    if (response.ok) return body;
    return { error: { message: body.message, hint: body.hint ?? '' } };
  } catch {
    return {
      error: {
        message: 'The library could not be loaded.',
        hint: 'The server does not answer; press Refresh to try again.',
      },
    };
  }
}
