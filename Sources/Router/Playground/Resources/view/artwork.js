// Covers: pictures of local files from our own server, thumbnails from the sites they are of, and a mark in
// their place where there is none.

import { icon, make } from './elements.js';

/** What a picture's address is to the page; null for one that is not shown. */
export function artworkURL(address) {
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
    onload: () => tile.classList.add('has-picture'),
    onerror: () => image.remove(),
  });
  // After the handlers, or a picture in the cache could be there before them.
  image.src = url;
  tile.append(image);
  return tile;
}
