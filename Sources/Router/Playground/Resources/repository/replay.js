// The last week in a minute, heard and seen in place of what sounds now, on this device alone.

import { getReplay, getReplaySound } from '../session/repositories.js';
import { dayAt, daysOf, eventAt } from '../session/replay-week.js';
import { ReplaySound } from '../sound/replay-sound.js';
import { announce, byId, make, setText } from '../view/elements.js';
import { timeLabel } from '../view/format.js';

const REFRESH_MS = 100;
/** Days cut shorter than this share of the week are not named. */
const LEAST_SHARE = 0.09;
const LABELS = { playing: 'Stop the replay', preparing: 'Composing the week…', idle: 'Replay the week' };
const EMPTY_WEEK = 'Nothing has happened in the last week: there is nothing to replay.';
const NOT_PLAYABLE = {
  code: 'replay_not_playable', message: 'This browser cannot play the replay.', hint: 'It is Ogg Opus; a newer browser can.',
};

export class Replay {
  #id;
  #player;
  #sky;
  #notices;
  #onChange;
  #button = byId('replay');
  /** `{sound, replay, days, timer}` while one is played. */
  #current = null;
  /** Counts the requests, so that one that was given up does not begin. */
  #attempt = 0;
  #isPreparing = false;
  #day = null;

  /** `onChange()` is called when it begins, another event is heard, or it ends. */
  constructor({ id, player, sky, notices, onChange }) {
    this.#id = id;
    this.#player = player;
    this.#sky = sky;
    this.#notices = notices;
    this.#onChange = onChange;
    this.#button.onclick = () => (this.#current || this.#isPreparing ? this.stop() : this.#prepare());
  }

  /** What is heard of it now: `{event, elapsedMs, rms}`; null while none is played. */
  get heard() {
    if (!this.#current) return null;
    const { sound, replay } = this.#current;
    const elapsedMs = sound.heardMs;
    return { event: eventAt(replay.events, elapsedMs), day: this.#day, elapsedMs, rms: sound.rms() };
  }

  /** Follows the volume of this device. */
  follow() {
    this.#current?.sound.follow();
  }

  stop() {
    this.#attempt += 1;
    this.#isPreparing = false;
    this.#current?.sound.stop();
    this.#finish();
  }

  async #prepare() {
    const attempt = (this.#attempt += 1);
    this.#isPreparing = true;
    this.#showButton();
    const untilMs = Date.now();
    // Asked for at once: the same computation makes both.
    const [replay, file] = await Promise.all([getReplay(this.#id, untilMs), getReplaySound(this.#id, untilMs)]);
    if (attempt !== this.#attempt) return;
    // A repository of which nothing is known has had no week.
    const isEmpty = replay.error?.status === 404 || replay.events?.length === 0;
    const error = replay.error ?? file.error;
    if (isEmpty) this.#notices.info(EMPTY_WEEK);
    else if (error) this.#notices.error(error);
    else await this.#play(replay, file.bytes, attempt);
    if (attempt !== this.#attempt) return;
    this.#isPreparing = false;
    this.#showButton();
  }

  async #play(replay, bytes, attempt) {
    await this.#player.resumeSound();
    const sound = await ReplaySound.decode(this.#player.output, bytes).catch(() => null);
    if (attempt !== this.#attempt) return;
    if (!sound) {
      this.#notices.error(NOT_PLAYABLE);
      return;
    }
    const days = daysOf(replay.until_ms);
    this.#current = { sound, replay, days, timer: setInterval(() => this.#show(), REFRESH_MS) };
    sound.start(() => this.#current?.sound === sound && this.stop());
    this.#sky.showAlone(replay, () => sound.heardMs, days.slice(1).map(({ from }) => from));
    byId('week-days').replaceChildren(...days.map(dayLabel));
    byId('week').hidden = false;
    announce('Replaying the last week.');
    this.#show();
  }

  #finish() {
    const wasPlayed = this.#current !== null;
    clearInterval(this.#current?.timer);
    this.#current = null;
    this.#day = null;
    this.#sky.showAlone(null);
    byId('week').hidden = true;
    this.#showButton();
    if (wasPlayed) announce('The replay is over.');
    this.#onChange();
  }

  #show() {
    const { sound, replay, days } = this.#current;
    const share = Math.min(1, sound.heardMs / replay.duration_ms);
    this.#day = dayAt(days, share).label;
    const bar = byId('week-bar');
    bar.style.setProperty('--fill', share);
    bar.setAttribute('aria-valuenow', Math.round(100 * share));
    bar.setAttribute('aria-valuetext', `${this.#day}, ${timeLabel(sound.heardMs)} of ${timeLabel(replay.duration_ms)}`);
    [...byId('week-days').children].forEach((label, i) => {
      label.classList.toggle('is-now', days[i].from <= share && share < days[i].until);
    });
    this.#showButton();
    this.#onChange();
  }

  #showButton() {
    const state = this.#current ? 'playing' : this.#isPreparing ? 'preparing' : 'idle';
    this.#button.dataset.state = state;
    this.#button.setAttribute('aria-busy', String(state === 'preparing'));
    setText(byId('replay-label'), LABELS[state]);
  }
}

/** In full, and by its first letters where there is little room; a few hours of a day have none. */
function dayLabel({ label: name, from, until }) {
  const label = until - from < LEAST_SHARE ? '' : name;
  const day = make('span', { title: label },
    make('span', { className: 'day-long', textContent: label }),
    make('span', { className: 'day-short', textContent: [...label].slice(0, 2).join('') }));
  day.style.setProperty('--from', from);
  day.style.setProperty('--length', until - from);
  return day;
}
