import NATS
import NIOCore
import ServiceSupport
import WireProtocol

/// Where the Router's engines are, and other Routers.
extension RouterApplication {
  /// What is kept on this disk. With NATS that is a file of its own, so that the queues of one machine stay what they
  /// are, and it begins without sessions and repositories: they are read from NATS.
  func openState() throws -> StateStore {
    guard configuration.cluster.nats != nil else { return try StateStore(directory: configuration.state) }
    let state = try StateStore(directory: configuration.state, name: "cluster")
    try state.removeShared()
    return state
  }

  /// The way to NATS, and what is kept there of sessions; nil for the Unix socket.
  func makeNATS(
    _ eventLoop: any EventLoop, clock: CumulativeUptimeClock
  ) throws -> (client: NATSClient, archive: SessionArchive)? {
    guard let nats = try configuration.cluster.configuration(name: "antiphon-router") else { return nil }
    let client = try NATSClient(nats, eventLoop: eventLoop, logger: logger)
    return (client, SessionArchive(SessionArchive.bucket(of: client), clock: clock))
  }

  /// The engine at the Unix socket, or those at NATS.
  ///
  /// - Returns: what meets engines and Routers at NATS; nil for the Unix socket.
  func makeCluster(
    _ plane: DataPlaneHandle, _ saved: SavedState, _ nats: (client: NATSClient, archive: SessionArchive)?
  ) async throws -> RouterCluster? {
    let (path, bufferByteCount) = (configuration.engineSocket, configuration.socketBufferBytes)
    let startedAt = saved.engineStartedAtMilliseconds
    guard let nats else {
      try await plane { plane in
        let socket = UnixEngineTransport(
          path: path, socketBufferByteCount: bufferByteCount, eventLoop: plane.eventLoop)
        plane.fleet.add(
          RoutedEngine(
            .local, transport: socket, plane: plane, startedAtMilliseconds: startedAt))
      }
      return nil
    }
    return try await RouterCluster(
      plane: plane, client: nats.client, archive: nats.archive, replicas: configuration.natsReplicas,
      logger: logger)
  }

  /// How repositories are kept with other Routers; nil where there are none.
  func sharing(_ client: NATSClient?, _ cluster: RouterCluster?) -> RepositoryServices.Sharing? {
    guard let client, let cluster else { return nil }
    return RepositoryServices.Sharing(client: client, replicas: configuration.natsReplicas) {
      (try? await cluster.homes { homes in homes.isCoordinator }) ?? false
    }
  }

  /// Starts to connect to the engines.
  ///
  /// - Parameter port: at which this Router listens.
  func start(_ plane: DataPlaneHandle, _ cluster: RouterCluster?, port: Int) {
    let address =
      configuration.clusterAddress ?? ListenAddress(host: configuration.listen.host, port: port)
    if cluster != nil, ["0.0.0.0", "::"].contains(address.host) {
      logger.warning(
        "other Routers cannot reach this one at \(address): set --cluster-address")
    }
    plane.eventLoop.execute {
      plane.onLoop.start()
      cluster?.start(address: address)
    }
  }
}
