// Where the Routers of one Antiphon are, each of which serves every session.

/** One address or more: the one in use, and which of the others have not been tried since the last wait. */
export class Addresses {
  #all;
  #index = 0;
  #untried;

  /** `url` is one address, several with commas between them, or an array. Throws where there is none. */
  constructor(url) {
    const given = Array.isArray(url) ? url.map(String) : String(url).split(',');
    this.#all = given.map((address) => address.trim()).filter(Boolean);
    if (this.#all.length === 0) throw new RangeError('there is no address of a Router; one is http://127.0.0.1:8080');
    this.beginRound();
  }

  toString() {
    return this.#all.join(', ');
  }

  get current() {
    return this.#all[this.#index];
  }

  /** Goes to the next address. Whether it is to be tried at once: it was not since the last wait. */
  advance() {
    this.#index = (this.#index + 1) % this.#all.length;
    this.#untried -= 1;
    return this.#untried >= 0;
  }

  /** After a wait, or a connection that lasted: each of the others is worth a try at once. */
  beginRound() {
    this.#untried = this.#all.length - 1;
  }
}
