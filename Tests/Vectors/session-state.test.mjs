// The shared vectors, against what the page and the Node client make of a session's messages.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

import { SessionState } from '../../deploy/clients/node/lib/state.js';

const read = (path) => readFileSync(new URL(path, import.meta.url), 'utf8');

// The page's files lie in no package, so that Node would not take this one for a module.
const page = read('../../Sources/Router/Playground/Resources/session/snapshot.js');
const { Snapshot, isPause } = await import(`data:text/javascript,${encodeURIComponent(page)}`);

const { vectors } = JSON.parse(read('session-state.json'));

for (const { name, steps } of vectors) {
  test(`the page: ${name}`, () => {
    const snapshot = new Snapshot();
    run(steps, {
      apply: (message) => {
        snapshot.apply(message);
        return isPause(message) ? { sounding: false } : {};
      },
      look: ({ state, after_ms }) => ({
        ...pageState(snapshot), ...('position_ms' in state && !after_ms ? { position_ms: snapshot.positionMs } : {}),
      }),
    });
  });

  test(`the Node client: ${name}`, () => {
    let nowMs = 0;
    const client = new SessionState(() => nowMs);
    run(steps, {
      pass: (ms) => { nowMs += ms; },
      apply: (message) => client.apply(message),
      look: () => clientState(client),
    });
  });
}

/** Goes through a vector: `look` gives what is known, and all of that must be as the vector says. */
function run(steps, { pass = () => {}, apply, look }) {
  let expected = {};
  for (const [number, step] of steps.entries()) {
    pass(step.after_ms ?? 0);
    const told = step.message ? apply(step.message) : {};
    expected = { ...expected, ...step.state };
    expected.current = step.state.current ?? expected.track;
    const seen = { ...look(step), ...told };
    const wanted = Object.fromEntries(Object.keys(seen).map((key) => [key, expected[key]]));
    assert.deepEqual(seen, wanted, `step ${number}: ${JSON.stringify(step)}`);
  }
}

function pageState(snapshot) {
  const { state, buffering, url, title, artist, album, artwork, live, station, genre, chapters, codec, passthrough, queue } = snapshot;
  return {
    state, buffering, volume: snapshot.volume, engine_connected: snapshot.engine.connected,
    // While idle the page goes on showing what was played last.
    track: state === 'idle' ? null
      : known({ url, title, artist, album, artwork, live, station, genre, chapters, codec, passthrough, duration_ms: snapshot.durationMs }),
    queue: {
      current: queue.current, tracks: queue.tracks, total: queue.total, history_total: queue.historyTotal,
      loop: queue.loop, bitrate_kbps: queue.bitrateKbps,
    },
  };
}

function clientState(client) {
  const { id, requested_by: _, ...current } = client.current ?? {};
  return {
    state: client.playback, buffering: client.buffering, sounding: client.isSounding, volume: client.volume,
    engine_connected: client.engineConnected, position_ms: client.positionMs,
    current: client.current && known(current),
    queue: {
      current: id ? { id, url: current.url } : null, tracks: client.queue, total: client.total, history_total: client.historyTotal,
      loop: client.loop, bitrate_kbps: client.bitrateKbps,
    },
  };
}

/** Without what is unknown, false or empty. */
const known = (track) =>
  Object.fromEntries(Object.entries(track).filter(([, value]) => value && (!Array.isArray(value) || value.length > 0)));
