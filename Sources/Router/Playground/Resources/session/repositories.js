// Asks the Router about repositories and their music (docs/http-and-websocket.md, "Repositories").

import { getBytes, getJSON, postJSON } from './rest.js';

/** Those this page may hear: `{repositories: [{id, name, language, events, last_event_ms, key, listeners}], webhooks, polling}`. */
export const listRepositories = () => getJSON('api/v1/repositories');

/** One of those, with `bed`, `muted` and `activity`. */
export const getRepository = (id) => getJSON(pathOf(id));

/** Newest first, from the one before number `before` on: `{events, total}`. */
export const listEvents = (id, { before, limit }) =>
  getJSON(`${pathOf(id)}/events?${new URLSearchParams({ limit, ...(before ? { before } : {}) })}`);

/** The week before `until` (milliseconds since 1970) in a minute: its events and notes. */
export const getReplay = (id, until) => getJSON(`${pathOf(id)}/replay?until=${until}`);

/** Its sound: `{bytes}`, an Ogg Opus file. */
export const getReplaySound = (id, until) => getBytes(`${pathOf(id)}/replay.ogg?until=${until}`);

/** Has the server send itself a signed sample event: `{delivery}`. */
export const sendSample = (id, sample) => postJSON(`stream/${encodeURIComponent(id)}/test`, sample);

const pathOf = (id) => `api/v1/repositories/${encodeURIComponent(id)}`;
