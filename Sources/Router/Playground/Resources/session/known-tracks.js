// What this page has learned of addresses, to call a track in the queue by its name.

const MAX_KNOWN = 1000;

export class KnownTracks {
  #tracks = new Map();

  /** `track` has `url` and whatever is known of it: `title`, `artist`, `artwork`. */
  learn(track) {
    if (!track.url || !track.title) return;
    this.#tracks.delete(track.url);
    this.#tracks.set(track.url, track);
    // The one learned longest ago is the first.
    if (this.#tracks.size > MAX_KNOWN) this.#tracks.delete(this.#tracks.keys().next().value);
  }

  get(url) {
    return this.#tracks.get(url) ?? null;
  }
}
