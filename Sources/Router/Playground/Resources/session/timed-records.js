// Reads the records of a binary message of the subprotocol antiphon.timed.v1
// (docs/http-and-websocket.md). Big-endian, one or more records a message.

const HEADER_BYTES = 18;

/**
 * Calls `visit` for every record of a message, in order.
 * Returns false when the message ends in the middle of a record.
 */
export function forEachRecord(buffer, visit) {
  const view = new DataView(buffer);
  let at = 0;
  while (at + HEADER_BYTES <= view.byteLength) {
    const length = view.getUint16(at + 16);
    const end = at + HEADER_BYTES + length;
    if (end > view.byteLength) return false;
    visit({
      sequence: view.getUint32(at),
      // A double holds milliseconds to well under a microsecond for as long as machines run.
      dueMs: (view.getUint32(at + 4) * 2 ** 32 + view.getUint32(at + 8)) / 1e6,
      positionMs: view.getUint32(at + 12),
      packet: new Uint8Array(buffer, at + HEADER_BYTES, length),
    });
    at = end;
  }
  return at === view.byteLength;
}
