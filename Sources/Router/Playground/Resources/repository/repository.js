// One repository: its session is heard, what happens in it is seen as it sounds.

import { announcement, shortLabel } from '../session/event-texts.js';
import { Pieces } from '../session/pieces.js';
import { getRepository, listRepositories } from '../session/repositories.js';
import { Snapshot } from '../session/snapshot.js';
import { choosePlayer } from '../sound/choose-player.js';
import { StreamedPlayer } from '../sound/player-stream.js';
import { startPlayer } from '../sound/start-player.js';
import { announce, byId } from '../view/elements.js';
import { Tabs } from '../view/tabs.js';
import { Activity } from './activity.js';
import { showConnect } from './connect.js';
import { EventList } from './event-list.js';
import { Listening } from './listening.js';
import { NowSounding } from './now-sounding.js';
import { Replay } from './replay.js';
import { Sky } from './sky.js';
import { TryIt } from './try-it.js';
import { Voices } from './voices.js';
import { offerWindowAPI } from './window-api.js';
import { isWithoutSession } from './without-session.js';

/** Often enough that what is said keeps with what is heard; what is drawn follows the screen. */
const TICK_MS = 50;
const TABS = { try: 1, connect: 2 };

/** Resolves once the page is there, with `{tryIt, connected}`. */
export async function openRepository(options) {
  const handlers = {
    onEvent: (event) => page.take(event),
    onLink: (link) => page.takeLink(link),
    onAllowed: () => page.render(),
    onFailure: (message) => page.fail(message),
  };
  const isAlone = isWithoutSession();
  // The voices are the session's.
  byId('voices-shelf').hidden = isAlone;
  const { player, note } = isAlone ? { player: new StreamedPlayer(handlers), note: null }
    : await choosePlayer(handlers);
  const page = new RepositoryPage({ ...options, player, note });
  await page.start();
  return page;
}

class RepositoryPage {
  tryIt;
  /** Resolves when the server has said what the session does. */
  connected;
  #setConnected;
  #player;
  #gate;
  #notices;
  #session;
  #canControl;
  #snapshot = new Snapshot();
  #pieces = new Pieces();
  #isConnected = true;
  #known = null;
  /** What is being heard, newest first: `[{music, elapsedMs}]`. */
  #heard = [];
  #announced = new Set();
  #sky;
  #voices;
  #events;
  #activity = new Activity();
  #replay;
  #listening;
  #nowSounding = new NowSounding();
  #tabs;

