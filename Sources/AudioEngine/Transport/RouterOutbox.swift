import DequeModule
import WireProtocol

/// What one connection has not taken yet. While the connection keeps up it is empty and costs one `send`.
///
/// Past two seconds of audio its oldest audio is dropped and counted by session; `dropped` goes before the
/// next message of that session. Events are never dropped.
package struct RouterOutbox {
  private struct Pending {
    var audioOf: SessionID?
    var eventOf: SessionID?
    var bytes: [UInt8]
    var enqueuedNanoseconds: UInt64
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
  /// Old audio is looked for once in this time: a look goes through the whole queue.
  private static let dropIntervalNanoseconds: UInt64 = 100_000_000
  /// Bytes offered to the socket in one call.
  private static let chunkByteCount = 64 * 1024

  private var queue: Deque<Pending> = []
  /// Bytes of the first message that have gone out already.
  private var headOffset = 0
  /// Whole messages put together for one call; kept for its capacity.
  private var chunk: [UInt8] = []
  private var dropped: [SessionID: Int] = [:]
  private var queuedEventByteCount = 0
  private var nextDropNanoseconds: UInt64 = 0
  /// Packets dropped since the last call of `takeDroppedCount`.
  private var droppedCount = 0

  package init() {}

  package var isEmpty: Bool { queue.isEmpty }

  package mutating func takeDroppedCount() -> Int {
    defer { droppedCount = 0 }
    return droppedCount
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
    var sentOfFirst = 0
    if isEmpty, !batch.hasRecipients {
      guard let taken = batch.bytes.withUnsafeBytes(write) else { return .failed }
      guard taken < batch.bytes.count else { return .drained }
      first = batch.messages.firstIndex { $0.range.upperBound > taken }!
      sentOfFirst = taken - batch.messages[first].range.lowerBound
    }
    for message in batch.messages[first...] where message.recipient == nil || message.recipient == recipient {
      enqueue(
        Pending(
          audioOf: message.audioOf, eventOf: message.eventOf, bytes: Array(batch.bytes[message.range]),
          enqueuedNanoseconds: nowNanoseconds))
    }
    if sentOfFirst > 0 { headOffset = sentOfFirst }
    dropOld(nowNanoseconds)
    guard queuedEventByteCount <= Self.eventByteLimit else { return .failed }
    return flush(write: write)
  }

  /// Sends what is kept.
  package mutating func flush(write: (UnsafeRawBufferPointer) -> Int?) -> Result {
    while !queue.isEmpty {
      fillChunk()
      guard var taken = chunk.withUnsafeBytes(write) else { return .failed }
      let isBlocked = taken < chunk.count
      while let first = queue.first, taken >= first.bytes.count - headOffset {
        taken -= first.bytes.count - headOffset
        headOffset = 0
        if first.audioOf == nil { queuedEventByteCount -= first.bytes.count }
        queue.removeFirst()
      }
      headOffset += taken
      if isBlocked { return .blocked }
    }
    return .drained
  }

  private mutating func enqueue(_ message: Pending) {
    if message.audioOf == nil { queuedEventByteCount += message.bytes.count }
    queue.append(message)
  }

  private mutating func dropOld(_ now: UInt64) {
    guard now >= nextDropNanoseconds else { return }
    nextDropNanoseconds = now + Self.dropIntervalNanoseconds
    let cutoff = now > Self.audioLimitNanoseconds ? now - Self.audioLimitNanoseconds : 0
    // A message that is half sent has to be finished.
    let halfSent = headOffset > 0 ? queue.popFirst() : nil
    queue.removeAll { message in
      guard let session = message.audioOf, message.enqueuedNanoseconds < cutoff else { return false }
      dropped[session, default: 0] += 1
      droppedCount += 1
      return true
    }
    if let halfSent { queue.prepend(halfSent) }
  }

  /// Puts the next messages together, `dropped` before the first message of a session that lost some.
  private mutating func fillChunk() {
    chunk.removeAll(keepingCapacity: true)
    var index = 0
    while chunk.count < Self.chunkByteCount, index < queue.count {
      if let session = queue[index].audioOf ?? queue[index].eventOf, !dropped.isEmpty,
        index > 0 || headOffset == 0, let count = dropped.removeValue(forKey: session)
      {
        let line = EngineEvent(.dropped(count: count), sessionID: session).encodedLine()
        queuedEventByteCount += line.count
        queue.insert(
          Pending(eventOf: session, bytes: line, enqueuedNanoseconds: queue[index].enqueuedNanoseconds),
          at: index)
      }
      chunk += queue[index].bytes.dropFirst(index == 0 ? headOffset : 0)
      index += 1
    }
  }
}
