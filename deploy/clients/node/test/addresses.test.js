// Several Routers: which is tried next, and when a session waits. The Routers are stand-ins that let everyone in.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

import { WebSocketServer } from 'ws';

import { Session } from '../index.js';
import { Addresses } from '../lib/addresses.js';

const SESSION = JSON.stringify({
  type: 'session', session: { state: 'idle' }, queue: { total: 0, tracks: [] }, engine: { connected: true },
});

async function standIn(context) {
  const server = new WebSocketServer({ host: '127.0.0.1', port: 0 });
  await once(server, 'listening');
  const router = { url: `http://127.0.0.1:${server.address().port}`, count: 0, close: null };
  server.on('connection', (socket) => {
    router.count += 1;
    socket.send(SESSION);
    router.close = (code) => (code ? socket.close(code) : socket.terminate());
  });
  context.after(() => {
    for (const socket of server.clients) socket.terminate();
    server.close();
  });
  return router;
}

/** What waits between two attempts is not heard of again. */
function withEndlessWaits(context) {
  context.mock.method(Math, 'random', () => 10_000);
}

async function started(context, url) {
  const session = new Session(url, 'guild');
  context.after(() => session.close());
  await session.start();
  return session;
}

const connection = (session) => once(session, 'connection').then(([change]) => change);

for (const url of ['http://a, http://b ,http://c', ['http://a', 'http://b', 'http://c']]) {
  test(`all are tried before a wait: ${JSON.stringify(url)}`, () => {
    const addresses = new Addresses(url);
    for (let round = 0; round < 2; round += 1) {
      assert.equal(addresses.current, 'http://a');
      assert.deepEqual([addresses.advance(), addresses.advance(), addresses.advance()], [true, true, false]);
      addresses.beginRound();
    }
  });
}

test('there has to be one', () => {
  for (const url of ['', ' , ', []]) assert.throws(() => new Session(url, 'guild'), /no address/);
});

test('an address where nobody is does not matter', async (context) => {
  withEndlessWaits(context);
  const router = await standIn(context);
  const session = await started(context, ['http://127.0.0.1:1', router.url]);
  assert.equal(session.url, router.url);
});

for (const code of [null, 1001, 1012]) {
  test(`the next is tried at once, and after all of them it waits: ${code}`, async (context) => {
    withEndlessWaits(context);
    const [one, two] = [await standIn(context), await standIn(context)];
    const session = await started(context, `${one.url},${two.url}`);
    assert.equal(session.url, one.url);
    one.close(code);
    assert.match((await connection(session)).error.message, new RegExp(one.url));
    assert.ok((await connection(session)).connected);
    assert.equal(session.url, two.url);
    two.close(1001);
    assert.ok(!(await connection(session)).connected);
    await sleep(100);
    assert.deepEqual([one.count, two.count], [1, 1]);
  });
}

test('a session that has moved is followed at once; one that is sent on again at once waits', async (context) => {
  withEndlessWaits(context);
  const balancer = await standIn(context);
  const session = await started(context, balancer.url);
  await sleep(300);
  balancer.close(1012);
  assert.ok(!(await connection(session)).connected);
  assert.ok((await connection(session)).connected);
  balancer.close(1012);
  assert.ok(!(await connection(session)).connected);
  await sleep(100);
  assert.equal(balancer.count, 2);
});
