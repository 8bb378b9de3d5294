import type { EventEmitter } from 'node:events';
import type { Readable } from 'node:stream';

/** A JSON object of the Router's, as docs/http-and-websocket.md has it. */
export interface AntiphonEvent {
  type: string;
  request_id?: string;
  [field: string]: any;
}

/** A refusal by the Router or the engine, or by this package. */
export class AntiphonError extends Error {
  constructor(code: string, message: string, hint?: string | null);
  /** The Router's (docs/wire-protocol.md), or `connection_lost`, `timeout`, `closed`, `token_unavailable`. */
  readonly code: string;
  /** What to do about it, where that is known. */
  readonly hint: string | null;
  toJSON(): { code: string; message: string; hint?: string };
}

/** A track as it is added to a queue. */
export interface NewTrack {
  url: string;
  title?: string;
  artist?: string;
  duration_ms?: number;
  artwork?: string;
  requested_by?: string;
}

/** A track of the queue. */
export interface Entry extends NewTrack {
  /** Unique in the session, and never used again. */
  id: string;
}

/** What plays now, or is being opened. Fields that are not known are absent. */
export interface Track extends NewTrack {
  id?: string;
  album?: string;
  live?: boolean;
  /** Of a radio station: its name. */
  station?: string;
  genre?: string;
  chapters?: { start_ms: number; title: string }[];
  codec?: string;
  passthrough?: boolean;
}

export type Playback = 'idle' | 'extracting' | 'streaming' | 'paused';
export type LoopMode = 'off' | 'track' | 'queue';

/** Always current; only the session writes it. */
export interface SessionState {
  readonly connected: boolean;
  readonly error: AntiphonError | null;
  readonly engineConnected: boolean;
  readonly playback: Playback;
  readonly buffering: boolean;
  readonly current: Track | null;
  readonly positionMs: number;
  readonly durationMs: number | null;
  readonly volume: number;
  readonly loop: LoopMode;
  /** The first 100 that wait. */
  readonly queue: readonly Entry[];
  readonly total: number;
  readonly historyTotal: number;
  readonly bitrateKbps: number | null;
  readonly isSounding: boolean;
}

/**
 * `received` is `played`, `dropped` and what waits; `starved` and `silent` are frames of silence, `repeated` packets that
 * were taken once more.
 */
export interface Counters {
  received: number;
  played: number;
  starved: number;
  silent: number;
  dropped: number;
  repeated: number;
}

/** The jitter buffer: `target` packets (5) before sound begins, at most `maximum` (20). */
export class PacketBuffer {
  constructor(target?: number, maximum?: number, clock?: () => number);
  readonly target: number;
  readonly maximum: number;
  readonly length: number;
  readonly counters: Counters;
  put(packet: Buffer): void;
  take(): Buffer;
  expect(sound: boolean): void;
}

/** A 20 ms Opus packet without sound. */
export const SILENCE: Buffer;

/** An object-mode Readable that has an Opus packet, or silence, whenever it is read. Made by `session.packets()`. */
export class AntiphonStream extends Readable {
  constructor(buffer?: PacketBuffer);
  readonly counters: Counters;
  put(packet: Buffer): void;
  expect(sound: boolean): void;
  finish(): void;
}

export interface SessionOptions {
  /** A token, or what gives one: asked again before each connection. */
  token?: string | (() => string | Promise<string>) | null;
  /** How long `start` and the commands wait for a connection and for the engine; 15,000 where not given. */
  patienceMs?: number;
}

export interface PlayOptions {
  start_ms?: number;
  end_ms?: number;
  /** Linear gain, 0 to 10. */
  volume?: number;
  loop?: boolean;
  paused?: boolean;
  /** 8 to 510. */
  bitrate_kbps?: number;
}

/** Where what is added goes: `next` before all that wait, or an index in them. */
export interface Place {
  next?: boolean;
  position?: number;
}

export interface Session {
  on(event: 'event', listener: (event: AntiphonEvent) => void): this;
  on(event: 'connection', listener: (change: { connected: boolean; error: AntiphonError | null }) => void): this;
  on(event: 'packet', listener: (packet: Buffer) => void): this;
  on(event: 'close', listener: () => void): this;
  on(type: string, listener: (event: AntiphonEvent) => void): this;
}

/** One session of a Router, over a connection that comes back by itself. */
export class Session extends EventEmitter {
  /** `url`: the Router's, or an array of several Routers', or those in one text with commas between them. */
  constructor(url: string | URL | readonly (string | URL)[], sessionID: string, options?: SessionOptions);
  readonly sessionID: string;
  /** Of the Router that the session is connected to, or tried last. */
  readonly url: string;
  readonly state: SessionState;
  readonly isClosed: boolean;
  start(): Promise<void>;
  close(): void;
  packets(): AntiphonStream;
  command(type: string, fields?: Record<string, unknown>): Promise<AntiphonEvent>;
  play(url: string, options?: PlayOptions): Promise<AntiphonEvent>;
  pause(): Promise<AntiphonEvent>;
  resume(): Promise<AntiphonEvent>;
  stop(): Promise<AntiphonEvent>;
  seek(positionMs: number): Promise<AntiphonEvent>;
  volume(level: number): Promise<AntiphonEvent>;
  quality(bitrateKbps: number | null): Promise<AntiphonEvent>;
  status(): Promise<AntiphonEvent>;
  why(): Promise<AntiphonEvent>;
  queue(offset?: number, limit?: number): Promise<AntiphonEvent>;
  queueAdd(what: (NewTrack | { query: string } | { tracks: NewTrack[] }) & Place): Promise<AntiphonEvent>;
  queueRemove(id: string): Promise<AntiphonEvent>;
  queueMove(id: string, position: number): Promise<AntiphonEvent>;
  queueShuffle(): Promise<AntiphonEvent>;
  queueClear(): Promise<AntiphonEvent>;
  queueLoop(mode: LoopMode): Promise<AntiphonEvent>;
  skip(): Promise<AntiphonEvent>;
  skipTo(id: string): Promise<AntiphonEvent>;
  previous(): Promise<AntiphonEvent>;
  history(limit?: number): Promise<AntiphonEvent>;
  resolve(query: string, limit?: number): Promise<AntiphonEvent>;
  media(path?: string): Promise<AntiphonEvent>;
}
