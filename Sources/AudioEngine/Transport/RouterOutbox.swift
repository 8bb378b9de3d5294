import DequeModule
import WireProtocol

/// What one connection has not taken yet. While the connection keeps up it is empty and costs one `send`.
///
/// Past two seconds of audio its oldest audio is dropped and counted by session; `dropped` goes before the
/// next message of that session. Events are never dropped.
package struct RouterOutbox {
  private struct Pending {
    enum Kind {
      case audio(SessionID)
      case event(SessionID?)
      /// Says how many packets of a session are missing here.
      case dropped(SessionID, count: Int)
    }

    var kind: Kind
    var bytes: [UInt8]
    var enqueuedNanoseconds: UInt64

    var sessionID: SessionID? {
      switch kind {
      case .audio(let id), .dropped(let id, _): id
      case .event(let id): id
      }
    }

    var isAudio: Bool { if case .audio = kind { true } else { false } }

    static func dropped(_ count: Int, of id: SessionID, enqueuedNanoseconds: UInt64) -> Pending {
      Pending(
        kind: .dropped(id, count: count),
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
  /// Old audio is looked for once in this time: a look goes through the whole queue.
  private static let dropIntervalNanoseconds: UInt64 = 100_000_000
  /// Bytes offered to the socket in one call.
  private static let chunkByteCount = 64 * 1024

  private var queue: Deque<Pending> = []
  /// Bytes of the first message that have gone out already.
  private var headOffset = 0
  /// Whole messages put together for one call; kept for its capacity.
  private var chunk: [UInt8] = []
  /// Dropped with nothing of the session behind them yet.
  private var dropped: [SessionID: Int] = [:]
  private var queuedEventByteCount = 0
  /// Of whole messages that wait.
  package private(set) var byteCount = 0
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
    if isEmpty, dropped.isEmpty, !batch.hasRecipients {
      guard let taken = batch.bytes.withUnsafeBytes(write) else { return .failed }
      guard taken < batch.bytes.count else { return .drained }
      first = batch.messages.firstIndex { $0.range.upperBound > taken }!
      sentOfFirst = taken - batch.messages[first].range.lowerBound
    }
    for message in batch.messages[first...] where message.recipient == nil || message.recipient == recipient {
      enqueue(
        Pending(
          kind: message.audioOf.map { .audio($0) } ?? .event(message.eventOf),
          bytes: Array(batch.bytes[message.range]), enqueuedNanoseconds: nowNanoseconds))
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
        byteCount -= first.bytes.count
        if !first.isAudio { queuedEventByteCount -= first.bytes.count }
        queue.removeFirst()
      }
      headOffset += taken
      if isBlocked { return .blocked }
    }
    return .drained
  }

  private mutating func enqueue(_ message: Pending) {
    if let id = message.sessionID, let count = dropped.removeValue(forKey: id) {
      keep(.dropped(count, of: id, enqueuedNanoseconds: message.enqueuedNanoseconds))
    }
    keep(message)
  }

  private mutating func keep(_ message: Pending) {
    byteCount += message.bytes.count
    if !message.isAudio { queuedEventByteCount += message.bytes.count }
    queue.append(message)
  }

  /// Leaves out old audio; the count stands where the audio stood, before the session's next message.
  private mutating func dropOld(_ now: UInt64) {
    guard now >= nextDropNanoseconds else { return }
    nextDropNanoseconds = now + Self.dropIntervalNanoseconds
    let cutoff = now > Self.audioLimitNanoseconds ? now - Self.audioLimitNanoseconds : 0
    var old = queue
    queue = []
    byteCount = 0
    queuedEventByteCount = 0
    // A message that is half sent has to be finished.
    if headOffset > 0, let halfSent = old.popFirst() { keep(halfSent) }
    for message in old {
      if case .audio(let id) = message.kind, message.enqueuedNanoseconds < cutoff {
        dropped[id, default: 0] += 1
        droppedCount += 1
      } else if case .dropped(let id, let count) = message.kind {
        // Merged with what is missing behind it.
        dropped[id, default: 0] += count
      } else {
        enqueue(message)
      }
    }
  }

  /// Puts the next messages together.
  private mutating func fillChunk() {
    chunk.removeAll(keepingCapacity: true)
    var index = 0
    while chunk.count < Self.chunkByteCount, index < queue.count {
      chunk += queue[index].bytes.dropFirst(index == 0 ? headOffset : 0)
      index += 1
    }
  }
}
