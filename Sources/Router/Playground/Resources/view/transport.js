// The player's controls: play, pause, stop, next, previous, loop, seek, volume and mute.

import { announce, byId, setDisabled, setText } from './elements.js';
import { Chapters } from './chapters.js';
import { clockLabel, spokenTime, timeLabel } from './format.js';

/** The last packet of a track begins this long before its end; at the end itself there is nothing to play. */
const LAST_PACKET_MS = 20;
/** Key presses in a row become one seek. */
const SEEK_GATHER_MS = 160;
/** While the volume is being dragged. */
const VOLUME_INTERVAL_MS = 120;
/** The seek bar moves this often: smooth enough for its length. */
const REFRESH_MS = 100;
/** What the big button does in each state; otherwise it plays. */
const TOGGLE_LABELS = { streaming: 'Pause', extracting: 'Stop opening' };
/** The modes of the loop in the order in which the button goes round. */
const LOOPS = ['off', 'queue', 'track'];
const LOOP_LABELS = { off: 'Repeat: off', queue: 'Repeat: the queue', track: 'Repeat: this track' };

export class Transport {
  #ask;
  #player;
  #playSomething;
  #canControl;
  #snapshot = null;
  /** Where the listener wants to be, until the session is there. */
  #wantedMs = null;
  /** The loop that was asked for last, until the session has it. */
  #wantedLoop = null;
  #isDragging = false;
  #seekTimer = 0;
  #volumeTimer = 0;
  #isSettingVolume = false;
  #chapters;
  #seek = byId('seek');
  #volume = byId('volume');

