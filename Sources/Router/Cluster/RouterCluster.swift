import Logging
import NATS
import NIOCore
import ServiceSupport
import WireProtocol

/// A Router's connections through NATS: to engines, to other Routers, and to the buckets of sessions' homes.
struct RouterCluster: Sendable {
  let relay = Relay()
  let homes: LoopHandle<Homes>
  private let engines: LoopHandle<ClusterEngines>
  private let client: NATSClient

  init(
    plane: DataPlaneHandle, client: NATSClient, archive: SessionArchive, replicas: Int, logger: Logger
  ) async throws {
    self.client = client
    (engines, homes) = try await plane { [relay] plane in
      let engines = ClusterEngines(plane: plane, client: client, logger: logger)
      let routers = ClusterRouters(
        RouterHeartbeat(router: plane.id, address: "", relaySecret: relay.secret), client: client,
        logger: logger)
      let homes = Homes(
        plane: plane, routers: routers, client: client, archive: archive, replicas: replicas, logger: logger
      ) { engines.attach() }
      plane.homes = homes
      plane.state.onOvertaken = { [unowned plane] id in
        plane.homes?.verify(id)
        plane.relinquish(id)
      }
      plane.connectionSlots.isRouter = { [unowned routers] in routers.isRouterAddress($0) }
      plane.onDrain = { [unowned homes] in homes.drain() }
      return (LoopHandle(engines, on: plane.eventLoop), LoopHandle(homes, on: plane.eventLoop))
    }
  }

  /// Called on the loop.
  ///
  /// - Parameter address: where other Routers reach this one.
  func start(address: ListenAddress) {
    do {
      try engines.onLoop.start()
      try homes.onLoop.start(address: address)
    } catch {
      // The subjects are constants, and do not depend on user input.
      preconditionFailure("invalid built-in NATS subject: \(error)")
    }
    client.start()
  }

  /// Before the loop ends, so that nothing is scheduled on it any more.
  func stop() async throws {
    try await homes { homes in homes.stop() }
    try await engines { [client] engines in
      engines.stop()
      client.close()
    }
  }
}
