import NIOCore

/// Requests that wait for their answer, which comes to an inbox of our own: `_INBOX.<client>.<number>`. Confined to the
/// loop.
final class PendingReplies {
  typealias Answer = Result<NATSMessage, NATSError>

  private struct Entry {
    var then: (Answer) -> Void
    var timer: Scheduled<Void>
  }

  private let limit: Int
  private let eventLoop: any EventLoop
  private var lastNumber: UInt64 = 0
  private var entries: [UInt64: Entry] = [:]

  init(limit: Int, eventLoop: any EventLoop) {
    self.limit = limit
    self.eventLoop = eventLoop
  }

  /// Remembers who waits.
  ///
  /// - Returns: the number of its inbox, nil where too many wait.
  func add(timeout: TimeAmount, _ then: @escaping (Answer) -> Void) -> UInt64? {
    guard entries.count < limit else { return nil }
    lastNumber += 1
    let number = lastNumber
    let timer = eventLoop.assumeIsolated().scheduleTask(in: timeout) { [self] in
      finish(number, .failure(.timeout))
    }
    entries[number] = Entry(then: then, timer: timer)
    return number
  }

  /// Tells who asked, once.
  func finish(_ number: UInt64, _ answer: Answer) {
    guard let entry = entries.removeValue(forKey: number) else { return }
    entry.timer.cancel()
    entry.then(answer)
  }

  /// An answer has come. One that nobody waits for any more is left out.
  func received(_ message: NATSMessage) {
    var number: UInt64 = 0
    for byte in message.subjectBytes.reversed().prefix(while: { $0 != UInt8(ascii: ".") }).reversed() {
      let digit = byte &- UInt8(ascii: "0")
      guard digit <= 9, number < UInt64.max / 16 else { return }
      number = number * 10 + UInt64(digit)
    }
    // A server says 503 itself where nobody is subscribed. A responder's own status has a payload or other headers.
    let isNobody = message.payload.readableBytes == 0 && message.headers.status == 503
    finish(number, isNobody ? .failure(.noResponders) : .success(message))
  }

  /// Nobody will be answered.
  func finishAll(_ error: NATSError) {
    for number in entries.keys.sorted() { finish(number, .failure(error)) }
  }
}
