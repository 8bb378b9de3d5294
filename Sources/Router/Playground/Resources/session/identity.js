// Which session this tab controls. Every tab is its own user: it keeps a random ID for as long as it lives,
// reloads included. `?session=ID` joins another session instead. A token that is for certain sessions alone
// gives the tab one of those.

import { matches } from './access.js';

const STORAGE_KEY = 'antiphon-session';
const CHANNEL = 'antiphon-tabs';
/** Tabs of the same browser answer within a few milliseconds; nobody notices this wait. */
const ANSWER_WAIT_MS = 80;
const MAX_ID = 24;
const VALID_ID = /^[A-Za-z0-9._:-]{1,24}$/;

/**
 * Finds the session: `{id, shared, rejected, isForbidden}`; `rejected` is an ID in the URL that cannot be one.
 * `patterns` say which sessions are allowed.
 */
export async function findSession(patterns) {
  const asked = new URLSearchParams(location.search).get('session');
  const isValid = asked !== null && VALID_ID.test(asked);
  if (isValid) return { id: asked, shared: true, rejected: null, isForbidden: !matches(patterns, asked) };
  const named = patterns.find((pattern) => VALID_ID.test(pattern));
  const isOwn = patterns.some((pattern) => pattern.includes('*'));
  const id = isOwn || !named ? await ownID(patterns) : named;
  return { id, shared: !isOwn, rejected: asked, isForbidden: !matches(patterns, id) };
}

/** The address that joins the session from anywhere. */
export function shareURL(id) {
  const url = new URL(location.pathname, location.origin);
  url.searchParams.set('session', id);
  return url.href;
}

async function ownID(patterns) {
  const kept = recall();
  const isUsable = kept && matches(patterns, kept);
  let id = isUsable ? kept : randomID(patterns);
  // A duplicated tab starts with a copy of the other's sessionStorage.
  if (isUsable && (await isTaken(kept))) id = randomID(patterns);
  remember(id);
  answerForOthers(id);
  return id;
}

/** `tab-` and ten characters, or, where that is not allowed, a pattern with such characters for its star. */
function randomID(patterns) {
  const digits = crypto.getRandomValues(new Uint32Array(10));
  const random = Array.from(digits, (digit) => (digit % 36).toString(36)).join('');
  const usual = `tab-${random}`;
  if (matches(patterns, usual)) return usual;
  const pattern = patterns.find((each) => each.includes('*')) ?? '*';
  const room = MAX_ID - pattern.replaceAll('*', '').length;
  return pattern.replace('*', random.slice(0, Math.max(1, room))).replaceAll('*', '');
}

function isTaken(id) {
  if (!('BroadcastChannel' in self)) return false;
  return new Promise((resolve) => {
    const channel = new BroadcastChannel(CHANNEL);
    const finish = (taken) => {
      channel.close();
      resolve(taken);
    };
    channel.onmessage = ({ data }) => {
      if (data.taken === id) finish(true);
    };
    channel.postMessage({ isFree: id });
    setTimeout(finish, ANSWER_WAIT_MS, false);
  });
}

function answerForOthers(id) {
  if (!('BroadcastChannel' in self)) return;
  const channel = new BroadcastChannel(CHANNEL);
  channel.onmessage = ({ data }) => {
    if (data.isFree === id) channel.postMessage({ taken: id });
  };
}

// Storage can be forbidden; the tab then has a new session after a reload, and nothing else changes.
function recall() {
  try {
    const id = sessionStorage.getItem(STORAGE_KEY);
    return id && VALID_ID.test(id) ? id : null;
  } catch {
    return null;
  }
}

function remember(id) {
  try {
    sessionStorage.setItem(STORAGE_KEY, id);
  } catch {
    return;
  }
}
