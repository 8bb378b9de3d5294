import DequeModule
import WireProtocol

/// What one connection has not taken yet. While the connection keeps up it is empty and costs one `send`.
///
/// Past two seconds of audio its oldest audio is dropped and counted by session; `dropped` goes before the next
/// message of that session. Events are never dropped. Answers have bytes of their own: while many wait, no further
/// commands are read, and one that does not fit is replaced by a short error. Who asks for too much costs neither
/// the connection nor others' audio.
package struct RouterOutbox {
  fileprivate struct Pending {
    enum Kind {
      case audio
      case event
      case answer
      case outOfBand
      /// Takes the place of an answer.
      case overflowAnswer
      /// Says how many packets of its session are missing here.
      case dropped(count: Int)
    }

    var kind: Kind
    var sessionID: SessionID?
    var bytes: [UInt8]
    var enqueuedNanoseconds: UInt64

    static func dropped(_ count: Int, of id: SessionID, enqueuedNanoseconds: UInt64) -> Pending {
      Pending(
        kind: .dropped(count: count), sessionID: id,
        bytes: EngineEvent(.dropped(count: count), sessionID: id).encodedLine(),
        enqueuedNanoseconds: enqueuedNanoseconds)
    }
  }

  /// What came of a flush.
  package enum Result: Equatable {
    case drained
    /// The connection takes no more now.
    case blocked
    /// The connection is gone, or its events alone passed the limit.
    case failed
  }

  package static let audioLimitNanoseconds: UInt64 = 2_000_000_000
  package static let eventByteLimit = 16 << 20
  /// Bytes of answers in order, and as many of out-of-band ones: some sixty of the longest listings, which is more
  /// than a router asks for at once that reads what it gets.
  package static let answerByteLimit = 4 << 20
  /// Overflow answers have some 300 bytes each, less than the answers that they replace.
  package static let overflowAnswerCountLimit = 10_000
  /// Answers that wait before no further commands are read: a full socket more, so that the audio behind them is not
  /// kept for long.
  private static let patientAnswerByteCount = WireLimits.socketBufferByteCount
  private static let patientErrorCount = 256
  /// Old audio is looked for once in this time: a look goes through the whole queue.
  private static let dropIntervalNanoseconds: UInt64 = 100_000_000
  /// Bytes offered to the socket in one call.
  private static let chunkByteCount = 64 * 1024
  /// The `overloaded` error that is sent in place of an answer that does not fit.
  private static let overflowAnswer = AnswerLine(
    EngineEvent(
      .error(
        ErrorReport(
          .overloaded, "the answer does not fit: \(answerByteLimit) bytes of answers wait for this router",
          hint: "ask again later, and for less at once", stage: .send))))

  /// What is left of a message of which a part has gone out.
  private var begun: ArraySlice<UInt8> = []
  /// Audio, events and answers, in order.
  private var queue: Deque<Pending> = []
  /// Answers that concern no session: they go out when nothing else waits.
  private var outOfBandAnswers: Deque<Pending> = []
  /// Whole messages put together for one call; kept for its capacity.
  private var chunk: [UInt8] = []
  /// Dropped with nothing of the session behind them yet.
  private var dropped: [SessionID: Int] = [:]
  private var eventByteCount = 0
  private var answerByteCount = 0
  private var outOfBandByteCount = 0
  private var overflowAnswerCount = 0
  private var queuedByteCount = 0
  private var nextDropNanoseconds: UInt64 = 0
  /// Packets dropped since the last call of `takeDroppedCount`.
  private var droppedCount = 0
  /// Answers dropped since then without even an error in their place.
  private var lostAnswerCount = 0

  package init() {}

  package var isEmpty: Bool { begun.isEmpty && queue.isEmpty && outOfBandAnswers.isEmpty }
  /// Bytes of everything that waits.
  package var byteCount: Int { begun.count + queuedByteCount }

  /// Whether the router is to read its answers before it is listened to again.
  package var isBehind: Bool {
    answerByteCount > Self.patientAnswerByteCount || overflowAnswerCount > Self.patientErrorCount
  }

  package mutating func takeDroppedCount() -> Int {
    defer { droppedCount = 0 }
    return droppedCount
  }

  package mutating func takeLostAnswerCount() -> Int {
    defer { lostAnswerCount = 0 }
    return lostAnswerCount
  }

  /// Sends a batch, or keeps what does not go out.
  ///
  /// - Parameter write: hands bytes to the socket without blocking; how many it took, or nil when the
  ///   connection is gone.
  package mutating func send(
    _ batch: MessageBatch, to recipient: RouterConnection.ID, nowNanoseconds: UInt64,
    write: (UnsafeRawBufferPointer) -> Int?
  ) -> Result {
    var first = 0
    if isEmpty, dropped.isEmpty, !batch.hasRecipients {
      guard let taken = batch.bytes.withUnsafeBytes(write) else { return .failed }
      guard taken < batch.bytes.count else { return .drained }
      first = batch.messages.firstIndex { $0.range.upperBound > taken }!
      if taken > batch.messages[first].range.lowerBound {
        // A copy: the batch keeps its memory for the next round.
        begun = Array(batch.bytes[taken..<batch.messages[first].range.upperBound])[...]
        first += 1
      }
    }
    for message in batch.messages[first...] where message.recipient == nil || message.recipient == recipient {
      if !hasRoom(for: message) {
        // What the connection takes right now needs no room.
        guard flush(write: write) != .failed else { return .failed }
      }
      if hasRoom(for: message) {
        enqueue(Pending(message, of: batch, enqueuedNanoseconds: nowNanoseconds))
      } else {
        refuse(message, nowNanoseconds)
      }
    }
    dropOld(nowNanoseconds)
    guard eventByteCount <= Self.eventByteLimit else { return .failed }
    return flush(write: write)
  }

  /// Sends what is kept.
  package mutating func flush(write: (UnsafeRawBufferPointer) -> Int?) -> Result {
    while !isEmpty {
      fillChunk()
      guard let taken = chunk.withUnsafeBytes(write) else { return .failed }
      remove(byteCount: taken)
      if taken < chunk.count { return .blocked }
    }
    return .drained
  }

  private func hasRoom(for message: MessageBatch.Message) -> Bool {
    switch message.kind {
    case .audio, .event: true
    case .answer: answerByteCount + message.range.count <= Self.answerByteLimit
    case .outOfBand: outOfBandByteCount + message.range.count <= Self.answerByteLimit
    }
  }

  private mutating func refuse(_ message: MessageBatch.Message, _ now: UInt64) {
    guard overflowAnswerCount < Self.overflowAnswerCountLimit else {
      lostAnswerCount += 1
      return
    }
    var bytes: [UInt8] = []
    Self.overflowAnswer.write(to: &bytes, sessionID: message.sessionID, requestID: message.requestID)
    enqueue(
      Pending(kind: .overflowAnswer, sessionID: message.sessionID, bytes: bytes, enqueuedNanoseconds: now))
  }

  private mutating func enqueue(_ message: Pending) {
    if let id = message.sessionID, let count = dropped.removeValue(forKey: id) {
      keep(.dropped(count, of: id, enqueuedNanoseconds: message.enqueuedNanoseconds))
    }
    keep(message)
  }

  private mutating func keep(_ message: Pending) {
    count(message, by: 1)
    if case .outOfBand = message.kind { outOfBandAnswers.append(message) } else { queue.append(message) }
  }

  private mutating func count(_ message: Pending, by sign: Int) {
    let length = sign * message.bytes.count
    queuedByteCount += length
    switch message.kind {
    case .audio: break
    case .event, .dropped: eventByteCount += length
    case .answer: answerByteCount += length
    case .outOfBand: outOfBandByteCount += length
    case .overflowAnswer: overflowAnswerCount += sign
    }
  }

  /// Leaves out old audio; the count stands where the audio stood, before the session's next message.
  private mutating func dropOld(_ now: UInt64) {
    guard now >= nextDropNanoseconds else { return }
    nextDropNanoseconds = now + Self.dropIntervalNanoseconds
    let cutoff = now > Self.audioLimitNanoseconds ? now - Self.audioLimitNanoseconds : 0
    let old = queue
    queue = []
    // What was dropped last stands behind all that waits of its session.
    let last = dropped
    dropped = [:]
    for message in old {
      count(message, by: -1)
      switch (message.kind, message.sessionID) {
      case (.audio, let id?) where message.enqueuedNanoseconds < cutoff:
        dropped[id, default: 0] += 1
        droppedCount += 1
      // Merged with what is missing behind it.
      case (.dropped(let count), let id?): dropped[id, default: 0] += count
      default: enqueue(message)
      }
    }
    dropped.merge(last, uniquingKeysWith: +)
  }

  /// Puts the next messages together.
  private mutating func fillChunk() {
    chunk.removeAll(keepingCapacity: true)
    chunk += begun
    for waiting in [queue, outOfBandAnswers] {
      for message in waiting {
        guard chunk.count < Self.chunkByteCount else { return }
        chunk += message.bytes
      }
    }
  }

  /// Forgets what has gone out, in the order it was put together in.
  private mutating func remove(byteCount: Int) {
    var left = byteCount - begun.count
    begun = begun.dropFirst(byteCount)
    while left > 0, let message = queue.popFirst() ?? outOfBandAnswers.popFirst() {
      count(message, by: -1)
      begun = message.bytes.dropFirst(left)
      left -= message.bytes.count
    }
  }
}

extension RouterOutbox.Pending {
  fileprivate init(_ message: MessageBatch.Message, of batch: MessageBatch, enqueuedNanoseconds: UInt64) {
    let kind: Kind =
      switch message.kind {
      case .audio: .audio
      case .event: .event
      case .answer: .answer
      case .outOfBand: .outOfBand
      }
    self.init(
      kind: kind, sessionID: message.sessionID, bytes: Array(batch.bytes[message.range]),
      enqueuedNanoseconds: enqueuedNanoseconds)
  }
}
