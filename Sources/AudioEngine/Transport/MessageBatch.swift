import WireProtocol

/// The messages of one round of the pacer, in order: encoded once, sent to every connection.
package struct MessageBatch {
  struct Message {
    /// Whose packet it is; nil for an event.
    var audioOf: SessionID?
    /// The session an event is about.
    var eventOf: SessionID?
    /// The one connection it is for; nil for all.
    var recipient: RouterConnection.ID?
    /// In `bytes`.
    var range: Range<Int>
  }

  package private(set) var bytes: [UInt8] = []
  private(set) var messages: [Message] = []
  private(set) var hasRecipients = false

  package init() {
    // Room for 200 packets a round: a round allocates nothing.
    bytes.reserveCapacity(128 * 1024)
    messages.reserveCapacity(256)
  }

  var isEmpty: Bool { messages.isEmpty }

  package mutating func append(audio: UnsafeRawBufferPointer, of sessionID: SessionID) {
    let start = bytes.count
    withUnsafeTemporaryAllocation(byteCount: WireLimits.packetHeaderByteCount, alignment: 8) { header in
      AudioPacketHeader.write(sessionID: sessionID, audioByteCount: audio.count, into: header)
      bytes.append(contentsOf: header)
    }
    bytes.append(contentsOf: audio)
    messages.append(Message(audioOf: sessionID, range: start..<bytes.count))
  }

  package mutating func append(_ event: EngineEvent, to recipient: RouterConnection.ID? = nil) {
    append(line: event.encodedLine(), of: event.sessionID, to: recipient)
  }

  /// Appends an event that is a line already.
  mutating func append(line: [UInt8], of sessionID: SessionID? = nil, to recipient: RouterConnection.ID?) {
    let start = bytes.count
    bytes.append(contentsOf: line)
    messages.append(Message(eventOf: sessionID, recipient: recipient, range: start..<bytes.count))
    if recipient != nil { hasRecipients = true }
  }

  package mutating func removeAll() {
    bytes.removeAll(keepingCapacity: true)
    messages.removeAll(keepingCapacity: true)
    hasRecipients = false
  }
}
