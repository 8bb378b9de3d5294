// The Readable as @discordjs/voice reads it: its AudioPlayer waits for 'readable', then calls read() every 20 ms, and
// counts each null as a missed frame.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';

import { AntiphonStream, SILENCE } from '../index.js';

const packet = (number) => Buffer.from([0xfc, number >> 8, number & 255]);

test('it is readable before anything has come, and always has a packet', async () => {
  const stream = new AntiphonStream();
  await once(stream, 'readable');
  for (let frame = 0; frame < 1_000; frame += 1) assert.equal(stream.read(), SILENCE);
  assert.ok(stream.readable && !stream.readableEnded);
  stream.destroy();
});

test('packets come in order, one for each read, and none is read ahead of its time', async () => {
  const stream = new AntiphonStream();
  await once(stream, 'readable');
  const heard = [];
  for (let number = 0; number < 500; number += 1) {
    stream.put(packet(number));
    heard.push(stream.read());
    assert.ok(stream.readableLength <= 1);
  }
  const sound = heard.filter((each) => each !== SILENCE);
  assert.equal(heard.length - sound.length, 5, 'four to fill the buffer, and the one that was read ahead');
  sound.forEach((each, number) => assert.deepEqual(each, packet(number)));
});

test('it ends when the session does, after what waited', async () => {
  const stream = new AntiphonStream();
  await once(stream, 'readable');
  for (let number = 0; number < 3; number += 1) stream.put(packet(number));
  stream.finish();
  const heard = [];
  for (let each = stream.read(); each !== null; each = stream.read()) heard.push(each);
  assert.deepEqual(heard, [SILENCE, packet(0), packet(1), packet(2)]);
  await once(stream, 'close');
  assert.ok(!stream.readable && stream.readableEnded);
});

test('who destroys it is left alone', async () => {
  const stream = new AntiphonStream();
  stream.destroy();
  await once(stream, 'close');
  stream.put(packet(1));
  assert.equal(stream.read(), null);
});
