import DequeModule
import WireProtocol

/// What one connection has not taken yet. While the connection keeps up it is empty and costs one `send`.
///
/// Past two seconds of audio its oldest audio is dropped and counted by session; `dropped` goes before the next
/// message of that session. Events are never dropped. Answers have bytes of their own: while many wait, no further
/// commands are read, and one that does not fit is replaced by a short error. Who asks for too much costs neither
/// the connection nor others' audio.
package struct RouterOutbox {
  /// What is offered to the socket of one message.
  private struct Piece {
    let byteCount: Int
    /// The count of lost packets that is told before the message.
    var dropped: (id: SessionID, count: Int)?
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
  /// Audio, events and answers, in order. The first `trimmedCount` are past the limit, and hold no audio any more.
  private var rounds: Deque<OutboxRound> = []
  private var trimmedCount = 0
  /// Answers that concern no session: they go out when nothing else waits.
  private var outOfBandAnswers: Deque<[UInt8]> = []
  /// Messages put together for one call, and what it is made of behind `begun`; kept for their capacity.
  private var chunk: [UInt8] = []
  private var pieces: [Piece] = []
  /// Whether the socket took less than it was offered last.
  private var isBlocked = false
  /// Packets dropped with nothing of their session in the trimmed rounds behind them.
  private var dropped: [SessionID: Int] = [:]
  private var eventByteCount = 0
  private var answerByteCount = 0
  private var outOfBandByteCount = 0
  private var overflowAnswerCount = 0
  private var queuedByteCount = 0
  /// Packets dropped since the last call of `takeDroppedCount`.
  private var droppedCount = 0
  /// Answers dropped since then without even an error in their place.
  private var lostAnswerCount = 0

  package init() {}

  package var isEmpty: Bool { begun.isEmpty && rounds.isEmpty && outOfBandAnswers.isEmpty }
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
    if isEmpty, dropped.isEmpty, !batch.hasAnswers {
      guard let sent = sendAtOnce(batch, to: recipient, write: write) else { return .failed }
      guard sent < batch.messages.count || !begun.isEmpty else { return .drained }
      first = sent
    }
    let kept = keep(batch, from: first, recipient, now: nowNanoseconds, write: write)
    guard kept else { return .failed }
    trim(nowNanoseconds)
    guard eventByteCount <= Self.eventByteLimit else { return .failed }
    return flush(write: write)
  }

  /// Sends a batch while nothing waits: as it is where all of it is for the connection, else what is, put together.
  ///
  /// - Returns: the first message of which nothing has gone out; nil where the connection is gone.
  private mutating func sendAtOnce(
    _ batch: MessageBatch, to recipient: RouterConnection.ID, write: (UnsafeRawBufferPointer) -> Int?
  ) -> Int? {
    let taken: Int?
    let byteCount: Int
    if batch.hasRecipients {
      batch.collect(for: recipient, into: &chunk)
      byteCount = chunk.count
      taken = chunk.isEmpty ? 0 : chunk.withUnsafeBytes(write)
    } else {
      byteCount = batch.bytes.count
      taken = batch.bytes.withUnsafeBytes(write)
    }
    guard let taken else { return nil }
    guard taken < byteCount else { return batch.messages.count }
    let rest = batch.rest(behind: taken, for: recipient)
    begun = rest.begun
    return rest.next
  }

  /// Sends what is kept.
  package mutating func flush(write: (UnsafeRawBufferPointer) -> Int?) -> Result {
    while !isEmpty {
      fillChunk()
      guard let taken = chunk.withUnsafeBytes(write) else { return .failed }
      remove(byteCount: taken)
      isBlocked = taken < chunk.count
      if isBlocked { return .blocked }
    }
    return .drained
  }

  // MARK: What waits

  /// - Returns: false where the connection is gone.
  private mutating func keep(
    _ batch: MessageBatch, from first: Int, _ recipient: RouterConnection.ID, now: UInt64,
    write: (UnsafeRawBufferPointer) -> Int?
  ) -> Bool {
    var round = OutboxRound(enqueuedNanoseconds: now)
    for message in batch.messages[first...] where message.isFor(recipient) {
      if !hasRoom(for: message) {
        // What the connection takes right now needs no room.
        append(round)
        round = OutboxRound(enqueuedNanoseconds: now)
        guard flush(write: write) != .failed else { return false }
      }
      let bytes = batch.bytes[message.range]
      guard hasRoom(for: message) else {
        refuse(message, in: &round)
        continue
      }
      switch message.kind {
      case .audio: round.append(bytes, .audio, of: message.sessionID)
      case .event: round.append(bytes, .event, of: message.sessionID)
      case .answer:
        // Before the next message asks for room.
        answerByteCount += bytes.count
        round.append(bytes, .answer, of: message.sessionID)
      case .outOfBand:
        outOfBandByteCount += bytes.count
        queuedByteCount += bytes.count
        outOfBandAnswers.append(Array(bytes))
      }
    }
    append(round)
    return true
  }

  private mutating func append(_ round: OutboxRound) {
    guard !round.isEmpty else { return }
    round.forEachEntry { entry, _ in
      queuedByteCount += entry.byteCount
      if case .event = entry.kind { eventByteCount += entry.byteCount }
    }
    rounds.append(round)
  }

  private func hasRoom(for message: MessageBatch.Message) -> Bool {
    switch message.kind {
    case .audio, .event: true
    case .answer: answerByteCount + message.range.count <= Self.answerByteLimit
    case .outOfBand: outOfBandByteCount + message.range.count <= Self.answerByteLimit
    }
  }

  private mutating func refuse(_ message: MessageBatch.Message, in round: inout OutboxRound) {
    guard overflowAnswerCount < Self.overflowAnswerCountLimit else {
      lostAnswerCount += 1
      return
    }
    var bytes: [UInt8] = []
    Self.overflowAnswer.write(to: &bytes, sessionID: message.sessionID, requestID: message.requestID)
    overflowAnswerCount += 1
    round.append(bytes, .overflowAnswer, of: message.sessionID)
  }

  /// Leaves out old audio, round by round from the oldest on; the count stands where the audio stood, before the
  /// session's next message.
  private mutating func trim(_ now: UInt64) {
    let cutoff = now > Self.audioLimitNanoseconds ? now - Self.audioLimitNanoseconds : 0
    while trimmedCount < rounds.count, rounds[trimmedCount].enqueuedNanoseconds < cutoff {
      let old = rounds[trimmedCount]
      var kept = OutboxRound(enqueuedNanoseconds: old.enqueuedNanoseconds)
      old.forEachEntry { entry, bytes in
        if case .audio = entry.kind, let id = entry.sessionID {
          dropped[id, default: 0] += 1
          droppedCount += 1
          queuedByteCount -= entry.byteCount
          return
        }
        if let id = entry.sessionID, let count = dropped.removeValue(forKey: id) {
          let line = Self.droppedLine(count, of: id)
          kept.append(line, .dropped, of: id)
          queuedByteCount += line.count
          eventByteCount += line.count
        }
        kept.append(bytes, entry.kind, of: entry.sessionID)
      }
      if kept.isEmpty {
        rounds.remove(at: trimmedCount)
      } else {
        rounds[trimmedCount] = kept
        trimmedCount += 1
      }
    }
  }

  private static func droppedLine(_ count: Int, of id: SessionID) -> [UInt8] {
    EngineEvent(.dropped(count: count), sessionID: id).encodedLine()
  }

  // MARK: What goes out

  /// Puts the next messages together: the first alone for a socket that took nothing lately.
  private mutating func fillChunk() {
    let limit = isBlocked ? 1 : Self.chunkByteCount
    chunk.removeAll(keepingCapacity: true)
    pieces.removeAll(keepingCapacity: true)
    chunk += begun
    for (index, round) in rounds.enumerated() {
      guard chunk.count < limit else { return }
      var start = round.nextByte
      for entry in round.entries[round.nextEntry...] {
        guard chunk.count < limit else { return }
        let isTrimmed = index < trimmedCount
        offer(
          round.bytes[start..<start + entry.byteCount], isTrimmed || dropped.isEmpty ? nil : entry.sessionID)
        start += entry.byteCount
      }
    }
    for answer in outOfBandAnswers {
      guard chunk.count < limit else { return }
      offer(answer[...], nil)
    }
  }

  /// - Parameter id: the session whose lost packets are told first, if there are any.
  private mutating func offer(_ message: ArraySlice<UInt8>, _ id: SessionID?) {
    var piece = Piece(byteCount: message.count)
    if let id, let count = dropped.removeValue(forKey: id) {
      let line = Self.droppedLine(count, of: id)
      piece = Piece(byteCount: line.count + message.count, dropped: (id, count))
      chunk += line
    }
    chunk += message
    pieces.append(piece)
  }

  /// Forgets what has gone out.
  private mutating func remove(byteCount: Int) {
    var start = begun.count
    begun = begun.dropFirst(byteCount)
    for piece in pieces {
      if start < byteCount {
        removeFirst()
        // A copy: the chunk keeps its memory for the next call.
        begun = Array(chunk[byteCount..<max(byteCount, start + piece.byteCount)])[...]
      } else if let (id, count) = piece.dropped {
        dropped[id, default: 0] += count
      }
      start += piece.byteCount
    }
  }

  private mutating func removeFirst() {
    guard !rounds.isEmpty else {
      guard let answer = outOfBandAnswers.popFirst() else { return }
      queuedByteCount -= answer.count
      outOfBandByteCount -= answer.count
      return
    }
    let entry = rounds[0].entries[rounds[0].nextEntry]
    queuedByteCount -= entry.byteCount
    switch entry.kind {
    case .audio: break
    case .event, .dropped: eventByteCount -= entry.byteCount
    case .answer: answerByteCount -= entry.byteCount
    case .overflowAnswer: overflowAnswerCount -= 1
    }
    rounds[0].removeFirst()
    guard rounds[0].isEmpty else { return }
    rounds.removeFirst()
    trimmedCount = max(0, trimmedCount - 1)
  }
}
