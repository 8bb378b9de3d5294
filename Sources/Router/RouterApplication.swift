import CLinux
import HTTPLimits
import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import NIOPosix
import ServiceLifecycle
import ServiceSupport

/// The Router, put together: one loop, the data plane on it, and the endpoints.
package struct RouterApplication: Service {
  /// Why the Router could not start, in one line.
  package struct StartError: Error, CustomStringConvertible {
    package let description: String
  }

  let configuration: RouterConfiguration
  let logger: Logger
  private let playgroundFolder: String
  private let openAPIFile: String
  private let onListening: @Sendable (Int) -> Void

  /// - Parameters:
  ///   - playgroundFolder: where the web page's files are.
  ///   - openAPIFile: the description of the API that is served.
  ///   - onListening: told the port once the Router listens.
  package init(
    configuration: RouterConfiguration, logger: Logger,
    playgroundFolder: String = PlaygroundFiles.usualFolder,
    openAPIFile: String = OpenAPIRoute.usualFile,
    onListening: @escaping @Sendable (Int) -> Void = { _ in }
  ) {
    self.configuration = configuration
    self.logger = logger
    self.playgroundFolder = playgroundFolder
    self.openAPIFile = openAPIFile
    self.onListening = onListening
  }

  /// Runs until the graceful shutdown or cancellation of the group it runs in.
  package func run() async throws {
    antiphon_return_freed_blocks(RouterLimits.returnedBlockByteCount)
    let loops = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    loops.next().execute { [logger] in
      // Every packet goes through this thread.
      if !ThreadPriority.goAhead() {
        logger.debug("the packet loop has an ordinary thread's priority: LimitNICE would allow more")
      }
    }
    do {
      try await serve(on: loops)
      try await loops.shutdownGracefully()
    } catch {
      try await loops.shutdownGracefully()
      throw startError(error)
    }
  }

  private func serve(on loops: MultiThreadedEventLoopGroup) async throws {
    let state = try openState()
    let saved = try state.load()
    let nats = try makeNATS(loops.next(), clock: saved.clock)
    let plane = try await DataPlaneHandle.make(
      firstEngine: nats == nil ? .local : .none, stateStore: state, archive: nats?.archive, saved: saved,
      clientLimits: configuration.clientLimits, eventLoop: loops.next(), logger: logger)
    let cluster = try await makeCluster(plane, saved, nats)
    let requestGuard = RequestGuard(
      bindHost: configuration.listen.host, allowedOrigins: configuration.allowOrigin,
      allowedHosts: configuration.allowHost)
    let access = try await configuration.accessControl()
    logger.info("\(access.description)")
    let parts = try RepositoryServices(
      state: state, clock: saved.clock, sharing: sharing(nats?.client, cluster),
      mappingFolder: configuration.musicMappings,
      stations: configuration.githubStation.compactMap { GroupStation($0) },
      polling: try configuration.polling(), logger: logger)
    let streams = try await StreamHubHandle.make(
      plane: plane, log: parts.log, statistics: parts.statistics, renderer: RenderClient(plane: plane),
      newest: { parts.repositories.repository($0)?.lastComposed ?? 0 },
      timing: StreamTiming(heartbeatSeconds: configuration.streamHeartbeatSeconds), logger: logger)
    let budgets = try await plane { plane in
      plane.station.bed = parts.repositories.bed(for:)
      plane.station.groups = parts.repositories.groups(of:)
      return LoopHandle(plane.budgets, on: plane.eventLoop)
    }
    let forwarding = cluster.map {
      SessionForwarding(
        homes: $0.homes, relay: $0.relay, access: access, requestGuard: requestGuard, logger: logger)
    }
    let forwardingClient = cluster.map { ForwardingClient(homes: $0.homes) }
    let connections = ConnectionCounter(
      maximumCount: RouterLimits.maximumConnections, maximumCountPerAddress: .max)
    let application = Application(
      router: try router(plane, budgets, requestGuard, access, parts, streams, cluster, forwardingClient),
      server: HTTPServerBuilder { responder in
        RouterChildChannel(
          responder: responder, plane: plane, requestGuard: requestGuard, access: access,
          connections: connections, relay: cluster?.relay, makeForwarder: forwarding?.makeForwarder)
      },
      configuration: .init(
        address: .hostname(configuration.listen.host, port: configuration.listen.port), backlog: 1_024),
      onServerRunning: { channel in
        let port = channel.localAddress?.port ?? 0
        listening(on: port)
        start(plane, cluster, port: port)
      },
      eventLoopGroupProvider: .shared(loops), logger: frameworkLogger)
    let music = Task {
      await parts.run(listeners: [
        "station": { music in try? await plane { plane in plane.station.perform(music) } },
        "stream": { music in try? await streams { hub in hub.publish(music) } },
      ])
    }
    // Alive is the loop that everything goes through.
    let watching = Task { await ServiceManager.own.watch { (try? await plane { _ in true }) ?? false } }
    defer { watching.cancel() }
    let outcome: Result<Void, any Error>
    do {
      try await run(application, drainedBy: plane)
      // The server waits for requests; WebSockets are still told that the Router stops.
      while connections.count > 0 { try await Task.sleep(for: .milliseconds(5)) }
      outcome = .success(())
    } catch {
      outcome = .failure(error)
    }
    music.cancel()
    await music.value
    // Before the loop ends, so that nothing is scheduled on it any more.
    try await plane { plane in plane.close() }.get()
    try await cluster?.stop()
    try state.close()
    try outcome.get()
  }

  /// Runs the server, which accepts no more connections at once when it is told to stop: it is told after everyone
  /// has been told that the Router stops, `/ready` too.
  private func run(_ application: some Service, drainedBy plane: DataPlaneHandle) async throws {
    let group = ServiceGroup(services: [application], logger: frameworkLogger)
    // Detached from the shutdown of the group that this Router runs in.
    let serving = Task.detached { try await group.run() }
    try await withTaskCancellationHandler {
      try await withGracefulShutdownHandler {
        try await serving.value
      } onGracefulShutdown: {
        Task {
          try await plane { plane in plane.drain() }
          try await Task.sleep(for: .milliseconds(StopSignals.drainMilliseconds))
          // Ends the endless answers, which the server would wait for.
          try await plane { plane in plane.stop() }
          await group.triggerGracefulShutdown()
        }
      }
    } onCancel: {
      serving.cancel()
    }
  }

  private func router(
    _ plane: DataPlaneHandle, _ budgets: LoopHandle<ClientBudgets>, _ requestGuard: RequestGuard,
    _ access: AccessControl, _ parts: RepositoryServices, _ streams: StreamHubHandle,
    _ cluster: RouterCluster?,
    _ forwardingClient: ForwardingClient?
  ) throws -> Hummingbird.Router<RouterRequestContext> {
    let router = Hummingbird.Router(
      context: RouterRequestContext.self, options: .autoGenerateHeadEndpoints)
    if let cluster { router.add(middleware: RelayMiddleware(relay: cluster.relay)) }
    router.add(middleware: EndpointMiddleware(requestGuard: requestGuard, budgets: budgets, logger: logger))
    // Before the middleware that asks for tokens, which is for the routes after it: the page is for everyone.
    addPlayground(to: router)
    let pagePaths = Set(router.routes.map(\.path.description))
    if let cluster, let forwardingClient {
      router.add(middleware: HomeMiddleware(homes: cluster.homes, access: access, client: forwardingClient))
    }
    router.add(middleware: AccessMiddleware(access: access, budgets: budgets, logger: logger))
    AccessRoutes(access: access).add(to: router)
    let longAnswers = FairGate(
      FairPermits(
        limit: RouterLimits.maximumLongAnswers, perClient: RouterLimits.longAnswersPerClient,
        waitingPerClient: RouterLimits.longAnswersWaitingPerClient),
      waitSeconds: RouterLimits.longAnswerWaitSeconds,
      requestError: RequestError(
        .rateLimited, "a long answer is already being prepared for this client, and its queue is full",
        hint: "try again after your previous request has been answered"))
    let others: @Sendable (Request, RouterRequestContext) async -> [[UInt8]] = { request, context in
      await forwardingClient?.answers(to: request, from: context) ?? []
    }
    SessionRoutes(plane: plane, longAnswers: longAnswers, others: others).add(to: router)
    ListenRoutes(plane: plane).add(to: router)
    OperatorRoutes(plane: plane, streams: streams, parts: parts, access: access).add(to: router)
    ArtworkRoutes(store: ArtworkStore(plane: plane)).add(to: router)
    let webhookSecret = try configuration.webhookSecret()
    WebhookRoutes(receiver: parts.receiver, secret: webhookSecret).add(to: router)
    StreamRoutes(streams: streams, receiver: parts.receiver).add(to: router)
    RepositoryRoutes(
      plane: plane, parts: parts,
      replays: ReplayService(parts: parts, renderer: RenderClient(plane: plane)), longAnswers: longAnswers,
      takesWebhooks: webhookSecret != nil, others: others
    ).add(to: router)
    addOpenAPI(to: router)
    logAccess(to: router.routes.filter { !pagePaths.contains($0.path.description) })
    // Behind every route.
    return router.add(middleware: OtherMethodMiddleware(routes: router.routes))
  }

  private func addOpenAPI(to router: Hummingbird.Router<RouterRequestContext>) {
    guard let route = OpenAPIRoute(file: openAPIFile) else {
      return logger.warning("the API's description is not served: \(openAPIFile) cannot be read")
    }
    route.add(to: router)
  }

  private func addPlayground(to router: Hummingbird.Router<RouterRequestContext>) {
    do {
      try PlaygroundFiles(folder: playgroundFolder).add(to: router)
    } catch {
      logger.warning("there is no web page: \(playgroundFolder) cannot be read")
    }
  }

  /// Which routes there are besides the page's, and what they ask for. `Tests/EndToEnd/test_access.py` reads it.
  private func logAccess(to routes: [Hummingbird.Router<RouterRequestContext>.RouteDescription]) {
    for route in routes {
      let access = RouteAccess.of(route.method, route.path.description)
      logger.debug(
        "route \(route.method.rawValue) \(route.path): \(access?.description ?? "not declared")")
    }
  }

  private func listening(on port: Int) {
    let engines =
      configuration.cluster.nats == nil ? "engine at \(configuration.engineSocket)" : "engines at NATS"
    let address = ListenAddress(host: configuration.listen.host, port: port)
    logger.info("listening on http://\(address)/, \(engines)")
    ServiceManager.own.ready("listening on http://\(address)/")
    onListening(port)
  }

  /// What the frameworks say of themselves is for those who look for faults in them.
  private var frameworkLogger: Logger {
    var logger = logger
    if logger.logLevel > .debug { logger.logLevel = .critical }
    return logger
  }

  private func startError(_ error: any Error) -> any Error {
    guard let error = error as? IOError else { return error }
    return StartError(
      description: "cannot listen on \(configuration.listen): \(errorText(error.errnoCode)); "
        + "stop what is there, or choose another address with --listen")
  }
}
