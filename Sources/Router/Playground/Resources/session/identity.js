// Which session this tab controls. Every tab is its own user: it keeps a random ID for as long as it lives,
// reloads included. `?session=ID` joins another session instead.

const STORAGE_KEY = 'antiphon-session';
const CHANNEL = 'antiphon-tabs';
/** Tabs of the same browser answer within a few milliseconds; nobody notices this wait. */
const ANSWER_WAIT_MS = 80;
const VALID_ID = /^[A-Za-z0-9._:-]{1,24}$/;

/** Finds the session: `{id, shared, rejected}`; `rejected` is an ID in the URL that cannot be one. */
export async function findSession() {
  const asked = new URLSearchParams(location.search).get('session');
  if (asked !== null && VALID_ID.test(asked)) return { id: asked, shared: true, rejected: null };
  return { id: await ownID(), shared: false, rejected: asked };
}

/** The address that joins the session from anywhere. */
export function shareURL(id) {
  const url = new URL(location.pathname, location.origin);
  url.searchParams.set('session', id);
  return url.href;
}

async function ownID() {
  const kept = recall();
  let id = kept ?? randomID();
  // A duplicated tab starts with a copy of the other's sessionStorage.
  if (kept && (await isTaken(kept))) id = randomID();
  remember(id);
  answerForOthers(id);
  return id;
}

function randomID() {
  const digits = crypto.getRandomValues(new Uint32Array(10));
  return `tab-${Array.from(digits, (digit) => (digit % 36).toString(36)).join('')}`;
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
