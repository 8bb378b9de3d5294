// Cover, title, artist, origin and state of what is playing.

import { artworkTile } from './artwork.js';
import { byId, setText } from './elements.js';
import { sourcePlace, trackName } from './format.js';

/** Longer titles are set smaller, to fit two lines. */
const LONG_TITLE = 36;

export class NowPlaying {
  #shownCover = null;

  show(snapshot, isConnected) {
    const { url, state, artist, album, live, station, genre } = snapshot;
    const name = url ? trackName(snapshot) : 'Choose something to hear';
    setText(byId('phase'), isConnected ? phase(snapshot) : 'Reconnecting…');
    byId('live').hidden = !live || state === 'idle';
    const stage = document.querySelector('.stage');
    stage.dataset.state = state;
    stage.classList.toggle('is-long', name.length > LONG_TITLE);
    stage.classList.toggle('has-track', url !== null);
    setText(byId('title'), name);
    byId('title').title = url ?? '';
    setText(byId('byline'), [artist, album, station === name ? null : station, genre].filter(Boolean).join(' · '));
    setText(byId('place'), url ? placeLabel(snapshot) : '\u00a0');
    this.#showCover(snapshot);
    document.title = state === 'idle' ? 'Antiphon' : `${[artist, name].filter(Boolean).join(' – ')} · Antiphon`;
  }

  /** Made anew only for another picture, so that it does not flicker. */
  #showCover({ url, artwork }) {
    const key = url === null ? null : artwork ?? '';
    if (key === this.#shownCover) return;
    this.#shownCover = key;
    byId('cover').replaceChildren(...(key === null ? [] : [artworkTile(artwork)]));
  }
}

function phase({ state, buffering, hasPlayed, url, engine }) {
  if (!engine.connected) return 'The engine is away';
  switch (state) {
    case 'extracting': return 'Opening…';
    case 'streaming': return buffering ? 'Waiting for the source…' : 'Now playing';
    case 'paused': return 'Paused';
    default:
      if (!url) return 'Nothing is playing';
      return hasPlayed ? 'Last played' : 'Not played';
  }
}

const placeLabel = (snapshot) =>
  [sourcePlace(snapshot.url), codecLabel(snapshot), snapshot.loop ? 'on repeat' : ''].filter(Boolean).join(' · ');

function codecLabel({ codec, passthrough }) {
  if (!codec || codec === 'score') return '';
  // libavcodec has a name for every kind of PCM: pcm_s16le, pcm_f32be, …
  const name = codec.toUpperCase().replace('OPUS', 'Opus').replace(/^PCM_.*/, 'PCM');
  return passthrough ? `${name}, untouched` : name;
}
