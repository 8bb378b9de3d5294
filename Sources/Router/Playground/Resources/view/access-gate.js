// The way in: asks for a token until there is one that may hear the session, and for another when it holds no more.

import { allows, findAccess, matches } from '../session/access.js';
import { requestErrors } from '../session/rest.js';
import { currentToken } from '../session/token.js';
import { byId } from './elements.js';
import { SignIn } from './sign-in.js';

/** Close codes that say that the server does not want this page: a policy, or no token that holds. */
const REFUSED = new Set([1008, 4401]);

export class AccessGate {
  #signIn = new SignIn();
  #isAsking = false;
  /** `{player, session, canControl}` once somebody is in. */
  #visit = null;

  /** Resolves with `{access, session}`; `find(patterns)` resolves with the session, which says whether it `isForbidden`. */
  async enter(find) {
    let access = await findAccess();
    if (!access.isKnown) access = await this.#signIn.ask('This server plays for people who have a token.');
    for (;;) {
      const session = await find(access.sessions);
      if (!session.isForbidden && allows(access, 'listen')) return { access, session };
      access = await this.#signIn.ask(`Your token is not for the session “${session.id}”.`);
    }
  }

  /** From now on a token that is no longer accepted is asked for anew. */
  watch(visit) {
    this.#visit = visit;
    requestErrors.addEventListener('unauthorized', () => this.renew());
    document.body.classList.toggle('listen-only', !visit.canControl);
    byId('listen-only').hidden = visit.canControl;
    byId('use-another-token').onclick = async () => {
      await this.#signIn.ask('With another token this page may do more.', { isVoluntary: true });
      location.reload();
    };
  }

  /** The token is not accepted any more: the page stays as it is, and goes on with a new one. */
  async renew() {
    if (this.#isAsking) return;
    this.#isAsking = true;
    const renewed = await this.#signIn.ask('Your token has expired, or the server does not accept it any more.');
    this.#isAsking = false;
    const { player, session, canControl } = this.#visit;
    const isSame = matches(renewed.sessions, session.id) && allows(renewed, 'control') === canControl;
    if (isSame) player.useToken(currentToken());
    else location.reload();
  }

  /** A connection that was refused does not say why. */
  async examine(link) {
    const mayBeRefused = !link.connected && (REFUSED.has(link.code) || !link.wasOpen);
    if (mayBeRefused && !this.#isAsking && !(await findAccess()).isKnown) this.renew();
  }
}
