// The one field: a pasted link is played or queued, anything else is searched for. What a search or a playlist
// holds is shown as a list to choose from.

import { resolveQuery } from '../session/rest.js';
import { explain } from '../session/error-texts.js';
import { artworkTile } from './artwork.js';
import { announce, byId, say, setText } from './elements.js';
import { sourcePlace, timeLabel, trackName, tracksLabel } from './format.js';
import { foundRow } from './found-row.js';

const SEARCH_LIMIT = 10;
const PLAYLIST_LIMIT = 50;
/** Codes of a server that has no search. */
const NO_SEARCH = new Set(['not_found', 'invalid_command']);

/** Something with a scheme, or a host with a path, is a link. */
const LINK = /^(?:[a-z][a-z0-9+.-]*:\/\/\S+|media:.+)$/i;
const BARE_LINK = /^(?:[a-z0-9-]+\.)+[a-z]{2,}(?::\d+)?\/\S*$/i;
/** Addresses that most likely stand for many tracks. */
const PLAYLIST = /^https?:.*(?:[?&]list=|\/playlists?\/|\/playlist\?|\/sets\/|\/album\/|\/albums\/)/i;

export class Finder {
  #actions;
  #commands;
  #notices;
  #field = byId('source-url');
  #search = null;

  /** `actions` are those of `addActions`, `commands` the queue's. */
  constructor({ actions, commands, notices }) {
    this.#actions = actions;
    this.#commands = commands;
    this.#notices = notices;
    byId('source').onsubmit = (event) => {
      event.preventDefault();
      this.#submit(event.submitter?.value === 'queue');
    };
    this.#field.oninput = () => this.#label();
    byId('results-close').onclick = () => this.#close(true);
    this.#label();
  }

  focus() {
    this.#field.focus();
    this.#field.select();
  }

  #submit(isForQueue) {
    const text = this.#field.value.trim();
    if (!text) return;
    const url = linkIn(text);
    if (url === null) this.#find(text, SEARCH_LIMIT);
    else if (PLAYLIST.test(url)) this.#openPlaylist(url, isForQueue);
    else this.#use(url, isForQueue);
  }

  async #use(url, isForQueue) {
    const before = this.#field.value;
    const isDone = isForQueue ? await this.#commands.add([{ url }]) > 0
      : (await this.#commands.playNow({ url })).type !== 'error';
    // What failed stays, to be corrected.
    if (isDone && this.#field.value === before) {
      this.#field.value = '';
      this.#label();
    }
  }

  /** A link that turns out to be one track is used as one. */
  async #openPlaylist(url, isForQueue) {
    const found = await this.#find(url, PLAYLIST_LIMIT);
    if (!found || (!found.error && found.kind === 'playlist' && found.entries.length > 1)) return;
    if (found.error && !NO_SEARCH.has(found.error.code)) return;
    this.#close(false);
    this.#use(url, isForQueue);
  }

  /** Resolves with the answer, or with null where another search has taken its place. */
  async #find(query, limit) {
    this.#search?.abort();
    const search = (this.#search = new AbortController());
    this.#open(limit === SEARCH_LIMIT ? `Searching for “${query}”…` : 'Looking into the playlist…');
    const found = await resolveQuery(query, limit, search.signal).catch(() => null);
    if (this.#search !== search) return null;
    this.#search = null;
    byId('results').setAttribute('aria-busy', 'false');
    if (found.error) this.#showError(found.error);
    else this.#show(query, found);
    return found;
  }

  #open(title) {
    byId('results-shelf').hidden = false;
    document.querySelector('.shelves').classList.add('has-results');
    this.#entitle(title);
    byId('results').setAttribute('aria-busy', 'true');
    byId('results').replaceChildren();
    byId('results-add-all').hidden = true;
    byId('results-note').hidden = true;
  }

  #show(query, { kind, title, entries, truncated }) {
    this.#entitle(kind === 'search' ? `Found for “${query}”` : title ?? 'What the link holds');
    byId('results').replaceChildren(...entries.map((entry) => this.#row(entry)));
    const addAll = byId('results-add-all');
    addAll.hidden = kind !== 'playlist' || entries.length < 2;
    addAll.textContent = `Add ${truncated ? 'these' : 'all'} ${entries.length}`;
    addAll.onclick = () => this.#addAll(entries);
    if (entries.length === 0) this.#say('Nothing was found.', 'Try other words, or paste a link.');
    else if (truncated && kind === 'playlist') this.#say('', `These are its first ${entries.length}.`);
  }

  #showError(error) {
    const { what, advice, detail } = explain(error);
    this.#entitle('Search');
    if (NO_SEARCH.has(error.code)) this.#say('This server does not search.', 'Paste a link, or choose from the library.');
    else this.#say(what, advice, detail ? ` (${detail})` : '');
  }

  #row(entry) {
    const time = entry.live ? 'live' : entry.duration_ms ? timeLabel(entry.duration_ms) : '';
    return foundRow(entry, {
      name: trackName(entry),
      detail: [entry.artist ?? sourcePlace(entry.url), time].filter(Boolean).join(' · '),
      glyph: artworkTile(entry.thumbnail, 'small'),
      actions: this.#actions,
    });
  }

  async #addAll(entries) {
    const button = byId('results-add-all');
    // Not disabled meanwhile: it would lose the keyboard's focus.
    if (button.ariaBusy === 'true') return;
    button.ariaBusy = 'true';
    const count = await this.#commands.add(entries);
    button.ariaBusy = 'false';
    if (count) this.#notices.info(`${tracksLabel(count)} added to the queue.`);
  }

  #close(isByPerson) {
    this.#search?.abort();
    this.#search = null;
    byId('results-shelf').hidden = true;
    document.querySelector('.shelves').classList.remove('has-results');
    if (isByPerson) this.#field.focus();
  }

  #entitle(text) {
    setText(byId('results-heading'), text);
    announce(text);
  }

  #say(...words) {
    say(byId('results-note'), ...words);
  }

  /** The button says what it will do. */
  #label() {
    const text = this.#field.value.trim();
    const isSearch = text !== '' && linkIn(text) === null;
    setText(byId('source-play'), isSearch ? 'Search' : 'Play');
    byId('source-queue').hidden = isSearch;
  }
}

/** The address that a text is, or null where it is words. */
function linkIn(text) {
  if (LINK.test(text)) return text;
  return BARE_LINK.test(text) ? `https://${text}` : null;
}
