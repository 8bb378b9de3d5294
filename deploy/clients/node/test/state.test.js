// The Node client's own part of a session's state; Tests/Vectors has what it shares with the others.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { SessionState } from '../lib/state.js';

const TRACK = { url: 'media:a.opus', title: 'A', duration_ms: 60_000, codec: 'opus' };

/** One that plays at 10 s. */
function playing() {
  const clock = { ms: 5_000 };
  const state = new SessionState(() => clock.ms);
  const session = { session_id: 's', state: 'streaming', position_ms: 10_000, volume: 1, ...TRACK };
  const queue = { current: { id: '1', url: TRACK.url, requested_by: 'ann' }, tracks: [], offset: 0, total: 0, loop: 'off' };
  state.apply({ type: 'session', session, queue, engine: { connected: true } });
  return { state, clock };
}

test('the position stops at the end, and goes round in a loop', () => {
  const { state, clock } = playing();
  clock.ms += 100_000;
  assert.equal(state.positionMs, 60_000);
  state.apply({ type: 'ready', ...TRACK, loop: true, volume: 1 });
  state.apply({ type: 'playing', position_ms: 0 });
  clock.ms += 61_500;
  assert.equal(state.positionMs, 1_500);
});

test('what plays is what someone said of it and what its file says', () => {
  assert.deepEqual(playing().state.current, { ...TRACK, id: '1', requested_by: 'ann' });
});
