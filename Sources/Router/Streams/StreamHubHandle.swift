import Logging
import NIOCore
import ServiceSupport
import WireProtocol

typealias StreamHubHandle = LoopHandle<StreamHub>

extension LoopHandle<StreamHub> {
  /// Makes a hub on the data plane's loop, which ends its streams when it stops.
  ///
  /// - Parameter newest: the number of a repository's newest event that has become music.
  static func make(
    plane: DataPlaneHandle, log: EventLog, statistics: RepositoryStatistics, renderer: RenderClient,
    newest: @escaping @Sendable (SessionID) -> Int, timing: StreamTiming, logger: Logger
  ) async throws -> StreamHubHandle {
    let pieces = StreamPieces(log: log, renderer: renderer, statistics: statistics)
    return try await plane { plane in
      let hub = StreamHub(
        plane: plane, pieces: pieces, newest: newest, timing: timing, statistics: statistics, logger: logger)
      plane.onStop = { [weak hub] in hub?.stop() }
      return StreamHubHandle(hub, on: plane.eventLoop)
    }
  }
}
