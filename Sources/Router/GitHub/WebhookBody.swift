import Hummingbird
import NIOCore
import Synchronization

/// Reads deliveries' bodies: each within GitHub's cap and as fast as one that is meant comes, and all together within
/// what strangers may have us hold.
final class WebhookBodies: Sendable {
  /// A body, which takes its room until nobody has it any more.
  final class Body: Sendable {
    let bytes: [UInt8]
    private let number: Int
    private let bodies: WebhookBodies

    fileprivate init(_ bytes: [UInt8], _ number: Int, _ bodies: WebhookBodies) {
      self.bytes = bytes
      self.number = number
      self.bodies = bodies
    }

    deinit {
      bodies.end(number)
    }
  }

  private struct State {
    var budget = WebhookBodyBudget()
    /// Has the reading of a body end.
    var cuts: [Int: AsyncStream<Never>.Continuation] = [:]
  }

  private let state = Mutex(State())

  /// Reads a body.
  ///
  /// - Throws: `line_too_long` past the cap, `overloaded` where it gives way to others, `invalid_command` with 408
  ///   where it does not come in time.
  func read(
    _ request: Request, from address: ClientID, until deadline: ContinuousClock.Instant
  ) async throws -> Body {
    let announced = request.headers[.contentLength].flatMap { Int($0) }
    if let announced { try Self.check(announced) }
    let (cut, continuation) = AsyncStream.makeStream(of: Never.self)
    let (number, victim) = state.withLock { state in
      let begun = state.budget.begin(from: address)
      state.cuts[begun.number] = continuation
      return begun
    }
    if let victim { giveUp([victim]) }
    do {
      return try await withThrowingTaskGroup(of: Body.self) { tasks in
        tasks.addTask { try await self.readAll(request, announced, number) }
        tasks.addTask { try await self.watch(number, until: deadline) }
        tasks.addTask {
          for await _ in cut {}
          try Task.checkCancellation()
          throw Self.noRoom
        }
        // Waits for the reading to have ended: there is one reader of a connection at a time.
        defer { tasks.cancelAll() }
        guard let body = try await tasks.next() else { throw CancellationError() }
        return body
      }
    } catch {
      end(number)
      throw error
    }
  }

  private func readAll(_ request: Request, _ announced: Int?, _ number: Int) async throws -> Body {
    var bytes: [UInt8] = []
    for try await chunk in request.body {
      try Self.check(bytes.count + chunk.readableBytes)
      switch state.withLock({ $0.budget.add(chunk.readableBytes, to: number) }) {
      case .taken: break
      case .evicting(let victims): giveUp(victims)
      case .refused: throw Self.noRoom
      }
      // An array that grows is copied, and is there twice meanwhile. A word alone gets no room.
      if let announced, bytes.count < Self.provenByteCount,
        bytes.count + chunk.readableBytes >= Self.provenByteCount
      {
        bytes.reserveCapacity(announced)
      }
      bytes.append(contentsOf: chunk.readableBytesView)
    }
    state.withLock { state in
      state.budget.finish(number)
      state.cuts[number] = nil
    }
    return Body(bytes, number, self)
  }

  /// After these the rest is believed to come.
  private static let provenByteCount = 1_048_576

  /// Ends the reading of one that is held rather than sent.
  private func watch(_ number: Int, until deadline: ContinuousClock.Instant) async throws -> Never {
    let pace = Duration.seconds(RouterLimits.webhookPaceSeconds)
    while ContinuousClock.now + pace < deadline {
      try await Task.sleep(for: pace)
      guard state.withLock({ $0.budget.keepsPace(number) }) else {
        throw RequestError(
          .invalidCommand,
          "under \(RouterLimits.webhookPaceByteCount) bytes of the payload came in \(RouterLimits.webhookPaceSeconds) s",
          hint: "send it again, and all of it at once", status: 408)
      }
    }
    try await Task.sleep(until: deadline)
    throw RequestError(
      .invalidCommand, "the payload did not come in \(RouterLimits.webhookAnswerSeconds) s",
      hint: "send it again", status: 408)
  }

  private static func check(_ byteCount: Int) throws(RequestError) {
    guard byteCount <= RouterLimits.webhookByteCount else {
      throw RequestError(
        .lineTooLong, "the payload has over \(RouterLimits.webhookByteCount) bytes, GitHub's own cap")
    }
  }

  private static var noRoom: RequestError {
    RequestError(
      .overloaded,
      "deliveries of \(RouterLimits.webhookAddressByteCount) bytes from one address, or of "
        + "\(RouterLimits.webhookBodiesByteCount) in all, are being read, and this one gave way",
      hint: "send it again later")
  }

  private func giveUp(_ victims: [Int]) {
    let cuts = state.withLock { state in victims.compactMap { state.cuts.removeValue(forKey: $0) } }
    for cut in cuts { cut.finish() }
  }

  private func end(_ number: Int) {
    let cut = state.withLock { state in
      state.budget.end(number)
      return state.cuts.removeValue(forKey: number)
    }
    cut?.finish()
  }
}
