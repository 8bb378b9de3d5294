import Logging
import NIOCore
import WireProtocol

/// The streams from outside the loop: every call goes onto the loop and is awaited there.
struct StreamHubHandle: Sendable {
  let eventLoop: any EventLoop
  private let hub: NIOLoopBound<StreamHub>

  /// Makes a hub on the data plane's loop, which ends its streams when it stops.
  static func make(
    plane: DataPlaneHandle, parts: RepositoryParts, renderer: RenderClient, timing: StreamTiming,
    logger: Logger
  ) async throws -> StreamHubHandle {
    let pieces = StreamPieces(log: parts.log, renderer: renderer, statistics: parts.statistics)
    let repositories = parts.repositories
    return try await plane { plane in
      let hub = StreamHub(
        plane: plane, pieces: pieces, newest: { repositories.repository($0)?.lastPlayed ?? 0 },
        timing: timing,
        statistics: parts.statistics, logger: logger)
      plane.onStop = { [weak hub] in hub?.stop() }
      return StreamHubHandle(
        eventLoop: plane.eventLoop, hub: NIOLoopBound(hub, eventLoop: plane.eventLoop))
    }
  }

  /// The hub itself, for callers that are on the loop already.
  var onLoop: StreamHub { hub.value }

  func callAsFunction<Result: Sendable>(
    _ body: @escaping @Sendable (StreamHub) throws -> Result
  ) async throws -> Result {
    try await eventLoop.submit { try body(hub.value) }.get()
  }
}