  constructor({ session, canControl, gate, notices, player, note }) {
    this.connected = new Promise((resolve) => (this.#setConnected = resolve));
    this.#player = player;
    this.#gate = gate;
    this.#notices = notices;
    this.#session = session;
    this.#canControl = canControl;
    this.#sky = new Sky(byId('sky'), { loudness: () => this.#replay?.heard?.rms ?? player.output.rms() });
    this.#voices = new Voices({ ask: (command) => this.#ask(command), canControl });
    this.#events = new EventList(session.id);
    this.#replay = new Replay({ id: session.id, player, sky: this.#sky, notices, onChange: () => this.render() });
    this.#listening = new Listening({ player, onChange: () => this.#followVolume() });
    this.#tabs = new Tabs(['events', 'try', 'connect'].map((name) => byId(`tab-${name}`)), {
      onOpen: (chosen) => chosen === TABS.connect && this.#showConnect(),
    });
    this.tryIt = new TryIt({ id: session.id, repository: () => this.#known?.name });
    byId('player-note').textContent = note ?? '';
    byId('player-note').hidden = note === null;
    byId('link-state').hidden = false;
    if (!canControl) byId('tab-try').hidden = true;
  }

  async start() {
    const { id } = this.#session;
    this.#gate.watch({ player: this.#player, session: this.#session, canControl: this.#canControl });
    offerWindowAPI({
      player: this.#player, session: this.#session, snapshot: this.#snapshot,
      heard: () => this.#heard, replay: () => this.#replay.heard,
    });
    setInterval(() => this.#tick(), TICK_MS);
    this.render();
    await Promise.all([this.#startSound(id), this.#load()]);
    if (this.#events.isEmpty && this.#canControl) this.#tabs.open(TABS.try);
  }

  async #startSound(id) {
    try {
      await startPlayer(this.#player, id, this.#canControl ? 'control' : 'listen');
    } catch (error) {
      this.fail(error.message);
    }
    this.#player.resumeSound();
    this.#player.setPlaying(true);
  }

  /** What the server has kept; asked for anew after every connection. */
  async #load() {
    const [known, newest] = await Promise.all([getRepository(this.#session.id), this.#events.load()]);
    // The sky is not empty where something has happened before.
    if (newest?.notes.length && this.#sky.isEmpty) this.#sky.add(newest, shortLabel(newest.event), () => null);
    if (!known.error) {
      this.#known = known;
      this.#activity.show(known.activity);
    } else if (known.error.status !== 404) {
      this.#notices.error(known.error);
    }
    this.render();
  }

  async #showConnect() {
    showConnect(this.#notices, await listRepositories());
  }

  take(event) {
    this.#snapshot.apply(event);
    switch (event.type) {
      case 'music': this.#takeMusic(event); break;
      case 'error': this.#showError(event); break;
      case 'closing': this.#notices.showClosing(event); break;
      case 'session':
        this.#notices.clearConnectionErrors();
        this.#setConnected();
        break;
      // What was begun is not heard to its end.
      case 'ended': case 'seeked': this.#pieces.forget(); break;
      case 'engine': if (!event.engine.connected) this.#pieces.forget(); break;
    }
    this.render();
  }

  takeLink(link) {
    // What happened meanwhile was told to others.
    if (link.connected && !this.#isConnected) this.#load();
    this.#isConnected = link.connected;
    if (!link.connected) this.#pieces.forget();
    this.#notices.showLink(link);
    this.render();
    this.#gate.examine(link);
  }

  fail(message) {
    this.#notices.error({
      code: 'no_sound', message: `This browser could not start or keep up the sound: ${message}`,
      hint: 'The plain player may work: add &player=audio to the address.',
    });
  }

  render() {
    const { engine, muted } = this.#snapshot;
    this.#notices.showEngine(engine);
    this.#voices.show(muted);
    this.#sky.setMuted(muted);
    this.#listening.show();
    this.#nowSounding.show({
      snapshot: this.#snapshot, isConnected: this.#isConnected, known: this.#known, id: this.#session.id,
      heard: this.#heard[0]?.music ?? null, replay: this.#replay.heard, isSilent: this.#voices.isSilent,
    });
  }

  #takeMusic(music) {
    const isFirst = this.#known === null;
    this.#pieces.take(music, performance.now());
    // Anyone who comes while a piece sounds is told of it, and finds it in the list too.
    if (this.#events.add(music)) this.#activity.add(music.event);
    if (isFirst) this.#load();
  }

  /** Compares what is heard with what is shown and said. */
  #tick() {
    // What was begun goes on with the session.
    if (this.#snapshot.state === 'paused') return;
    this.#heard = this.#pieces.heard(this.#player.heardPositionMs(), performance.now());
    const numbers = new Set(this.#heard.map(({ music }) => music.number));
    const begun = this.#heard.filter(({ music }) => !this.#announced.has(music.number)).reverse();
    const isOver = [...this.#announced].some((number) => !numbers.has(number));
    if (begun.length === 0 && !isOver) return;
    for (const { music } of begun) this.#begin(music);
    this.#announced = numbers;
    this.#events.mark(numbers);
    this.render();
  }

  #begin(music) {
    const elapsed = () => this.#heard.find((each) => each.music.number === music.number)?.elapsedMs ?? null;
    this.#sky.add(music, shortLabel(music.event), elapsed);
    // During a replay something else is heard here.
    if (!this.#replay.heard) announce(announcement(music));
  }

  #followVolume() {
    this.#replay?.follow();
    this.render();
  }

  #showError(error) {
    if (error.code === 'unauthorized') this.#gate.renew();
    else if (error.code !== 'superseded') this.#notices.error(error);
  }

  async #ask(command) {
    const answer = await this.#player.send(command);
    // Errors of the server come as events too and have been shown as such.
    if (answer.type === 'error' && answer.local) this.#notices.error(answer);
    return answer;
  }
}
