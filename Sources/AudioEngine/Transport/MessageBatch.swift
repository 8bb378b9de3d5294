import WireProtocol

/// The messages of one round of the pacer, in order: encoded once, sent to every connection.
package struct MessageBatch {
  struct Message {
    enum Kind {
      case audio
      /// What happened: never left out.
      case event
      /// Answers one command, in order with what happened.
      case answer
      /// Answers one command that concerns no session: audio goes before it.
      case outOfBand
    }

    var kind: Kind
    /// The session of the packet, or that the message is about.
    var sessionID: SessionID?
    /// The one connection it is for; nil for all.
    var recipient: RouterConnection.ID?
    /// The request ID of the command that is answered.
    var requestID: String?
    /// In `bytes`.
    var range: Range<Int>

    func isFor(_ connection: RouterConnection.ID) -> Bool { recipient == nil || recipient == connection }
  }

  package private(set) var bytes: [UInt8] = []
  private(set) var messages: [Message] = []
  /// Whether some are for one connection alone.
  private(set) var hasRecipients = false
  /// Whether some of those are answers, for which an outbox may have no room.
  private(set) var hasAnswers = false

  package init() {
    // Room for 200 packets a round: a round allocates nothing.
    bytes.reserveCapacity(128 * 1024)
    messages.reserveCapacity(256)
  }

  var isEmpty: Bool { messages.isEmpty }

  /// Appends a packet.
  ///
  /// - Parameter recipient: the one connection it is for; nil for all.
  package mutating func append(
    audio: UnsafeRawBufferPointer, of sessionID: SessionID, to recipient: RouterConnection.ID? = nil
  ) {
    let start = bytes.count
    write(audio, of: sessionID)
    messages.append(
      Message(kind: .audio, sessionID: sessionID, recipient: recipient, range: start..<bytes.count))
    if recipient != nil { hasRecipients = true }
  }

  private mutating func write(_ audio: UnsafeRawBufferPointer, of sessionID: SessionID) {
    withUnsafeTemporaryAllocation(byteCount: WireLimits.packetHeaderByteCount, alignment: 8) { header in
      AudioPacketHeader.write(sessionID: sessionID, audioByteCount: audio.count, into: header)
      bytes.append(contentsOf: header)
    }
    bytes.append(contentsOf: audio)
  }

  /// Appends what happened.
  ///
  /// - Parameter recipient: the one connection it is told to; nil for all.
  package mutating func append(_ event: EngineEvent, to recipient: RouterConnection.ID? = nil) {
    append(.event, of: event.sessionID, to: recipient) { $0 += event.encodedLine() }
  }

  /// Appends an answer that has its place among the events.
  package mutating func append(answer event: EngineEvent, to recipient: RouterConnection.ID) {
    append(.answer, of: event.sessionID, to: recipient, requestID: event.requestID) {
      $0 += event.encodedLine()
    }
  }

  /// Appends an answer and the packets that it tells of. They are one message: all of them go out, or none, and nothing
  /// comes between them.
  package mutating func append(
    burst event: EngineEvent, of sessionID: SessionID, to recipient: RouterConnection.ID,
    packets forEachPacket: ((UnsafeRawBufferPointer) -> Void) -> Void
  ) {
    let start = bytes.count
    bytes += event.encodedLine()
    forEachPacket { write($0, of: sessionID) }
    messages.append(
      Message(
        kind: .answer, sessionID: sessionID, recipient: recipient, requestID: event.requestID,
        range: start..<bytes.count))
    (hasRecipients, hasAnswers) = (true, true)
  }

  /// Appends an answer that has no place among the events.
  package mutating func append(
    outOfBand line: AnswerLine, to recipient: RouterConnection.ID, requestID: String?
  ) {
    append(.outOfBand, to: recipient, requestID: requestID) { line.write(to: &$0, requestID: requestID) }
  }

  /// Appends that the schedule was restarted. Written by hand, as every session says it in the same moment: what
  /// `EngineEvent` would take for 10,000 of them is longer than the stall that is told.
  package mutating func append(rebased anchor: EngineEvent.Anchor, of sessionID: SessionID) {
    append(.event, of: sessionID) { bytes in
      bytes.append(contentsOf: "{\"type\":\"rebased\",\"session_id\":\"".utf8)
      bytes.append(contentsOf: sessionID.description.utf8)
      bytes.append(contentsOf: "\",\"position_ms\":".utf8)
      bytes.append(contentsOf: String(anchor.positionMilliseconds).utf8)
      bytes.append(contentsOf: ",\"due_ns\":".utf8)
      bytes.append(contentsOf: String(anchor.dueNanoseconds).utf8)
      bytes.append(contentsOf: "}\n".utf8)
    }
  }

  private mutating func append(
    _ kind: Message.Kind, of sessionID: SessionID? = nil, to recipient: RouterConnection.ID? = nil,
    requestID: String? = nil, _ write: (inout [UInt8]) -> Void
  ) {
    let start = bytes.count
    write(&bytes)
    messages.append(
      Message(
        kind: kind, sessionID: sessionID, recipient: recipient, requestID: requestID,
        range: start..<bytes.count))
    if recipient != nil { hasRecipients = true }
    switch kind {
    case .audio, .event: break
    case .answer, .outOfBand: hasAnswers = true
    }
  }

  package mutating func removeAll() {
    bytes.removeAll(keepingCapacity: true)
    messages.removeAll(keepingCapacity: true)
    (hasRecipients, hasAnswers) = (false, false)
  }
}
