// The commands that wait for an answer, over as many connections as it takes.

import { AntiphonError } from './error.js';

/** How many commands may wait for an answer. */
const COMMAND_LIMIT = 256;

/** The Router itself gives up after 45 s. */
const ANSWER_LIMIT_MS = 60_000;

/** Commands by their request ID. Each has a time in which it fails: another one with a connection and without. */
export class Outstanding {
  #patienceMs;
  #commands = new Map();
  #isConnected = false;

  constructor(patienceMs) {
    this.#patienceMs = patienceMs;
  }

  /**
   * Waits for the answer to a command that is about to be sent, or will be when there is a connection. `eventCount` is
   * how many events there have been, for what changes something. Resolves with `{ event, isLate }`.
   */
  add(requestID, text, eventCount) {
    return new Promise((resolve, reject) => {
      if (this.#commands.size >= COMMAND_LIMIT) {
        const message = `${COMMAND_LIMIT} commands wait for their answers`;
        reject(new AntiphonError('overloaded', message, 'wait for some of them'));
        return;
      }
      const command = { requestID, text, eventCount, resolve, reject, timer: null };
      this.#commands.set(requestID, command);
      this.#setTimer(command);
    });
  }

  /**
   * Whether an event is the answer to what was asked before other events came. It then says how things were, not how
   * they are: an answer with an idempotency key comes when it is on disk, and to a repeated command the first one's
   * comes again.
   */
  isLate(event, eventCount) {
    return this.#commands.get(event.request_id)?.eventCount < eventCount;
  }

  answer(event, isLate) {
    const command = this.#commands.get(event.request_id);
    if (!command) return;
    this.#remove(command);
    command.resolve({ event, isLate });
  }

  /** From now on commands wait for the Router; gives what is to be sent again, in the order it was asked. */
  connectionFound() {
    this.#isConnected = true;
    const waiting = [...this.#commands.values()];
    for (const command of waiting) this.#setTimer(command);
    return waiting.map(({ text }) => text);
  }

  /** From now on commands wait for a connection. */
  connectionLost() {
    if (!this.#isConnected) return;
    this.#isConnected = false;
    for (const command of this.#commands.values()) this.#setTimer(command);
  }

  fail(error) {
    for (const command of [...this.#commands.values()]) this.#fail(command, error);
  }

  #setTimer(command) {
    clearTimeout(command.timer);
    const [limitMs, error] = this.#isConnected
      ? [ANSWER_LIMIT_MS, new AntiphonError('timeout', `the Router has not answered in ${ANSWER_LIMIT_MS / 1000} s`)]
      : [this.#patienceMs, lost(`no connection to the Router for ${this.#patienceMs / 1000} s`)];
    command.timer = setTimeout(() => this.#fail(command, error), limitMs);
  }

  #fail(command, error) {
    this.#remove(command);
    command.reject(error);
  }

  #remove(command) {
    clearTimeout(command.timer);
    this.#commands.delete(command.requestID);
  }
}

const lost = (message) => new AntiphonError('connection_lost', message, 'it is tried on; ask again later');
