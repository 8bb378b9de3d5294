// The page of repositories: all of them, or, with `?id=ID`, one that is heard and seen.

import { allows, matches } from '../session/access.js';
import { AccessGate } from '../view/access-gate.js';
import { byId, say } from '../view/elements.js';
import { Notices } from '../view/notices.js';
import { showConnect } from './connect.js';
import { EXAMPLE_PIECE } from './example-piece.js';
import { openRepository } from './repository.js';
import { pageOf, showRepositories } from './repository-list.js';
import { Sky } from './sky.js';

const VALID_ID = /^[A-Za-z0-9._:-]{1,24}$/;
/** GitHub's own example, and what its ID is there. */
const EXAMPLE = { id: '1296269', repository: 'octocat/Hello-World' };
const TWINKLE_MS = 9000;

const notices = new Notices();
const gate = new AccessGate();
const asked = new URLSearchParams(location.search).get('id');
addEventListener('popstate', () => location.reload());

if (asked !== null && VALID_ID.test(asked)) open(asked);
else showOverview();

/** Shows one repository, once there is a token that may hear it. */
async function open(id) {
  const { access, session } = await gate.enter(async (patterns) => ({ id, isForbidden: !matches(patterns, id) }));
  byId('overview').hidden = true;
  byId('repository').hidden = false;
  byId('all-repositories').hidden = false;
  return openRepository({ session, canControl: allows(access, 'control'), gate, notices });
}

async function showOverview() {
  const { access } = await gate.enter(async () => ({ id: null, isForbidden: false }));
  const canControl = allows(access, 'control') && matches(access.sessions, EXAMPLE.id);
  if (asked !== null) notices.error({ code: 'invalid_session_id', message: `“${asked}” is no repository’s ID.` });
  byId('overview').hidden = false;
  byId('overview-connect').append(byId('connect'));
  byId('example').hidden = !canControl;
  byId('example-open').onclick = () => openExample();
  showSky();
  const answer = await showRepositories();
  const { error, repositories } = answer;
  showConnect(notices, answer);
  if (!error && repositories.length === 0) {
    say(byId('repositories-note'), 'No repository has sung here yet.',
      canControl ? 'Hear the example, or connect one of yours.' : 'They are listed here as soon as something happens in one.');
  }
}

/** In this document, so that the press lets the browser sound. */
async function openExample() {
  byId('panel-connect').append(byId('connect'));
  history.pushState(null, '', pageOf(EXAMPLE.id));
  const page = await open(EXAMPLE.id);
  await page.connected;
  page.tryIt.send({ event: 'push', title: 'Say hello to the world', repository: EXAMPLE.repository });
}

/** A piece that nobody hears, going round. */
function showSky() {
  const sky = new Sky(byId('overview-sky'), { loudness: () => 0.05 });
  const isStill = matchMedia('(prefers-reduced-motion: reduce)').matches;
  sky.add(EXAMPLE_PIECE, '', () => (isStill ? TWINKLE_MS : performance.now() % (TWINKLE_MS * 1.6)));
}
