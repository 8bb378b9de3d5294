// The media root's folders and files.

import { listMedia } from '../session/rest.js';
import { explain } from '../session/error-texts.js';
import { byId, icon, make, say } from './elements.js';
import { fileKind, fileTitle, sizeLabel } from './format.js';
import { foundRow } from './found-row.js';

export class Library {
  /** The files of the folder shown. */
  #files = [];
  #actions;
  #path = '';
  /** Nothing to show yet: not asked so far, or asked in vain. */
  #isMissing = true;
  #playingURL = null;
  #list = byId('library');
  #note = byId('library-note');

  /** `actions` are those of `addActions`. */
  constructor(actions) {
    this.#actions = actions;
    byId('library-refresh').onclick = () => this.open(this.#path);
    byId('library-add-all').onclick = ({ currentTarget }) => actions.add(this.#files, null, currentTarget);
  }

  /** The first file of the folder shown, or null. */
  get firstURL() {
    return this.#files[0]?.url ?? null;
  }

  async open(path) {
    this.#list.setAttribute('aria-busy', 'true');
    const listing = await listMedia(path);
    this.#list.setAttribute('aria-busy', 'false');
    this.#isMissing = listing.error !== undefined;
    if (this.#isMissing) {
      const { what, advice } = explain(listing.error);
      this.#say(what, advice);
      return;
    }
    this.#path = path;
    this.#files = listing.entries.filter(({ kind }) => kind === 'file').map(({ url }) => ({ url }));
    byId('library-add-all').hidden = this.#files.length < 2;
    const hadFocus = [this.#list, byId('crumbs')].some((part) => part.contains(document.activeElement));
    this.#showCrumbs();
    this.#list.replaceChildren(...listing.entries.map((entry) => this.#row(entry)));
    this.mark(this.#playingURL);
    if (listing.entries.length === 0) this.#sayEmpty();
    else if (listing.truncated) this.#say('There are more files here than are shown.', 'Play them by their media: address.');
    else this.#note.hidden = true;
    // What was pressed is gone; the keyboard goes on in the folder it opened.
    if (hadFocus) (this.#list.querySelector('button') ?? byId('library-refresh')).focus();
  }

  /** The server is there, perhaps again. */
  openIfMissing() {
    if (this.#isMissing) this.open(this.#path);
  }

  /** Shows which of the files is playing. */
  mark(url) {
    this.#playingURL = url;
    for (const row of this.#list.children) row.classList.toggle('is-playing', url !== null && row.dataset.url === url);
  }

  #row(entry) {
    return entry.kind === 'folder' ? this.#folderRow(entry) : this.#fileRow(entry);
  }

  #folderRow({ name }) {
    const path = this.#path ? `${this.#path}/${name}` : name;
    return make('li', {},
      make('button', { type: 'button', className: 'row row-button folder', onclick: () => this.open(path) },
        icon('folder'),
        make('span', { className: 'row-text' }, make('span', { className: 'row-name', textContent: name })),
        make('span', { className: 'chevron', textContent: '›', 'aria-hidden': 'true' })));
  }

  #fileRow({ name, url, bytes }) {
    return foundRow({ url }, {
      name: fileTitle(name),
      detail: [fileKind(name), sizeLabel(bytes)].filter(Boolean).join(' · '),
      glyph: make('span', { className: 'row-glyph', 'aria-hidden': 'true' }, icon('note')),
      actions: this.#actions,
    });
  }

  #showCrumbs() {
    const parts = this.#path ? this.#path.split('/') : [];
    const crumbs = parts.map((part, i) => [part, parts.slice(0, i + 1).join('/')]);
    byId('crumbs').replaceChildren(...(parts.length ? [['All', ''], ...crumbs] : []).map(([name, path]) =>
      make('button', {
        type: 'button', className: 'crumb', textContent: name, onclick: () => this.open(path),
        ...(path === this.#path ? { 'aria-current': 'page' } : {}),
      })));
  }

  #sayEmpty() {
    if (this.#path) {
      this.#say('This folder is empty.');
    } else {
      this.#say('The library is empty.',
        'Put audio files into the media folder and press Refresh, or start the server with ',
        make('code', { textContent: 'deploy/run --media DIR' }), '.');
    }
  }

  #say(...words) {
    say(this.#note, ...words);
  }
}
