import Logging
import NATS
import NIOCore
import NIOPosix
import WireProtocol

/// Where routers reach the engine.
struct RouterEndpoint: Sendable {
  /// The engine is about to stop.
  let drain: @Sendable () -> Void
  let stop: @Sendable () -> Void
}

extension AudioEngineApplication {
  /// The Unix socket, or a name at NATS.
  func makeEndpoint(
    _ server: PacketServer, _ pacer: Pacer, _ handler: CommandHandler, _ admission: TranscodeAdmission
  ) async throws -> RouterEndpoint {
    guard let nats = configuration.nats else {
      let socket = try RouterSocket(
        path: configuration.socketPath, group: configuration.socketGroup, server: server, logger: logger)
      try socket.start()
      logger.info("routers connect to \(configuration.socketPath)")
      return RouterEndpoint(drain: {}, stop: { socket.stop() })
    }
    // A thread of its own, so that no HTTP request delays audio. It lasts as long as the process.
    let loop = MultiThreadedEventLoopGroup(numberOfThreads: 1).next()
    let client = try NATSClient(nats, eventLoop: loop, logger: logger)
    let (maximumSessions, logger) = (configuration.maximumSessions, logger)
    let endpoint = try await loop.submit {
      let endpoint = ClusterEndpoint(
        client: client, server: server, logger: logger,
        load: {
          let sessions = pacer.statistics.current.sessions
          let count = sessions.extracting + sessions.streaming + sessions.paused
          return max(
            admission.statistics.demandCores / admission.capacityCores,
            Double(count) / Double(maximumSessions))
        },
        stopSessions: {
          Task {
            for session in await pacer.sessions() {
              handler.perform(.session(session.sessionID, .stop), for: PendingRequest(.closure { _ in }))
            }
          }
        })
      try endpoint.start()
      return NIOLoopBound(endpoint, eventLoop: loop)
    }.get()
    return RouterEndpoint(
      drain: { loop.execute { endpoint.value.drain() } }, stop: { client.close() })
  }
}
