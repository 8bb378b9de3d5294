import Logging
import NATS
import NIOCore
import NIOPosix
import WireProtocol

/// Where routers reach the engine.
struct RouterEndpoint: Sendable {
  /// What `drain` takes at most.
  let drainSeconds: Int
  /// The engine is about to stop: returns once it has played for as long as its sessions should be heard.
  let drain: @Sendable () async -> Void
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
      return RouterEndpoint(drainSeconds: 0, drain: {}, stop: { socket.stop() })
    }
    // A thread of its own, so that no HTTP request delays audio. It lasts as long as the process.
    let loop = MultiThreadedEventLoopGroup(numberOfThreads: 1).next()
    let client = try NATSClient(nats, eventLoop: loop, logger: logger)
    let (maximumSessions, logger) = (configuration.maximumSessions, logger)
    let endpoint = try await loop.submit {
      let endpoint = ClusterEndpoint(
        client: client, server: server, logger: logger,
        load: {
          max(
            admission.statistics.demandCores / admission.capacityCores,
            Double(pacer.statistics.current.sessions.live) / Double(maximumSessions))
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
    let drain = SessionDrain(limitSeconds: configuration.drainSeconds)
    return RouterEndpoint(
      drainSeconds: configuration.drainSeconds,
      drain: {
        loop.execute { endpoint.value.drain() }
        let left = await drain.run(sessionCount: { pacer.statistics.current.sessions.live }) {
          try? await Task.sleep(for: .milliseconds($0))
        }
        if left > 0 { logger.warning("\(left) sessions were not moved to another engine") }
      }, stop: { client.close() })
  }
}
