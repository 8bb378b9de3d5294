import Logging
import NIOCore

/// The data plane from outside its loop: every call goes onto the loop and is awaited there.
struct DataPlaneHandle: Sendable {
  let eventLoop: any EventLoop
  private let plane: NIOLoopBound<DataPlane>

  /// Makes a data plane on that loop.
  static func make(
    enginePath: String, socketBufferByteCount: Int, stateStore: StateStore, saved: SavedState,
    eventLoop: any EventLoop, logger: Logger
  ) async throws -> DataPlaneHandle {
    try await eventLoop.submit {
      let plane = DataPlane(
        enginePath: enginePath, socketBufferByteCount: socketBufferByteCount, stateStore: stateStore,
        saved: saved, eventLoop: eventLoop, logger: logger)
      return DataPlaneHandle(
        eventLoop: eventLoop, plane: NIOLoopBound(plane, eventLoop: eventLoop))
    }.get()
  }

  /// The plane itself, for callers that are on the loop already.
  var onLoop: DataPlane { plane.value }

  func callAsFunction<Result: Sendable>(
    _ body: @escaping @Sendable (DataPlane) throws -> Result
  ) async throws -> Result {
    try await eventLoop.submit { try body(plane.value) }.get()
  }

  /// Performs a command, and waits for its answer.
  ///
  /// - Parameters:
  ///   - client: whom it is accounted to.
  ///   - limitFactor: how many times the usual limits it has.
  func ask(
    _ command: ClientCommand, for client: ClientID, limitFactor: Int = 1
  ) async throws -> Asker.Answer {
    try await eventLoop.flatSubmit {
      let promise = eventLoop.makePromise(of: Asker.Answer.self)
      promise.futureResult.assumeIsolated().whenComplete { plane.value.statistics.count($0) }
      do {
        try plane.value.performOnce(
          command, for: .http(promise, requestID: command.requestID, client, limitFactor: limitFactor))
      } catch {
        promise.fail(error)
      }
      return promise.futureResult
    }.get()
  }
}
