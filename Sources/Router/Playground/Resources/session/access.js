// What the server allows this page to do.

import { getJSON } from './rest.js';

const EVERYTHING = { isKnown: true, scopes: ['admin'], sessions: ['*'] };
/** Each scope holds those before it. */
const SCOPES = ['listen', 'control', 'admin'];

/**
 * Resolves with `{isKnown, scopes, sessions}`; `isKnown` is false where the server wants a token, or another one.
 * A server without permissions, or one that does not answer now, refuses nothing: commands say so themselves.
 * `token` is one to be tried in place of the one in use.
 */
export async function findAccess(token) {
  const found = await getJSON('api/v1/me', { token });
  if (found.error?.status === 401) return { isKnown: false, scopes: [], sessions: [] };
  if (found.error) return EVERYTHING;
  return { isKnown: true, scopes: found.scopes ?? [], sessions: found.sessions ?? ['*'] };
}

/** Whether `access` holds a scope, by itself or by a higher one. */
export const allows = ({ scopes }, scope) => scopes.some((held) => SCOPES.indexOf(held) >= SCOPES.indexOf(scope));

/** Whether one of the patterns, in which `*` stands for any characters, is the ID's. */
export const matches = (patterns, id) => patterns.some((pattern) =>
  new RegExp(`^${pattern.split('*').map((part) => part.replace(/[.\\+?^${}()|[\]]/g, '\\$&')).join('.*')}$`).test(id));
