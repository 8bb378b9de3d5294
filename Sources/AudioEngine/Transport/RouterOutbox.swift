import DequeModule
import WireProtocol

/// What one connection has not taken yet. While the connection keeps up it is empty and costs one `send`.
///
/// Past two seconds of audio its oldest audio is dropped and counted by session; `dropped` goes before the
/// next message of that session. Events are never dropped.
struct RouterOutbox {
  private struct Pending {
    var audioOf: SessionID?
    var eventOf: SessionID?
    var bytes: [UInt8]
    var enqueuedNanoseconds: UInt64
  }

  /// What came of a flush.
  enum Result: Equatable {
    case drained
    /// The connection takes no more now.
    case blocked
    /// The connection is gone, or its events alone passed the limit.
    case failed
  }

  static let audioLimitNanoseconds: UInt64 = 2_000_000_000
  static let eventByteLimit = 4 << 20
  /// Old audio is looked for once in this time: a look goes through the whole queue.
  private static let dropIntervalNanoseconds: UInt64 = 100_000_000
  private static let stagingByteCount = 64 * 1024

  private var queue: Deque<Pending> = []
  /// Whole messages on their way out; the first may be half sent already.
  private var staging: [UInt8] = []
  private var stagingOffset = 0
  private var dropped: [SessionID: Int] = [:]
  private var queuedEventByteCount = 0
  private var nextDropNanoseconds: UInt64 = 0
  /// Packets dropped since the last call of `takeDroppedCount`.
  private var droppedCount = 0

  var isEmpty: Bool { queue.isEmpty && stagingOffset == staging.count }

  mutating func takeDroppedCount() -> Int {
    defer { droppedCount = 0 }
    return droppedCount
  }

  /// Sends a batch, or keeps what does not go out.
  ///
  /// - Parameter write: hands bytes to the socket without blocking; how many it took, or nil when the
  ///   connection is gone.
  mutating func send(
    _ batch: MessageBatch, to recipient: RouterConnection.ID, nowNanoseconds: UInt64,
    write: (UnsafeRawBufferPointer) -> Int?
  ) -> Result {
    var first = 0
    if isEmpty, !batch.hasRecipients {
      guard let taken = batch.bytes.withUnsafeBytes(write) else { return .failed }
      guard taken < batch.bytes.count else { return .drained }
      first = batch.messages.firstIndex { $0.range.upperBound > taken }!
      let half = batch.messages[first].range
      if half.lowerBound < taken {
        staging = Array(batch.bytes[taken..<half.upperBound])
        stagingOffset = 0
        first += 1
      }
    }
    for message in batch.messages[first...] where message.recipient == nil || message.recipient == recipient {
      enqueue(
        Pending(
          audioOf: message.audioOf, eventOf: message.eventOf, bytes: Array(batch.bytes[message.range]),
          enqueuedNanoseconds: nowNanoseconds))
    }
    dropOld(nowNanoseconds)
    guard queuedEventByteCount <= Self.eventByteLimit else { return .failed }
    return flush(write: write)
  }

  /// Sends what is kept.
  mutating func flush(write: (UnsafeRawBufferPointer) -> Int?) -> Result {
    while true {
      if stagingOffset == staging.count {
        fillStaging()
        guard !staging.isEmpty else { return .drained }
      }
      let taken = staging.withUnsafeBytes { write(UnsafeRawBufferPointer(rebasing: $0[stagingOffset...])) }
      guard let taken else { return .failed }
      stagingOffset += taken
      guard stagingOffset == staging.count else { return .blocked }
    }
  }

  private mutating func enqueue(_ message: Pending) {
    if message.audioOf == nil { queuedEventByteCount += message.bytes.count }
    queue.append(message)
  }

  private mutating func dropOld(_ now: UInt64) {
    guard now >= nextDropNanoseconds else { return }
    nextDropNanoseconds = now + Self.dropIntervalNanoseconds
    let cutoff = now > Self.audioLimitNanoseconds ? now - Self.audioLimitNanoseconds : 0
    queue.removeAll { message in
      guard let session = message.audioOf, message.enqueuedNanoseconds < cutoff else { return false }
      dropped[session, default: 0] += 1
      droppedCount += 1
      return true
    }
  }

  private mutating func fillStaging() {
    staging.removeAll(keepingCapacity: true)
    stagingOffset = 0
    while staging.count < Self.stagingByteCount, let message = queue.popFirst() {
      if message.audioOf == nil { queuedEventByteCount -= message.bytes.count }
      if let session = message.audioOf ?? message.eventOf, let count = dropped.removeValue(forKey: session) {
        staging += EngineEvent(.dropped(count: count), sessionID: session).encodedLine()
      }
      staging += message.bytes
    }
  }
}
