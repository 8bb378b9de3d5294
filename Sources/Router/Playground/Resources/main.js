// The playground: finds out what it may do, finds the session, chooses a player, and ties the views to them.

import { allows } from './session/access.js';
import { findSession } from './session/identity.js';
import { QueueCommands } from './session/queue-commands.js';
import { Snapshot } from './session/snapshot.js';
import { choosePlayer } from './sound/choose-player.js';
import { startPlayer } from './sound/start-player.js';
import { addActions } from './view/add-actions.js';
import { AccessGate } from './view/access-gate.js';
import { byId } from './view/elements.js';
import { Finder } from './view/finder.js';
import { HistoryView } from './view/history.js';
import { Library } from './view/library.js';
import { MediaKeys } from './view/media-keys.js';
import { Notices } from './view/notices.js';
import { NowPlaying } from './view/now-playing.js';
import { Quality } from './view/quality.js';
import { QueueView } from './view/queue.js';
import { ShareButton } from './view/share.js';
import { Shortcuts } from './view/shortcuts.js';
import { Spectrum } from './view/spectrum.js';
import { Statistics } from './view/statistics.js';
import { Transport } from './view/transport.js';
import { Welcome } from './view/welcome.js';
import { WhyPanel } from './view/why.js';
import { offerWindowAPI } from './window-api.js';

const STATISTICS_INTERVAL_MS = 250;
/** Codes of errors that only say that somebody was faster. */
const UNREMARKABLE = new Set(['superseded']);

const notices = new Notices();
const gate = new AccessGate();
const { access, session } = await gate.enter(findSession);
const canControl = allows(access, 'control');
const snapshot = new Snapshot();
/** Optimistic, so that the first moment does not look like trouble. */
let isConnected = true;

const { player, note } = await choosePlayer({ onEvent, onLink, onAllowed: render, onFailure });
const commands = new QueueCommands(ask, session.id, snapshot);
const actions = addActions(commands);
const transport = new Transport({ ask, player, playSomething, canControl });
const nowPlaying = new NowPlaying();
const queueView = new QueueView({ commands, notices, session: session.id, canControl });
const history = new HistoryView({ session: session.id, actions: canControl ? { ...actions, playNow: actions.play } : null });
const quality = new Quality(ask);
const library = new Library(actions);
const finder = new Finder({ actions, commands, notices });
const welcome = new Welcome(actions.play);
const mediaKeys = new MediaKeys({ transport, player, canControl });
const spectrum = new Spectrum(byId('spectrum'), player.output);
const statistics = new Statistics();
new Shortcuts({ transport, queue: queueView, find: () => finder.focus() });
new WhyPanel({ session, facts, allow: () => player.resumeSound(), unmute: () => transport.setMuted(false) });
new ShareButton(session, notices);

start();

async function start() {
  if (session.rejected !== null) {
    notices.error({ code: 'invalid_session_id', message: `“${session.rejected}”: this tab has a session of its own` });
  }
  gate.watch({ player, session, canControl });
  if (!canControl) document.querySelector('.dock').setAttribute('aria-describedby', 'listen-only-reason');
  byId('player-note').textContent = note ?? '';
  byId('player-note').hidden = note === null;
  byId('hear').onclick = () => player.resumeSound();
  offerWindowAPI({ player, snapshot, session, transport });
  try {
    await startPlayer(player, session.id, canControl ? 'control' : 'listen');
  } catch (error) {
    onFailure(error.message);
  }
  player.resumeSound();
  setInterval(() => statistics.show(player.stats()), STATISTICS_INTERVAL_MS);
  render();
}

function onEvent(event) {
  snapshot.apply(event);
  if (event.type === 'error') showError(event);
  if (event.type === 'closing') notices.showClosing(event);
  if (event.type === 'session') notices.clearConnectionErrors();
  if ((event.type === 'session' || event.type === 'engine') && snapshot.engine.connected && canControl) {
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
  gate.examine(link);
}

function onFailure(message) {
  notices.error({
    code: 'no_sound', message: `This browser could not start or keep up the sound: ${message}`,
    hint: 'The plain player may work: open this page with ?player=audio in its address.',
  });
}

function showError(error) {
  if (error.code === 'unauthorized') gate.renew();
  else if (!UNREMARKABLE.has(error.code)) notices.error(error);
}

/** Sends a command; its errors are shown. Resolves with the answer. */
async function ask(command) {
  const answer = await player.send(command);
  // Errors of the server come as events too and have been shown as such.
  if (answer.type === 'error' && answer.local) notices.error(answer);
  return answer;
}

/** What the big button plays when nothing is: what waits, the last track again, or a first one. */
function playSomething() {
  const next = snapshot.queue.tracks[0];
  const url = snapshot.url ?? welcome.firstURL ?? library.firstURL;
  if (snapshot.continueMs === 0 && next) commands.skipTo(next.id);
  else if (url) commands.playNow({ url }, snapshot.continueMs);
  else finder.focus();
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
  history.show(snapshot.queue);
  quality.show(snapshot.queue);
  library.mark(snapshot.state === 'idle' ? null : snapshot.url);
  welcome.show(canControl && snapshot.isKnown && snapshot.state === 'idle' && snapshot.url === null);
  notices.showEngine(snapshot.engine);
  mediaKeys.show(snapshot);
  spectrum.setActive(snapshot.state === 'streaming');
  byId('hear').hidden = !(isSilenced && snapshot.state === 'streaming');
}