  constructor({ ask, player, playSomething, canControl }) {
    this.#ask = ask;
    this.#player = player;
    this.#playSomething = playSomething;
    this.#canControl = canControl;
    this.#chapters = new Chapters(canControl ? (positionMs) => this.seekTo(positionMs) : null);
    byId('play-pause').onclick = () => this.toggle();
    byId('stop').onclick = () => this.stop();
    byId('skip').onclick = () => this.next();
    byId('previous').onclick = () => this.previous();
    byId('loop').onclick = () => this.cycleLoop();
    byId('mute').onclick = () => this.toggleMute();
    this.#listenToSeek();
    this.#listenToVolume();
    setInterval(() => this.#showPosition(), REFRESH_MS);
  }

  /** What is being heard, in milliseconds of the track. */
  get positionMs() {
    if (!this.#snapshot) return 0;
    const heardMs = this.#snapshot.state === 'streaming' ? this.#player.heardPositionMs() : null;
    // Remembered, so that a gap in the sound does not send the seek bar back to the last event.
    if (heardMs !== null) this.#snapshot.positionMs = heardMs;
    return Math.max(0, Math.min(this.#snapshot.positionMs, this.#snapshot.durationMs ?? Infinity));
  }

  /** Follows the events that concern the controls directly. */
  take({ type, code }) {
    // The answer to the presses before. Those since then are still to be sent.
    if (type === 'seeked' && this.#seekTimer) return;
    if (['seeked', 'ended', 'extracting'].includes(type) || (type === 'error' && code !== 'superseded')) {
      this.#wantedMs = null;
    }
  }

  show(snapshot) {
    this.#snapshot = snapshot;
    this.#chapters.show(snapshot);
    const { state } = snapshot;
    const isActive = state !== 'idle';
    const button = byId('play-pause');
    const label = TOGGLE_LABELS[state] ?? 'Play';
    button.dataset.state = state;
    button.setAttribute('aria-label', label);
    button.title = `${label} (space)`;
    const can = this.#canControl;
    setDisabled(button, !can);
    setDisabled(byId('stop'), !can || !isActive);
    setDisabled(byId('skip'), !this.canNext);
    setDisabled(byId('previous'), !this.canPrevious);
    setDisabled(this.#seek, !this.canSeek);
    setDisabled(this.#volume, !can);
    this.#showLoop(snapshot.queue.loop);
    this.#seek.classList.toggle('is-busy', state === 'extracting' || snapshot.buffering);
    if (!this.#isSettingVolume) this.#volume.value = snapshot.volume;
    this.#showVolume();
    this.#showPosition();
  }

  get canNext() {
    return this.#canControl && (this.#snapshot.state !== 'idle' || this.#snapshot.queue.total > 0);
  }

  get canPrevious() {
    return this.#canControl && (this.#snapshot.queue.historyTotal > 0 || this.canSeek);
  }

  get canSeek() {
    const { state, durationMs } = this.#snapshot;
    return this.#canControl && state !== 'idle' && state !== 'extracting' && durationMs !== null;
  }

  toggle() {
    if (!this.#canControl) return;
    const state = this.#snapshot?.state ?? 'idle';
    if (state === 'idle') this.#playSomething();
    else if (state === 'paused') this.#ask({ type: 'resume' });
    else if (state === 'streaming') this.#ask({ type: 'pause' });
    else if (state === 'extracting') this.#ask({ type: 'stop' });
  }

  stop() {
    this.#ask({ type: 'stop' });
  }

  next() {
    if (this.canNext) this.#ask({ type: 'skip' });
  }

  /** What played before, or, where this is the first, its beginning. */
  previous() {
    if (!this.canPrevious) return;
    if (this.#snapshot.queue.historyTotal > 0) this.#ask({ type: 'previous' });
    else this.seekTo(0);
  }

  async cycleLoop() {
    if (!this.#canControl) return;
    const before = this.#wantedLoop ?? this.#snapshot.queue.loop;
    const mode = LOOPS[(LOOPS.indexOf(before) + 1) % LOOPS.length];
    this.#wantedLoop = mode;
    const answer = await this.#ask({ type: 'queue_loop', mode });
    if (this.#wantedLoop === mode) this.#wantedLoop = null;
    if (answer.type !== 'error') announce(LOOP_LABELS[mode]);
  }

  toggleMute() {
    this.setMuted(!this.#player.output.muted);
    announce(this.#player.output.muted ? 'Muted here' : 'Not muted here');
  }

  /** On this device alone. */
  setMuted(muted) {
    this.#player.output.setMuted(muted);
    byId('mute').setAttribute('aria-pressed', String(muted));
    setText(byId('mute-label'), muted ? 'Muted here' : 'Mute here');
  }

  #listenToSeek() {
    this.#seek.oninput = () => {
      this.#isDragging = true;
      this.#wantedMs = this.#seek.valueAsNumber;
      this.#showPosition();
    };
    this.#seek.onchange = () => {
      this.#isDragging = false;
      this.seekTo(this.#seek.valueAsNumber);
    };
  }

  /** By so many milliseconds; presses in a row add up. */
  seekBy(ms) {
    if (this.canSeek) this.seekTo((this.#wantedMs ?? this.positionMs) + ms);
  }

  seekTo(positionMs) {
    const durationMs = this.#snapshot.durationMs ?? 0;
    this.#wantedMs = Math.max(0, Math.min(positionMs, durationMs - LAST_PACKET_MS));
    this.#showPosition();
    clearTimeout(this.#seekTimer);
    this.#seekTimer = setTimeout(async () => {
      this.#seekTimer = 0;
      const askedMs = this.#wantedMs;
      if (askedMs === null) return;
      await this.#ask({ type: 'seek', position_ms: Math.round(askedMs) });
      if (this.#wantedMs === askedMs && !this.#isDragging) this.#wantedMs = null;
    }, SEEK_GATHER_MS);
  }

  #listenToVolume() {
    this.#volume.oninput = () => {
      this.#isSettingVolume = true;
      this.#showVolume();
      this.#volumeTimer ||= setTimeout(() => this.#sendVolume(), VOLUME_INTERVAL_MS);
    };
    this.#volume.ondblclick = () => {
      this.#volume.value = 1;
      this.#volume.oninput();
    };
  }

  async #sendVolume() {
    this.#volumeTimer = 0;
    const level = this.#volume.valueAsNumber;
    this.#snapshot.volume = level;
    // While nothing plays too: what the queue starts, or somebody else, is played at this level.
    await this.#ask({ type: 'volume', level });
    if (!this.#volumeTimer) this.#isSettingVolume = false;
  }

  #showVolume() {
    const percent = `${Math.round(this.#volume.valueAsNumber * 100)} %`;
    setText(byId('volume-value'), percent);
    this.#volume.setAttribute('aria-valuetext', percent);
    this.#volume.style.setProperty('--fill', this.#volume.valueAsNumber / 2);
  }

  #showPosition() {
    const durationMs = this.#snapshot?.durationMs ?? null;
    const isActive = this.#snapshot && this.#snapshot.state !== 'idle';
    const positionMs = isActive ? this.#wantedMs ?? this.positionMs : 0;
    this.#seek.max = durationMs ?? 1;
    if (!this.#isDragging) this.#seek.value = durationMs === null ? 0 : positionMs;
    this.#seek.style.setProperty('--fill', durationMs ? positionMs / durationMs : 0);
    const chapter = this.#chapters.follow(positionMs);
    const spoken = (durationMs === null ? spokenTime(positionMs)
      : `${spokenTime(positionMs)} of ${spokenTime(durationMs)}`) + (chapter ? `, ${chapter}` : '');
    if (this.#seek.getAttribute('aria-valuetext') !== spoken) this.#seek.setAttribute('aria-valuetext', spoken);
    setText(byId('elapsed'), timeLabel(positionMs));
    // What is live has no place to go to.
    const isLive = Boolean(isActive && this.#snapshot.live);
    this.#seek.parentElement.hidden = isLive;
    byId('since').hidden = !isLive;
    if (isLive) setText(byId('since'), `Playing here since ${clockLabel(Date.now() - positionMs)}`);
    setText(byId('duration'), isLive ? 'live' : timeLabel(durationMs));
  }

  #showLoop(mode) {
    const button = byId('loop');
    button.dataset.mode = mode;
    button.title = `${LOOP_LABELS[mode]} (L)`;
    button.setAttribute('aria-label', LOOP_LABELS[mode]);
    setDisabled(button, !this.#canControl);
  }
}
