// The picture of a session, by a clock that is set.

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

test('the position moves with the clock, up to the end', () => {
  const { state, clock } = playing();
  clock.ms += 2_500;
  assert.equal(state.positionMs, 12_500);
  clock.ms += 100_000;
  assert.equal(state.positionMs, 60_000);
});

test('it stands still in a pause, while buffering and without an engine', () => {
  for (const event of [
    { type: 'paused', position_ms: 11_000 },
    { type: 'buffering', position_ms: 11_000 },
    { type: 'engine', engine: { connected: false } },
  ]) {
    const { state, clock } = playing();
    clock.ms += 1_000;
    state.apply(event);
    clock.ms += 9_000;
    assert.equal(state.positionMs, 11_000, event.type);
  }
});

test('a loop goes round', () => {
  const { state, clock } = playing();
  state.apply({ type: 'ready', ...TRACK, loop: true, volume: 1 });
  state.apply({ type: 'playing', position_ms: 0 });
  clock.ms += 61_500;
  assert.equal(state.positionMs, 1_500);
});

test('what plays is what someone said of it and what its file says', () => {
  const { state } = playing();
  assert.deepEqual(state.current, { ...TRACK, id: '1', requested_by: 'ann' });
  state.apply({ type: 'queue', queue: { current: { id: '8', url: 'media:b.opus' }, total: 0 } });
  assert.deepEqual(state.current, { id: '8', url: 'media:b.opus' });
  state.apply({ type: 'ended', reason: 'stopped' });
  state.apply({ type: 'queue', queue: { tracks: [], offset: 0, total: 0 } });
  assert.deepEqual([state.current, state.playback, state.positionMs, state.durationMs], [null, 'idle', 0, null]);
});

test('a queue without its tracks is not an empty one', () => {
  const { state } = playing();
  const tracks = ['1', '2', '3'].map((id) => ({ id, url: 'media:a.opus' }));
  state.apply({ type: 'queue', queue: { tracks, offset: 0, total: 3 } });
  for (const partial of [{ tracks: [tracks[0]], offset: 0 }, { tracks: [tracks[1]], offset: 1 }, { tracks: [] }, {}]) {
    state.apply({ type: 'queue', queue: { ...partial, total: 3 } });
    assert.deepEqual(state.queue, tracks);
  }
});
