// The seed's router as a competent Node engineer would write it: one Map look-up a packet, one ws.send a client.
// usage: NODE_PATH=/usr/share/nodejs node node-router.js ENGINE-SOCKET PORT
'use strict';
const http = require('node:http');
const net = require('node:net');
const { WebSocketServer } = require('ws');

const SESSION_ID_BYTES = 24;
const HEADER_BYTES = 4 + SESSION_ID_BYTES;
// Two seconds of audio: a client that is further behind loses packets, as Antiphon's does.
const MAXIMUM_BUFFERED_BYTES = 32_768;
const BINARY = { binary: true };

/** Session ID, padded as on the wire → the sockets of its clients. */
const sessions = new Map();

const server = http.createServer((request, response) => response.end('node-router\n'));
const webSockets = new WebSocketServer({ server, path: '/ws', perMessageDeflate: false });
webSockets.on('connection', (webSocket, request) => {
  request.socket.setNoDelay(true);
  const id = new URL(request.url, 'http://localhost').searchParams.get('session').padEnd(SESSION_ID_BYTES);
  let clients = sessions.get(id);
  if (!clients) sessions.set(id, (clients = new Set()));
  clients.add(webSocket);
  webSocket.on('close', () => clients.delete(webSocket));
  webSocket.on('error', () => webSocket.terminate());
});

let rest = null;

function route(chunk) {
  let data = rest === null ? chunk : Buffer.concat([rest, chunk]);
  let at = 0;
  while (data.length - at >= HEADER_BYTES) {
    const end = at + 4 + data.readUInt32BE(at);
    if (end > data.length) break;
    const clients = sessions.get(data.latin1Slice(at + 4, at + HEADER_BYTES));
    if (clients !== undefined) {
      // A view, not a copy; ws puts its header in front with a gathered write.
      const audio = data.subarray(at + HEADER_BYTES, end);
      for (const client of clients) {
        if (client.bufferedAmount < MAXIMUM_BUFFERED_BYTES) client.send(audio, BINARY);
      }
    }
    at = end;
  }
  rest = at < data.length ? data.subarray(at) : null;
}

const engine = net.connect(process.argv[2]);
engine.on('data', route);
engine.on('error', (error) => {
  console.error(`engine: ${error.message}`);
  process.exit(1);
});
server.listen(Number(process.argv[3]), '127.0.0.1', () => console.log('listening'));
