// A bot as a person would write it with antiphon-client, driven by the tests: a line of JSON in, lines of JSON out.
//
// In place of Discord there is what @discordjs/voice's AudioPlayer does with a stream: it waits for 'readable', reads
// once every 20 ms by its own clock, and counts each null as a missed frame.

import { createInterface } from 'node:readline';

import { Session } from 'antiphon-client';

const FRAME_MS = 20;
/** After so many in a row, the AudioPlayer stops. */
const MOST_MISSED_FRAMES = 5;

const say = (message) => process.stdout.write(`${JSON.stringify(message)}\n`);

const [url, sessionID, options] = process.argv.slice(2);
const { tokens = [null], ...rest } = JSON.parse(options);
let tokensAsked = 0;
const token = tokens[0] === null ? null : async () => tokens[Math.min(tokensAsked++, tokens.length - 1)];
const session = new Session(url, sessionID, { ...rest, token });
session.on('connection', ({ connected, error }) => say({ connection: { connected, error } }));
session.on('event', (event) => say({ event }));

/** What of a session the tests ask for: methods by their names, and the state. */
async function answer({ method, parameters = [] }) {
  if (method === 'state') {
    const { connected, error, engineConnected, playback, current, positionMs, durationMs, volume, loop, queue, total } =
      session.state;
    return {
      connected, error, engineConnected, playback, current, positionMs, durationMs, volume, loop, queue, total, tokensAsked,
    };
  }
  if (method === 'hear') return hear();
  if (method === 'counters') return counters();
  return session[method](...parameters);
}

let counters;

function hear() {
  const stream = session.packets();
  counters = () => stream.counters;
  let missed = 0;
  let nextMs = performance.now();
  const step = () => {
    if (!stream.readable) {
      say({ ended: true });
      return;
    }
    const packet = stream.read();
    missed = packet ? 0 : missed + 1;
    if (missed >= MOST_MISSED_FRAMES) throw new Error('the AudioPlayer would have stopped');
    if (packet) say({ frame: packet.toString('hex') });
    nextMs += FRAME_MS;
    setTimeout(step, nextMs - performance.now());
  };
  stream.once('readable', () => {
    nextMs = performance.now();
    step();
  });
}

createInterface({ input: process.stdin }).on('line', async (line) => {
  const request = JSON.parse(line);
  try {
    say({ id: request.id, result: (await answer(request)) ?? null });
  } catch (error) {
    say({ id: request.id, requestError: { code: error.code, message: error.message, hint: error.hint, name: error.name } });
  }
});
