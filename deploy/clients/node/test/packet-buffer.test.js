// The jitter buffer, by a clock that is computed: nothing here waits.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { MAXIMUM_PACKETS, PacketBuffer, SILENCE, TARGET_PACKETS, WINDOW_PACKETS } from '../lib/packet-buffer.js';

const PACKET_MS = 20;

/** A buffer with a clock of its own, which `run` sets. */
class Simulated extends PacketBuffer {
  constructor() {
    super(TARGET_PACKETS, MAXIMUM_PACKETS, () => this.nowMs);
    this.nowMs = 0;
  }
}

/** Puts packet n in at the nth arrival and takes one every period; gives the numbers and times of what was taken. */
function run(buffer, arrivals, { untilMs, periodMs = PACKET_MS }) {
  const played = [];
  let silences = 0;
  let nextPut = 0;
  for (let tick = 0; 10 + tick * periodMs < untilMs; tick += 1) {
    const nowMs = 10 + tick * periodMs;
    for (; nextPut < arrivals.length && arrivals[nextPut] <= nowMs; nextPut += 1) {
      buffer.nowMs = arrivals[nextPut];
      buffer.put(nextPut);
    }
    buffer.nowMs = nowMs;
    assert.ok(buffer.length <= MAXIMUM_PACKETS);
    const taken = buffer.take();
    if (taken === SILENCE) silences += 1;
    else played.push({ number: taken, delayMs: nowMs - taken * PACKET_MS });
  }
  const { received, dropped, starved, silent, repeated, ...counters } = buffer.counters;
  assert.equal(received, counters.played + dropped + buffer.length);
  assert.equal(counters.played + repeated, played.length);
  assert.equal(starved + silent, silences);
  const steps = played.slice(1).map(({ number }, index) => number - played[index].number);
  assert.ok(steps.every((step) => step >= 0));
  assert.equal(steps.filter((step) => step === 0).length, repeated);
  return { played, steps, maximumMs: played.reduce((most, { delayMs }) => Math.max(most, delayMs), 0) };
}

const steady = (seconds) => Array.from({ length: (seconds * 1000) / PACKET_MS }, (_, number) => number * PACKET_MS);

test('a steady stream is played whole, with 100 ms of delay', () => {
  const buffer = new Simulated();
  const { played, maximumMs } = run(buffer, steady(600), { untilMs: 600_000 });
  assert.equal(maximumMs, 90);
  assert.equal(played.at(-1).number, played.length - 1);
  assert.deepEqual([buffer.counters.silent, buffer.counters.starved, buffer.counters.dropped], [4, 0, 0]);
});

for (const partsPerMillion of [100, 2_000]) {
  test(`a taker that is ${partsPerMillion} ppm slow does not fall behind`, () => {
    const buffer = new Simulated();
    const periodMs = PACKET_MS * (1 + partsPerMillion / 1e6);
    const { played, maximumMs } = run(buffer, steady(3_600), { untilMs: 3_599_000, periodMs });
    assert.ok(maximumMs <= (TARGET_PACKETS + 3) * PACKET_MS, `${maximumMs} ms`);
    assert.equal(buffer.counters.starved, 0);
    const drift = (180_000 * partsPerMillion) / 1e6;
    assert.ok(Math.abs(buffer.counters.dropped - drift) <= 3, `${buffer.counters.dropped} dropped, ${drift} of drift`);
    const holes = played.filter(({ number }, index) => index > 0 && number !== played[index - 1].number + 1);
    assert.ok(holes.length > 0);
    holes.slice(1).forEach(({ number }, index) => assert.ok(number - holes[index].number >= WINDOW_PACKETS));
  });

  test(`a taker that is ${partsPerMillion} ppm fast loses nothing`, () => {
    const buffer = new Simulated();
    const periodMs = PACKET_MS * (1 - partsPerMillion / 1e6);
    const { played, steps } = run(buffer, steady(3_600), { untilMs: 3_600_000, periodMs });
    const { dropped, repeated, starved } = buffer.counters;
    assert.equal(played.at(-1).number, played.length - 1 - repeated);
    assert.equal(dropped, 0);
    assert.ok(steps.every((step) => step <= 1));
    assert.ok(Math.abs(repeated + starved - (180_000 * partsPerMillion) / 1e6) <= TARGET_PACKETS + 1);
    // Quartz is never off by more than 1,000 ppm: clocks that are run empty sometimes.
    assert.equal(starved > 0, partsPerMillion > 1_000);
  });
}

