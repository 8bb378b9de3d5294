// Title, origin and state of what is playing, in words.

import { byId, setText } from './elements.js';
import { fileTitle, sourcePlace, sourceTitle } from './format.js';

/** Longer titles are set smaller, to fit two lines. */
const LONG_TITLE = 36;

export class NowPlaying {
  show(snapshot, isConnected) {
    const { url, title, state } = snapshot;
    const name = url ? titleOf(title, url) : 'Choose something to hear';
    setText(byId('phase'), isConnected ? phase(snapshot) : 'Reconnecting…');
    const stage = document.querySelector('.stage');
    stage.dataset.state = state;
    stage.classList.toggle('is-long', name.length > LONG_TITLE);
    setText(byId('title'), name);
    byId('title').title = url ?? '';
    setText(byId('place'), url ? [sourcePlace(url), codecLabel(snapshot)].filter(Boolean).join(' · ') : '\u00a0');
    document.title = state === 'idle' ? 'Antiphon' : `${name} · Antiphon`;
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

function codecLabel({ codec, passthrough }) {
  if (!codec) return '';
  // libavcodec has a name for every kind of PCM: pcm_s16le, pcm_f32be, …
  const name = codec.toUpperCase().replace('OPUS', 'Opus').replace(/^PCM_.*/, 'PCM');
  return passthrough ? `${name}, untouched` : name;
}

/** A title without a space is most likely a file's name. */
function titleOf(title, url) {
  if (!title) return sourceTitle(url);
  return title.includes(' ') ? title : fileTitle(title);
}
