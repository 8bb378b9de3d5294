// Tickets: single-use stand-ins for a token, so that none stands in an address. Used in page and worker.

/**
 * The address as it is, or, where there is a token, with a fresh ticket for `session` and `scope`. Rejects where
 * there is none to be had.
 *
 * `base` is the page's own address, since a worker has another.
 */
export async function withTicket(address, { token, session, scope, base }) {
  if (!token) return address;
  const response = await fetch(new URL('api/v1/tickets', base), {
    method: 'POST',
    headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
    body: JSON.stringify({ session, scope }),
  });
  if (!response.ok) throw new Error(`no ticket: status ${response.status}`);
  const url = new URL(address);
  url.searchParams.set('ticket', (await response.json()).ticket);
  return url.href;
}
