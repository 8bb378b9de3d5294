import WireProtocol

/// What one round of the pacer has for a connection that has not taken it: its messages one behind the other, as they
/// go out.
struct OutboxRound {
  struct Entry {
    enum Kind {
      case audio
      case event
      case answer
      /// Takes the place of an answer.
      case overflowAnswer
      /// Says how many packets of its session are missing here.
      case dropped
    }

    let kind: Kind
    let sessionID: SessionID?
    let byteCount: Int
  }

  let enqueuedNanoseconds: UInt64
  private(set) var bytes: [UInt8] = []
  private(set) var entries: [Entry] = []
  /// The first entry that has not gone out, and where it begins in `bytes`.
  private(set) var nextEntry = 0
  private(set) var nextByte = 0

  init(enqueuedNanoseconds: UInt64) { self.enqueuedNanoseconds = enqueuedNanoseconds }

  var isEmpty: Bool { nextEntry == entries.count }

  mutating func append(_ message: some Sequence<UInt8>, _ kind: Entry.Kind, of id: SessionID?) {
    let start = bytes.count
    bytes.append(contentsOf: message)
    entries.append(Entry(kind: kind, sessionID: id, byteCount: bytes.count - start))
  }

  /// The first entry has gone out.
  mutating func removeFirst() {
    nextByte += entries[nextEntry].byteCount
    nextEntry += 1
  }

  /// What waits, entry by entry.
  func forEachEntry(_ body: (Entry, ArraySlice<UInt8>) -> Void) {
    var start = nextByte
    for entry in entries[nextEntry...] {
      body(entry, bytes[start..<start + entry.byteCount])
      start += entry.byteCount
    }
  }
}
