/**
 * A requestError by the Router or the engine, or by this package.
 *
 * `code` is one of the Router's (docs/wire-protocol.md, "Error codes"), or one of this package's own: `connection_lost`,
 * `timeout`, `closed`, `token_unavailable`.
 */
export class AntiphonError extends Error {
  constructor(code, message, hint = null) {
    super(message);
    this.name = 'AntiphonError';
    this.code = code;
    this.hint = hint;
  }

  /** From the JSON object that the Router refuses with. */
  static from({ code = 'internal', message = '', hint = null }) {
    return new AntiphonError(code, message, hint);
  }

  /** As the Router says it. */
  toJSON() {
    return { code: this.code, message: this.message, ...(this.hint === null ? {} : { hint: this.hint }) };
  }
}
