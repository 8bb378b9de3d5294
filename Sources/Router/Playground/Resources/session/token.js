// The token by which the server knows this page, where it asks for one. It is sent in headers alone; what a
// browser cannot send headers with (a WebSocket, an <audio> element) is given a ticket that works once.

const STORAGE_KEY = 'antiphon.token';

let token = recall();

export const currentToken = () => token;

/** The headers of a request to our own server, with the token in use or another. */
export const authorization = (other = token) => (other ? { Authorization: `Bearer ${other}` } : {});

/** Uses a token from now on: for as long as this tab lives, or, `forever`, until it is forgotten. */
export function keepToken(value, { forever }) {
  token = value;
  store(() => sessionStorage.removeItem(STORAGE_KEY));
  store(() => localStorage.removeItem(STORAGE_KEY));
  store(() => (forever ? localStorage : sessionStorage).setItem(STORAGE_KEY, value));
}

function recall() {
  return store(() => sessionStorage.getItem(STORAGE_KEY) ?? localStorage.getItem(STORAGE_KEY)) ?? null;
}

/** Storage can be forbidden; the token is then kept by this page alone. */
function store(action) {
  try {
    return action();
  } catch {
    return null;
  }
}
