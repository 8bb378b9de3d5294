import NIOCore

/// What is confined to an event loop, from outside of it: every call goes onto the loop and is awaited there.
struct LoopHandle<Confined>: Sendable {
  let eventLoop: any EventLoop
  private let confined: NIOLoopBound<Confined>

  /// Called on the loop.
  init(_ confined: Confined, on eventLoop: any EventLoop) {
    self.eventLoop = eventLoop
    self.confined = NIOLoopBound(confined, eventLoop: eventLoop)
  }

  /// For callers that are on the loop already.
  var onLoop: Confined { confined.value }

  func callAsFunction<Result: Sendable>(
    _ body: @escaping @Sendable (Confined) throws -> Result
  ) async throws -> Result {
    try await eventLoop.submit { try body(onLoop) }.get()
  }
}
