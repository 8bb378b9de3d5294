// The playground: finds the session, chooses a player, and ties the views to them.

import { findSession } from './session/identity.js';
import { KnownTracks } from './session/known-tracks.js';
import { Snapshot } from './session/snapshot.js';
import { ElementPlayer, canPlayOgg } from './sound/player-element.js';
import { WebCodecsPlayer, whyUnavailable } from './sound/player-webcodecs.js';
import { byId } from './view/elements.js';
import { Finder } from './view/finder.js';
import { Library } from './view/library.js';
import { Notices } from './view/notices.js';
import { NowPlaying } from './view/now-playing.js';
import { PlayOptions } from './view/play-options.js';
import { QueueView } from './view/queue.js';
import { ShareButton } from './view/share.js';
import { Spectrum } from './view/spectrum.js';
import { Statistics } from './view/statistics.js';
import { Transport } from './view/transport.js';
import { Welcome } from './view/welcome.js';
import { WhyPanel } from './view/why.js';
import { offerWindowAPI } from './window-api.js';

const STATISTICS_INTERVAL_MS = 250;
/** Codes of errors that only say that somebody was faster. */
const UNREMARKABLE = new Set(['superseded']);

const session = await findSession();
const snapshot = new Snapshot();
const known = new KnownTracks();
/** Optimistic, so that the first moment does not look like trouble. */
let isConnected = true;
const notices = new Notices();
const player = await choosePlayer();

const transport = new Transport({ ask, player, playSomething });
const nowPlaying = new NowPlaying();
const queueView = new QueueView(ask, known);
const options = new PlayOptions();
const library = new Library({ play, queue });
const welcome = new Welcome(play);
const spectrum = new Spectrum(byId('spectrum'), player.output);
const statistics = new Statistics();
new Finder({ play, queue }, known, notices);
new WhyPanel({ session, facts, allow: () => player.resumeSound(), unmute: () => transport.setMuted(false) });
new ShareButton(session, notices);

start();

async function choosePlayer() {
  const handlers = { onEvent, onLink, onAllowed: render, onFailure };
  const forced = new URLSearchParams(location.search).get('player') === 'audio';
  const reason = forced ? 'The plain Ogg player is used, because the address asks for it (player=audio).'
    : await whyUnavailable();
  if (!reason) return new WebCodecsPlayer(handlers);
  const note = byId('player-note');
  note.textContent = canPlayOgg() ? reason
    : 'This browser plays neither WebCodecs nor Ogg Opus, so it can control the session but not be heard. '
      + 'Any current Firefox, Chrome, Edge or Safari can.';
  note.hidden = false;
  return new ElementPlayer(handlers);
}

async function start() {
  const socketURL = new URL('ws', location.href);
  socketURL.protocol = location.protocol === 'https:' ? 'wss:' : 'ws:';
  socketURL.search = new URLSearchParams({ session: session.id }).toString();
  const listenURL = new URL(`listen/${encodeURIComponent(session.id)}.ogg`, location.href);
  listenURL.search = '';
  if (session.rejected !== null) {
    notices.error({
      message: `“${session.rejected}” cannot be a session ID, so this tab has its own session.`,
      hint: 'An ID is 1 to 24 letters, digits and . _ : -',
    });
  }
  // Any first touch of the page may be the one that lets the browser play sound.
  for (const type of ['pointerdown', 'keydown', 'touchend']) {
    addEventListener(type, () => player.resumeSound(), { capture: true });
  }
  byId('hear').onclick = () => player.resumeSound();
  offerWindowAPI({ player, snapshot, session, transport });
  try {
    await player.start(socketURL.href, listenURL.href);
  } catch (error) {
    onFailure(error.message);
  }
  player.resumeSound();
  setInterval(() => statistics.show(player.stats()), STATISTICS_INTERVAL_MS);
  render();
}

function onEvent(event) {
  snapshot.apply(event);
  if (event.type === 'error' && !UNREMARKABLE.has(event.code)) notices.error(event);
  if (event.type === 'ready') known.learn(event);
  if (event.type === 'session') notices.clearConnectionErrors();
  if ((event.type === 'session' || event.type === 'engine') && snapshot.engine.connected) {
    library.openIfMissing();
    welcome.loadIfMissing();
  }
  transport.take(event);
  render();
}

function onLink(link) {
  isConnected = link.connected;
  notices.showLink(link);
  render();
}

function onFailure(message) {
  notices.error({
    message: `This browser could not start or keep up the sound: ${message.replace(/\.$/, '')}.`,
    hint: 'The plain player may work: open this page with ?player=audio in its address.',
  });
}

/** Sends a command; its errors are shown. Resolves with the answer. */
async function ask(command) {
  const answer = await player.send(command);
  // Errors of the server come as events too and have been shown as such.
  if (answer.type === 'error' && answer.local) notices.error(answer);
  return answer;
}

function play(url, startMs = 0) {
  return ask({ type: 'play', url, start_ms: startMs, volume: transport.volume, ...options.fields });
}

function queue(url) {
  return ask({ type: 'queue_add', url });
}

/** What the big button plays when nothing is: the last track again, or a first one. */
function playSomething() {
  const url = snapshot.url ?? welcome.firstURL ?? library.firstURL;
  if (url) play(url, snapshot.continueMs);
  else byId('source-url').focus();
}

/** What `examineSilence` goes by. */
function facts() {
  const { framesReceived, bufferedMs, player: name } = player.stats();
  return {
    connected: isConnected, engine: snapshot.engine, state: snapshot.state, buffering: snapshot.buffering,
    isAllowed: player.output.isAllowed, muted: player.output.muted, volume: snapshot.volume, framesReceived, bufferedMs,
    rms: player.output.rms(), player: name, session,
  };
}

function render() {
  const isSilenced = !player.output.isAllowed;
  nowPlaying.show(snapshot, isConnected);
  transport.show(snapshot);
  queueView.show(snapshot.queue);
  library.mark(snapshot.state === 'idle' ? null : snapshot.url);
  welcome.show(snapshot.isKnown && snapshot.state === 'idle' && snapshot.url === null);
  notices.showEngine(snapshot.engine);
  spectrum.setActive(snapshot.state === 'streaming');
  byId('hear').hidden = !(isSilenced && snapshot.state === 'streaming');
}
