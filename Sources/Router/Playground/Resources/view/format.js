// How times, names and sizes are written.

/** 83000 → "1:23"; unknown → "–:––". */
export function timeLabel(ms) {
  if (ms === null || ms === undefined || !Number.isFinite(ms)) return '–:––';
  const seconds = Math.max(0, Math.floor(ms / 1000));
  const [h, m, s] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
  const pad = (n) => String(n).padStart(2, '0');
  return h ? `${h}:${pad(m)}:${pad(s)}` : `${m}:${pad(s)}`;
}

/** A moment (ms since 1970) → "14:05", as people there write it. */
export const clockLabel = (ms) => new Date(ms).toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' });

/** For sums: 3_720_000 → "1 h 2 min"; 45_000 → "1 min". */
export function lengthLabel(ms) {
  const minutes = Math.max(1, Math.round(ms / 60_000));
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** 1 → "1 track"; 12345 → "12 345 tracks". */
export const tracksLabel = (count) => `${countLabel(count)} ${count === 1 ? 'track' : 'tracks'}`;

/** For screen readers: "1 minute 23 seconds". */
export function spokenTime(ms) {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  const parts = [
    [Math.floor(seconds / 3600), 'hour'], [Math.floor(seconds / 60) % 60, 'minute'], [seconds % 60, 'second'],
  ].filter(([count], i) => count || i === 2);
  return parts.map(([count, unit]) => `${count} ${unit}${count === 1 ? '' : 's'}`).join(' ');
}

/** 4.237 → "4.2 ms"; 1234 → "1.23 s". */
export function millisecondsLabel(ms) {
  if (Math.abs(ms) < 10) return `${ms.toFixed(1)} ms`;
  return Math.abs(ms) < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s`;
}

/** 2240877 → "2.2 MB". */
export function sizeLabel(bytes) {
  if (bytes === undefined) return '';
  if (bytes < 1e6) return `${Math.max(1, Math.round(bytes / 1e3))} kB`;
  return bytes < 1e9 ? `${(bytes / 1e6).toFixed(1)} MB` : `${(bytes / 1e9).toFixed(1)} GB`;
}

/** 12345 → "12 345". */
export const countLabel = (count) => String(count).replace(/\B(?=(\d{3})+$)/g, ' ');

/** A name to show for a file: "two-choirs.flac" → "Two choirs". */
export function fileTitle(name) {
  const stem = name.replace(/\.[A-Za-z0-9]{1,5}$/, '') || name;
  const spaced = stem.includes(' ') ? stem : stem.replace(/[-_]+/g, ' ').trim() || stem;
  return capitalized(spaced);
}

/** "two-choirs.flac" → "FLAC". */
export const fileKind = (name) => (/\.([A-Za-z0-9]{1,5})$/.exec(name)?.[1] ?? '').toUpperCase();

/** What plays where notes do, and no file. */
const SCORE = 'score:';

/** A name to show for a source when nothing better is known. */
function sourceTitle(url) {
  if (url === SCORE) return 'Generated music';
  const last = pathOf(url).split('/').filter(Boolean).at(-1);
  return last ? fileTitle(last) : hostOf(url) ?? url;
}

/** What to call a track of which perhaps nothing is known but its address. A title without a space is a file's name. */
export function trackName({ title, url }) {
  if (!title) return sourceTitle(url);
  return title.includes(' ') ? title : fileTitle(title);
}

/** Where a source is from: its folder, or its host. */
export function sourcePlace(url) {
  if (url === SCORE) return 'Composed by this server';
  const host = hostOf(url);
  if (host !== null) return host;
  const folder = pathOf(url).split('/').slice(0, -1).join(' / ');
  return folder || 'Library';
}

const capitalized = (text) => text.charAt(0).toUpperCase() + text.slice(1);

function hostOf(url) {
  if (!/^https?:/i.test(url)) return null;
  try {
    return new URL(url).host;
  } catch {
    return null;
  }
}

function pathOf(url) {
  const path = hostOf(url) === null ? url.replace(/^media:/, '') : new URL(url).pathname;
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}
