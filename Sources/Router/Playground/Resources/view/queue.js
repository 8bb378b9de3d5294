// The queue: what comes next, to put in order, to play at once, to remove, to shuffle and to clear.

import { listQueue } from '../session/rest.js';
import { confirmed } from './confirm.js';
import { announce, byId, setText } from './elements.js';
import { countLabel, lengthLabel, trackName, tracksLabel } from './format.js';
import { QueueDrag } from './queue-drag.js';
import { queueRow } from './queue-row.js';

/** As many as the server tells at once. */
const PAGE = 100;
/** Up to so many tracks a clearing can be taken back; beyond, it is asked about first. */
const MAX_UNDONE = 500;
const MOVES = { ArrowUp: (at) => at - 1, ArrowDown: (at) => at + 1, Home: () => 0, End: (_, total) => total - 1 };

export class QueueView {
  #commands;
  #notices;
  #session;
  #canControl;
  #list = byId('queue');
  #drag;
  #queue = { tracks: [], total: 0 };
  /** What the list shows: the tracks from `#offset` on. */
  #tracks = [];
  #offset = 0;
  #key = null;

  /** `commands` are the queue's; `session` is its ID. */
  constructor({ commands, notices, session, canControl }) {
    this.#commands = commands;
    this.#notices = notices;
    this.#session = session;
    this.#canControl = canControl;
    this.#drag = new QueueDrag(this.#list, {
      onDrop: (id, beforeID) => this.#drop(id, beforeID),
      onEnd: () => this.#render(),
    });
    this.#list.addEventListener('keydown', (event) => this.#keyDown(event));
    byId('queue-clear').onclick = () => this.#clear();
    byId('queue-shuffle').onclick = () => this.shuffle();
    byId('queue-earlier').onclick = () => this.#turn(-PAGE);
    byId('queue-later').onclick = () => this.#turn(PAGE);
  }

  /** Shows the session's queue; called after every event. */
  show(queue) {
    if (queue === this.#queue) return;
    this.#queue = queue;
    if (this.#offset >= queue.total) this.#offset = Math.max(0, Math.ceil(queue.total / PAGE) - 1) * PAGE;
    this.#load();
  }

  async shuffle() {
    if (this.#queue.total < 2 || !this.#canControl) return;
    const answer = await this.#commands.shuffle();
    if (answer.type !== 'error') announce('The queue was shuffled.');
  }

  async #load() {
    const [queue, offset] = [this.#queue, this.#offset];
    if (offset === 0) {
      this.#tracks = queue.tracks;
    } else {
      const page = await listQueue(this.#session, offset, PAGE);
      // Meanwhile it may have changed, and is being asked for again.
      if (queue !== this.#queue || offset !== this.#offset || page.error) return;
      this.#tracks = page.tracks;
    }
    this.#render();
  }

  async #turn(step) {
    this.#offset = Math.max(0, this.#offset + step);
    await this.#load();
    this.#list.scrollTop = 0;
    announce(byId('queue-range').textContent);
  }

  /** A list that is being dragged in stays as it is until that is over. */
  #render() {
    if (this.#drag.isActive) return;
    this.#showHead();
    const key = JSON.stringify([this.#offset, this.#tracks]);
    if (key === this.#key) return;
    this.#key = key;
    const focus = this.#rememberFocus();
    const actions = this.#canControl ? {
      playNow: ({ id }) => this.#commands.skipTo(id),
      playNext: (track) => this.#move(track, 0),
      remove: (track) => this.#remove(track),
    } : null;
    this.#list.replaceChildren(...this.#tracks.map((track, i) => queueRow(track, actions, this.#offset + i === 0)));
    focus?.();
  }

  #showHead() {
    const { total, tracks } = this.#queue;
    const known = tracks.filter(({ duration_ms: ms }) => ms);
    const sum = lengthLabel(known.reduce((ms, track) => ms + track.duration_ms, 0));
    const isWhole = known.length === total;
    setText(byId('queue-total'), total === 0 ? ''
      : tracksLabel(total) + (known.length === 0 || total > tracks.length ? '' : ` · ${isWhole ? '' : 'over '}${sum}`));
    byId('queue-empty').hidden = total > 0;
    byId('queue-clear').hidden = total === 0 || !this.#canControl;
    byId('queue-shuffle').hidden = total < 2 || !this.#canControl;
    byId('queue-pager').hidden = total <= PAGE;
    setText(byId('queue-range'),
      `${countLabel(this.#offset + 1)} to ${countLabel(Math.min(total, this.#offset + PAGE))} of ${countLabel(total)}`);
    byId('queue-earlier').disabled = this.#offset === 0;
    byId('queue-later').disabled = this.#offset + PAGE >= total;
  }

  /**
   * The keyboard stays with its track and button, or, where the track is gone, at its place in the list. Returns what
   * gives the focus back; null where the list does not have it.
   */
  #rememberFocus() {
    const focused = document.activeElement;
    const rows = [...this.#list.children];
    const place = rows.findIndex((row) => row.contains(focused));
    if (place < 0) {
      const isGone = byId('panel-next').parentElement.contains(focused) && (focused.disabled || !focused.checkVisibility());
      return isGone ? () => this.#focusHead() : null;
    }
    const { id } = rows[place].dataset;
    const kind = [...rows[place].querySelectorAll('button')].indexOf(focused);
    return () => {
      const now = [...this.#list.children];
      const row = now.find((other) => other.dataset.id === id) ?? now[place] ?? now.at(-1);
      const buttons = [...row?.querySelectorAll('button') ?? []];
      const button = buttons[kind]?.disabled ? buttons[0] : buttons[kind];
      (button ?? byId('queue-heading')).focus({ preventScroll: true });
      row?.scrollIntoView({ block: 'nearest' });
    };
  }

  /** For a button above or below the list that can be used no more. */
  #focusHead() {
    const buttons = [byId('queue-earlier'), byId('queue-later')].filter((each) => !each.disabled && each.checkVisibility());
    (buttons[0] ?? byId('queue-heading')).focus();
  }

  #keyDown(event) {
    const row = event.target.closest('.track-row');
    const isOnHandle = event.target.closest('.handle') && !event.altKey;
    const isWithAlt = event.altKey && event.key.startsWith('Arrow');
    const goal = MOVES[event.key];
    if (!goal || !row || !(isOnHandle || isWithAlt) || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const at = this.#tracks.findIndex(({ id }) => id === row.dataset.id);
    if (at >= 0) this.#move(this.#tracks[at], goal(this.#offset + at, this.#queue.total));
  }

  /** Before the row that it was let go at, wherever that is by now. */
  #drop(id, beforeID) {
    const track = this.#tracks.find((each) => each.id === id);
    const rest = this.#tracks.filter((each) => each !== track);
    const before = rest.findIndex((each) => each.id === beforeID);
    if (track) this.#move(track, this.#offset + (before < 0 ? rest.length : before));
  }

  /** Shown at once; what the server then says is what holds. */
  async #move(track, position) {
    const last = this.#queue.total - 1;
    const goal = Math.max(0, Math.min(position, last));
    const from = this.#offset + this.#tracks.indexOf(track);
    if (goal === from) return;
    const rest = this.#tracks.filter((each) => each !== track);
    const isHere = goal >= this.#offset && goal < this.#offset + PAGE;
    this.#tracks = isHere ? rest.toSpliced(goal - this.#offset, 0, track) : rest;
    this.#render();
    const answer = await this.#commands.move(track.id, goal);
    if (answer.type === 'error') await this.#load();
    else announce(`${trackName(track)} is number ${goal + 1} of ${this.#queue.total}.`);
  }

  async #remove(track) {
    const position = this.#offset + this.#tracks.indexOf(track);
    const answer = await this.#commands.remove(track.id);
    if (answer.type === 'error') return;
    this.#notices.undoable(`“${trackName(track)}” was removed.`, () => this.#commands.add([track], position));
  }

  async #clear() {
    const { total, tracks } = this.#queue;
    if (total > MAX_UNDONE) {
      if (await confirmed(`Remove all ${tracksLabel(total)} from the queue? This cannot be undone.`, 'Remove all')) {
        await this.#commands.clear();
      }
      return;
    }
    const all = total > tracks.length ? await this.#commands.list(total) : tracks;
    const answer = await this.#commands.clear();
    if (answer.type === 'error' || !all) return;
    this.#notices.undoable(`${tracksLabel(total)} removed.`, () => this.#commands.add(all));
  }
}
