import NATS
import NIOCore

/// Where the Router's engines are.
extension RouterApplication {
  /// The engine at the Unix socket, or those at NATS.
  ///
  /// - Returns: what finds the engines at NATS; nil for the Unix socket.
  func makeEngines(
    _ plane: DataPlaneHandle, _ saved: SavedState
  ) async throws -> LoopHandle<ClusterEngines>? {
    let (path, bufferByteCount) = (configuration.engineSocket, configuration.socketBufferBytes)
    let startedAt = saved.engineStartedAtMilliseconds
    guard let nats = try configuration.cluster.configuration(name: "antiphon-router") else {
      try await plane { plane in
        let socket = UnixEngineTransport(
          path: path, socketBufferByteCount: bufferByteCount, eventLoop: plane.eventLoop)
        plane.fleet.add(
          RoutedEngine(
            .local, transport: socket, plane: plane, startedAtMilliseconds: startedAt))
      }
      return nil
    }
    let client = try NATSClient(nats, eventLoop: plane.eventLoop, logger: logger)
    let logger = logger
    return try await plane { plane in
      LoopHandle(ClusterEngines(plane: plane, client: client, logger: logger), on: plane.eventLoop)
    }
  }

  /// Begins to reach the engines.
  func start(_ plane: DataPlaneHandle, _ engines: LoopHandle<ClusterEngines>?) {
    plane.eventLoop.execute {
      plane.onLoop.start()
      do {
        try engines?.onLoop.start()
      } catch {
        // The subjects are our own: nothing in them depends on what anyone has set.
        preconditionFailure("a NATS subject of ours is none: \(error)")
      }
    }
  }
}
