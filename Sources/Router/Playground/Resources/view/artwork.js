// Covers: pictures of local files from our own server, thumbnails from the sites they are of, and a mark in
// their place where there is none.

import { authorization, currentToken } from '../session/token.js';
import { icon, make } from './elements.js';

/** Pictures fetched with a token and kept in memory, by their address: the oldest is forgotten beyond this. */
const MAX_FETCHED = 100;
const fetched = new Map();

/** What a picture's address is to the page; null for one that is not shown. */
function artworkURL(address) {
  if (!address) return null;
  // A path on the server; the page may lie below its root.
  if (address.startsWith('/artwork?')) return new URL(address.slice(1), location.href).href;
  return /^https:\/\//i.test(address) ? address : null;
}

/** A square with a picture in it, or with the mark where there is none or it cannot be loaded. */
export function artworkTile(address, className = '') {
  const tile = make('span', { className: `artwork ${className}`, 'aria-hidden': 'true' }, icon('note'));
  const url = artworkURL(address);
  if (!url) return tile;
  const image = make('img', {
    alt: '', decoding: 'async', loading: 'lazy', referrerPolicy: 'no-referrer',
    draggable: false,
    onload: () => tile.classList.add('has-picture'),
    onerror: () => image.remove(),
  });
  // After the handlers, or a picture in the cache could be there before them.
  if (needsToken(url)) fetchPicture(url).then((local) => (image.src = local), () => image.remove());
  else image.src = url;
  tile.append(image);
  return tile;
}

/** An address that the browser itself can load, for what is shown outside of the page; resolves with null for none. */
export async function loadableURL(address) {
  const url = artworkURL(address);
  if (!url || !needsToken(url)) return url;
  return fetchPicture(url).catch(() => null);
}

/** Our own server's pictures, where it knows people by tokens: an <img> cannot send one. */
const needsToken = (url) => currentToken() !== null && url.startsWith(location.origin);

function fetchPicture(url) {
  const before = fetched.get(url);
  if (before) return before;
  const picture = load(url);
  fetched.set(url, picture);
  picture.catch(() => fetched.delete(url));
  if (fetched.size > MAX_FETCHED) forgetOldest();
  return picture;
}

async function load(url) {
  const response = await fetch(url, { headers: authorization() });
  if (!response.ok) throw new Error(`no picture: status ${response.status}`);
  return URL.createObjectURL(await response.blob());
}

function forgetOldest() {
  const [url, picture] = fetched.entries().next().value;
  fetched.delete(url);
  picture.then(URL.revokeObjectURL, () => {});
}
