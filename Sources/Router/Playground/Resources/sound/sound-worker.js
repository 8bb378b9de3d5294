// The worker that owns the session's connection and the Opus decoder. Here a busy page or a tab in the
// background disturbs nothing: packets go from the socket through the decoder straight to the AudioWorklet,
// by a port of their own.

import { Connection } from '../session/connection.js';
import { isPause } from '../session/snapshot.js';
import { withTicket } from '../session/tickets.js';
import { forEachRecord } from '../session/timed-records.js';
import { OpusDecoder } from './opus-decoder.js';
import { PacketOrder } from './packet-order.js';
import { dominantFrequency } from './pitch.js';
import { RecentSound } from './recent-sound.js';

/** Packets a message: half the messages for the Router and for this page. The first packet of two comes 20 ms late, for
 *  which the jitter buffer's smallest target leaves room; three would make it larger. */
const FRAMES_PER_MESSAGE = 2;
/** How much of the sound just played comes on joining: enough to start at once, little enough to be fresh. */
const JOIN_BUFFER_MS = 120;
/** After a reconnect as much as may have been missed; what was not is recognised and dropped. */
const REJOIN_BUFFER_MS = 1000;
/** Packets that come this soon after connecting are a burst and say nothing about jitter. */
const BURST_MS = 400;
/** Opus for 20 ms of silence: the decoder fades into it and out of it. */
const SILENT_PACKET = Uint8Array.of(0xf8, 0xff, 0xfe);
const PACKET_MS = 20;
const STATS_INTERVAL_MS = 200;

/** Events after which the old sound must not be heard any more. */
const isCut = ({ type, reason }) =>
  type === 'seeked' || (type === 'ended' && reason !== 'finished');

/** Shown as an error of the server's would be. */
const brokenMessage = {
  type: 'error', code: 'bad_message', message: 'The server sent sound this page does not understand.',
};

let connection;
/** What tickets are asked for with: see `withTicket`. */
let pass;
let worklet;
/** Counts the cuts, so that the page knows which reports are of the sound before. */
let epoch = 0;
let connectedAtMs = 0;
let hasBeenConnected = false;

const order = new PacketOrder();
const recent = new RecentSound();
const decoder = new OpusDecoder({
  onSound({ left, right, about }) {
    recent.add(left, right, about.positionMs);
    worklet.postMessage({ type: 'sound', left, right, ...about }, [left.buffer, right.buffer]);
  },
  // The only mark is `drain`: no sound follows, and what was heard before says nothing about what comes.
  onMark(mark) {
    recent.clear();
    worklet.postMessage(mark);
  },
  onFailure: (error) => postMessage({ type: 'decoder-failed', message: error.message }),
});

function takePackets(buffer) {
  const isBurst = performance.now() - connectedAtMs < BURST_MS;
  const isWhole = forEachRecord(buffer, (record) => {
    const concealed = order.take(record);
    if (concealed < 0) return;
    for (let before = concealed; before > 0; before--) {
      decoder.decode(SILENT_PACKET, {
        dueMs: record.dueMs - before * PACKET_MS,
        positionMs: Math.max(0, record.positionMs - before * PACKET_MS),
        isBurst: true,
      });
    }
    decoder.decode(record.packet, { dueMs: record.dueMs, positionMs: record.positionMs, isBurst });
  });
  if (!isWhole) takeEvent(brokenMessage);
}

function takeEvent(event) {
  if (isCut(event)) {
    epoch += 1;
    decoder.reset();
    recent.clear();
    worklet.postMessage({ type: 'flush', epoch });
  } else if (isPause(event)) {
    decoder.mark({ type: 'drain' });
  }
  postMessage({ type: 'event', event, epoch });
}

function takeLink(link) {
  if (link.connected) {
    connectedAtMs = performance.now();
    hasBeenConnected = true;
  } else {
    decoder.mark({ type: 'drain' });
  }
  postMessage({ type: 'link', link });
}

function start(message) {
  worklet = message.port;
  pass = message.pass;
  const makeURL = () => {
    const address = new URL(message.url);
    address.searchParams.set('frames', FRAMES_PER_MESSAGE);
    address.searchParams.set('buffer_ms', hasBeenConnected ? REJOIN_BUFFER_MS : JOIN_BUFFER_MS);
    return withTicket(address.href, pass);
  };
  connection = new Connection(makeURL, 'antiphon.timed.v1', {
    onBinary: takePackets, onText: takeEvent, onLink: takeLink,
  });
  setInterval(() => postMessage({
    type: 'stats',
    framesReceived: order.received,
    lost: order.lost,
    engineOffsetMs: connection.clock.offsetMs,
    roundTripMs: connection.clock.roundTripMs,
  }), STATS_INTERVAL_MS);
}

/** What the page can ask; each is answered with the same `id`. */
const questions = {
  send: ({ command }) => connection.send(command),
  dominantFrequency({ seconds }) {
    const samples = recent.last(seconds);
    return samples && dominantFrequency(samples, 48_000);
  },
  recentSound({ seconds }) {
    const samples = recent.last(seconds);
    return samples && { samples, endMs: recent.endMs };
  },
};

function useToken(token) {
  pass.token = token;
  connection.retryNow();
}

onmessage = async ({ data }) => {
  if (data.type === 'start') start(data);
  else if (data.type === 'token') useToken(data.token);
  else postMessage({ type: 'answer', id: data.id, answer: await questions[data.type](data) });
};
