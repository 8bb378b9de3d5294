// The player's controls: play, pause, stop, skip, seek, volume, mute, and their keys.

import { byId, passFocus, setText } from './elements.js';
import { Chapters } from './chapters.js';
import { spokenTime, timeLabel } from './format.js';

/** The last packet of a track begins this long before its end; at the end itself there is nothing to play. */
const LAST_PACKET_MS = 20;
const KEY_SEEK_MS = 5000;
/** Key presses in a row become one seek. */
const SEEK_GATHER_MS = 160;
/** While the volume is being dragged. */
const VOLUME_INTERVAL_MS = 120;
/** The seek bar moves this often: smooth enough for its length. */
const REFRESH_MS = 100;
/** What the big button does in each state; otherwise it plays. */
const TOGGLE_LABELS = { streaming: 'Pause', extracting: 'Stop opening' };
const TYPES_TEXT = 'input:not([type=range]), textarea, select';

export class Transport {
  #ask;
  #player;
  #playSomething;
  #snapshot = null;
  /** Where the listener wants to be, until the session is there. */
  #wantedMs = null;
  #isDragging = false;
  #seekTimer = 0;
  #volumeTimer = 0;
  #isSettingVolume = false;
  #chapters;
  #seek = byId('seek');
  #volume = byId('volume');

  constructor({ ask, player, playSomething }) {
    this.#ask = ask;
    this.#player = player;
    this.#playSomething = playSomething;
    this.#chapters = new Chapters((positionMs) => this.#seekTo(positionMs));
    byId('play-pause').onclick = () => this.#toggle();
    byId('stop').onclick = () => ask({ type: 'stop' });
    byId('skip').onclick = () => ask({ type: 'skip' });
    byId('mute').onclick = () => this.#toggleMute();
    this.#listenToSeek();
    this.#listenToVolume();
    document.addEventListener('keydown', (event) => this.#key(event));
    setInterval(() => this.#showPosition(), REFRESH_MS);
  }

  /** The session volume as the slider has it: 1 is 100 %. */
  get volume() {
    return this.#volume.valueAsNumber;
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
    setDisabled(byId('stop'), !isActive);
    setDisabled(byId('skip'), !isActive && snapshot.queue.tracks.length === 0);
    setDisabled(this.#seek, !isActive || state === 'extracting' || snapshot.durationMs === null);
    this.#seek.classList.toggle('is-busy', state === 'extracting' || snapshot.buffering);
    if (!this.#isSettingVolume) this.#volume.value = snapshot.volume;
    this.#showVolume();
    this.#showPosition();
  }

  #toggle() {
    const state = this.#snapshot?.state ?? 'idle';
    if (state === 'idle') this.#playSomething();
    else if (state === 'paused') this.#ask({ type: 'resume' });
    else if (state === 'streaming') this.#ask({ type: 'pause' });
    else if (state === 'extracting') this.#ask({ type: 'stop' });
  }

  #toggleMute() {
    this.setMuted(!this.#player.output.muted);
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
      this.#seekTo(this.#seek.valueAsNumber);
    };
  }

  #seekTo(positionMs) {
    const durationMs = this.#snapshot.durationMs ?? 0;
    this.#wantedMs = Math.max(0, Math.min(positionMs, durationMs - LAST_PACKET_MS));
    this.#showPosition();
    clearTimeout(this.#seekTimer);
    this.#seekTimer = setTimeout(async () => {
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
    const level = this.volume;
    this.#snapshot.volume = level;
    // While nothing plays too: what the queue starts, or somebody else, is played at this level.
    await this.#ask({ type: 'volume', level });
    if (!this.#volumeTimer) this.#isSettingVolume = false;
  }

  #showVolume() {
    const percent = `${Math.round(this.volume * 100)} %`;
    setText(byId('volume-value'), percent);
    this.#volume.setAttribute('aria-valuetext', percent);
    this.#volume.style.setProperty('--fill', this.volume / 2);
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
    setText(byId('duration'), isActive && this.#snapshot.live ? 'live' : timeLabel(durationMs));
  }

  #key(event) {
    const { target, key } = event;
    if (event.ctrlKey || event.metaKey || event.altKey || target.matches?.(TYPES_TEXT)) return;
    if (key === ' ' && !target.closest?.('button, a')) {
      event.preventDefault();
      if (!event.repeat) this.#toggle();
    } else if ((key === 'ArrowLeft' || key === 'ArrowRight') && target !== this.#volume && !this.#seek.disabled) {
      event.preventDefault();
      this.#seekTo((this.#wantedMs ?? this.positionMs) + (key === 'ArrowLeft' ? -KEY_SEEK_MS : KEY_SEEK_MS));
    }
  }
}

/** A control that is disabled loses the keyboard's focus: the big button takes it. */
function setDisabled(control, isDisabled) {
  if (isDisabled && control === document.activeElement) passFocus();
  control.disabled = isDisabled;
}
