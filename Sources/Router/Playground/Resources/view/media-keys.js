// What the device shows and offers outside of the page: the lock screen, the keys of keyboards and headsets
// (Media Session API).

import { loadableURL } from './artwork.js';
import { trackName } from './format.js';

const SEEK_S = 10;

export class MediaKeys {
  #transport;
  #player;
  #canControl;
  #offered = new Set();
  #metadataKey = null;

  constructor({ transport, player, canControl }) {
    this.#transport = transport;
    this.#player = player;
    this.#canControl = canControl;
  }

  /** Called after every event. */
  show(snapshot) {
    const isPlaying = snapshot.state === 'streaming' || snapshot.state === 'extracting';
    this.#player.setPlaying(isPlaying);
    if (!('mediaSession' in navigator)) return;
    const isActive = snapshot.state !== 'idle';
    navigator.mediaSession.playbackState = isPlaying ? 'playing' : isActive ? 'paused' : 'none';
    this.#showMetadata(isActive ? snapshot : null);
    this.#showPosition(isActive ? snapshot : {});
    this.#offer(snapshot.state);
  }

  async #showMetadata(snapshot) {
    const { artist, album, artwork } = snapshot ?? {};
    const title = snapshot && trackName(snapshot);
    const key = JSON.stringify([title, artist, album, artwork]);
    if (key === this.#metadataKey) return;
    this.#metadataKey = key;
    const picture = await loadableURL(artwork);
    if (key !== this.#metadataKey) return;
    navigator.mediaSession.metadata = title === null ? null : new MediaMetadata({
      title, artist: artist ?? '', album: album ?? '', artwork: picture ? [{ src: picture }] : [],
    });
  }

  #showPosition({ durationMs }) {
    if (!durationMs) {
      navigator.mediaSession.setPositionState();
      return;
    }
    const position = Math.min(this.#transport.positionMs, durationMs) / 1000;
    navigator.mediaSession.setPositionState({ duration: durationMs / 1000, position, playbackRate: 1 });
  }

  /** What cannot be done now is not offered. */
  #offer(state) {
    const transport = this.#transport;
    const can = this.#canControl;
    const isActive = can && state !== 'idle';
    this.#set('play', can && state !== 'streaming', () => transport.toggle());
    this.#set('pause', isActive && state !== 'paused', () => transport.toggle());
    this.#set('stop', isActive, () => transport.stop());
    this.#set('nexttrack', transport.canNext, () => transport.next());
    this.#set('previoustrack', transport.canPrevious, () => transport.previous());
    this.#set('seekto', transport.canSeek, ({ seekTime }) => transport.seekTo(seekTime * 1000));
    this.#set('seekbackward', transport.canSeek, ({ seekOffset }) => transport.seekBy(-1000 * (seekOffset || SEEK_S)));
    this.#set('seekforward', transport.canSeek, ({ seekOffset }) => transport.seekBy(1000 * (seekOffset || SEEK_S)));
  }

  #set(action, isOffered, run) {
    if (this.#offered.has(action) === isOffered) return;
    if (isOffered) this.#offered.add(action);
    else this.#offered.delete(action);
    try {
      navigator.mediaSession.setActionHandler(action, isOffered ? run : null);
    } catch {
      // A browser that does not know the action has no button for it either.
    }
  }
}
