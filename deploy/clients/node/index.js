// Play and control a session of an Antiphon Router: its Opus packets, its state, and every command.

export { AntiphonError } from './lib/error.js';
export { AntiphonStream } from './lib/stream.js';
export { PacketBuffer, SILENCE } from './lib/packet-buffer.js';
export { Session } from './lib/session.js';