/** Packets that are up to 60 ms late, and never overtake another, as TCP keeps the order. */
function jittery(seconds) {
  let [last, seed] = [0, 1];
  return steady(seconds).map((at) => {
    seed = (seed * 48_271) % 2_147_483_647;
    last = Math.max(last, at + (seed / 2_147_483_647) * 60);
    return last;
  });
}

for (const [partsPerMillion, counter] of [[-100, 'repeated'], [0, null], [100, 'dropped']]) {
  test(`three hours of jitter at ${partsPerMillion} ppm cost one packet in 200 s`, () => {
    const buffer = new Simulated();
    const periodMs = PACKET_MS * (1 + partsPerMillion / 1e6);
    const { steps } = run(buffer, jittery(10_800), { untilMs: 10_799_000, periodMs });
    const { starved, ...counters } = buffer.counters;
    assert.equal(starved, 0);
    for (const each of ['repeated', 'dropped']) {
      const expected = each === counter ? 54 : 0;
      assert.ok(Math.abs(counters[each] - expected) <= (expected && 1), `${each} ${counters[each]}`);
    }
    const corrections = steps.flatMap((step, index) => (step === 1 ? [] : [index]));
    assert.ok(corrections.every((index, place) => place === 0 || index - corrections[place - 1] >= 5_000));
    assert.ok(steps.every((step) => step <= 2));
  });
}

test('a burst after a stall leaves no delay', () => {
  const buffer = new Simulated();
  const arrivals = steady(60).map((at) => (at >= 10_000 && at < 10_300 ? 10_300 : at));
  const { played } = run(buffer, arrivals, { untilMs: 59_000 });
  const settled = played.filter(({ number }) => number * PACKET_MS > 25_000);
  assert.ok(Math.max(...settled.map(({ delayMs }) => delayMs)) <= (TARGET_PACKETS + 2) * PACKET_MS);
});

test('a pause is no starving and adds no delay', () => {
  const buffer = new Simulated();
  for (let round = 0; round < 200; round += 1) {
    for (let number = 0; number < 20; number += 1) {
      buffer.put(number);
      buffer.take();
    }
    buffer.expect(false);
    while (buffer.take() !== SILENCE);
    assert.equal(buffer.length, 0);
    buffer.expect(true);
  }
  assert.deepEqual([buffer.counters.starved, buffer.counters.dropped], [0, 0]);
});

test('running empty is starving until it is full again', () => {
  const buffer = new Simulated();
  for (let number = 0; number < TARGET_PACKETS; number += 1) buffer.put(number);
  for (let number = 0; number < TARGET_PACKETS; number += 1) assert.equal(buffer.take(), number);
  assert.equal(buffer.take(), SILENCE);
  for (let number = 0; number < TARGET_PACKETS - 1; number += 1) buffer.put(number);
  assert.equal(buffer.take(), SILENCE);
  buffer.put(4);
  assert.equal(buffer.take(), 0);
  assert.equal(buffer.counters.starved, 2);
});

test('who begins to take late hears the newest', () => {
  const buffer = new Simulated();
  for (let number = 0; number < 10_000; number += 1) buffer.put(number);
  assert.equal(buffer.length, TARGET_PACKETS);
  assert.equal(buffer.take(), 10_000 - TARGET_PACKETS);
});

test('a target that cannot be is refused', () => {
  assert.throws(() => new PacketBuffer(0), RangeError);
  assert.throws(() => new PacketBuffer(6, 5), RangeError);
});
