import CLinux
import Dispatch
import Glibc
import HTTPLimits
import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import NIOPosix
import ServiceLifecycle
import ServiceSupport
import WireProtocol

/// Puts the engine together and runs it: a play command arrives in `Control`, its source is opened in
/// `Production`, a producer fills a timeline, the pacer reads it, a packet goes out through `Transport`.
package struct AudioEngineApplication: Sendable {
  let configuration: AudioEngineConfiguration
  let logger: Logger
  /// One for each core of a small machine: workers holding a permit are no more.
  private static let heapArenaCount: Int32 = 2
  /// Connections to the HTTP API, which is for a handful of operators' programs.
  private static let maximumConnections = 256
  private static let maximumConnectionsPerAddress = 128

  package init(configuration: AudioEngineConfiguration, logger: Logger) {
    self.configuration = configuration
    self.logger = logger
  }

  /// Runs until a signal asks for the end.
  package func run() async throws {
    antiphon_limit_heap_arenas(Self.heapArenaCount)
    LibavError.silenceLog()
    let mediaRoot: MediaRoot? =
      if let path = configuration.mediaRootPath { try MediaRoot(path) } else { nil }
    let failures = RequestErrorLog(logger: logger, subject: "session error")
    let changes = SessionLog(logger: logger)
    // The pacer's thread does not log. One queue, so that an error comes before the end that it brings.
    let logQueue = DispatchQueue(label: "antiphon.log")
    let pacer = Pacer(
      onFailure: { report, id in logQueue.async { failures.note(report, sessionID: id) } },
      onChange: { change, id in logQueue.async { changes.note(change, of: id) } })
    let workers = WorkerPool(
      maximumWorkers: configuration.maximumWorkers, maximumQueuedJobs: configuration.maximumQueuedJobs)
    let extractor = Extractor(configuration, logger: logger)
    Task { await extractor.lookForVersion() }
    let budget = CPUBudget.current
    let decoders = DecoderPool(count: budget.threadCount + 1, logger: logger)
    try decoders.start()
    let permits = CPUPermits(count: budget.threadCount)
    let admission = TranscodeAdmission(cores: budget.cores, share: configuration.transcodeCPUShare)
    let encoding = try OpusEncoder.measure(configuration.encoding)
    admission.record(packets: encoding.packets, nanoseconds: encoding.nanoseconds)
    let freshness = SourceFreshness(mediaRoot: mediaRoot, webCacheSeconds: configuration.webCacheSeconds)
    let disk = try makeDiskCache(freshness)
    let opener = SourceOpener(
      configuration, mediaRoot: mediaRoot, extractor: extractor, decoders: decoders)
    let timelines = makeTimelines(
      opener: opener,
      freshness: freshness, disk: disk,
      pacer: pacer, workers: workers, permits: permits, admission: admission)
    let renders = RenderService(threadCount: budget.threadCount)
    let handler = CommandHandler(
      pacer: pacer, timelines: timelines, mediaRoot: mediaRoot, decoders: decoders,
      resolver: QueryResolver(mediaRoot: mediaRoot, extractor: extractor, web: opener.web), renders: renders)
    try pacer.start(
      limits: Hello.Limits(
        maximumWorkers: configuration.maximumWorkers, maximumSessions: configuration.maximumSessions,
        readAheadMilliseconds: configuration.readAheadMilliseconds),
      startedAtMilliseconds: Self.nowUnixMilliseconds,
      idleTimeoutSeconds: configuration.idleTimeoutSeconds,
      splicer: try Splicer(threadCount: budget.threadCount),
      acquireTimeline: handler.acquireTimeline)
    let requestErrors = RequestErrorLog(logger: logger)
    let server = PacketServer(
      group: configuration.socketGroup, bufferByteCount: configuration.socketBufferByteCount, pacer: pacer,
      handler: handler, requestErrors: requestErrors, logger: logger)
    let endpoint = try await makeEndpoint(server, pacer, handler, admission)
    defer { endpoint.stop() }
    let connections = ConnectionCounter(
      maximumCount: Self.maximumConnections, maximumCountPerAddress: Self.maximumConnectionsPerAddress)
    let readiness = EngineReadiness(pacer: pacer) { await extractor.statistics().problem }
    let metrics = EngineMetrics(
      pacer: pacer, timelines: timelines, disk: disk, workers: workers, extractor: extractor,
      permits: permits, admission: admission, decoders: decoders, requestErrors: requestErrors,
      readiness: readiness,
      connections: connections, startedNanoseconds: MonotonicClock.nowNanoseconds)
    let watching = Task { await ServiceManager.own.watch { await readiness.isPacing } }
    defer { watching.cancel() }
    try await serveHTTP(
      EngineHTTPAPI(
        handler: handler, renders: renders, pacer: pacer, metrics: metrics, requestErrors: requestErrors,
        requestGuard: RequestGuard(bindHost: configuration.httpHost)), connections, endpoint)
  }

  private func makeDiskCache(_ freshness: SourceFreshness) throws(ErrorReport) -> DiskCache? {
    guard let directory = configuration.cacheDirectory else { return nil }
    return try DiskCache(
      directory: directory, byteLimit: configuration.cacheDirectoryByteCount,
      encoding: configuration.encoding, freshness: freshness, logger: logger)
  }

  private func makeTimelines(
    opener: SourceOpener, freshness: SourceFreshness, disk: DiskCache?, pacer: Pacer, workers: WorkerPool,
    permits: CPUPermits, admission: TranscodeAdmission
  ) -> TimelineStore {
    let configuration = configuration
    let logger = logger
    return TimelineStore(cacheByteLimit: configuration.cacheByteCount, freshness: freshness) {
      (timeline, store) throws(ErrorReport) in
      let producer = Producer(
        opener: opener, permits: permits, admission: admission, settings: configuration.encoding, disk: disk,
        readAheadPackets: configuration.readAheadMilliseconds / WireLimits.packetDurationMilliseconds,
        hasRoom: store.hasRoom(for:), onProduction: store.countProduction,
        onChange: { timeline in
          // Each session that plays it says so too.
          if let failure = timeline.failure, !timeline.isCancelled {
            logger.debug("\(timeline.key.source): \(failure)")
          }
          pacer.timelineChanged(timeline)
        })
      let submitted = MonotonicClock.nowNanoseconds
      do throws(ErrorReport) {
        try workers.submit(for: timeline.client) { slot in
          producer.produce(timeline, submittedNanoseconds: submitted, slot: slot)
        }
      } catch {
        // Another session may have found the timeline in the meantime.
        timeline.finish(failure: error)
        pacer.timelineChanged(timeline)
        throw error
      }
    }
  }

  private func serveHTTP(
    _ api: EngineHTTPAPI, _ connections: ConnectionCounter, _ endpoint: RouterEndpoint
  ) async throws {
    let logger = logger
    let address = ListenAddress(host: configuration.httpHost, port: configuration.httpPort)
    let application = Application(
      router: api.routes(),
      server: HTTPServerBuilder { LimitedHTTPChannel(responder: $0, counter: connections) },
      configuration: .init(
        address: .hostname(address.host, port: address.port), serverName: "Antiphon", backlog: 1_024),
      onServerRunning: { channel in
        guard let address = channel.localAddress, let ip = address.ipAddress, let port = address.port else {
          return
        }
        logger.info("listening on http://\(ip):\(port)")
        ServiceManager.own.ready("listening on http://\(ip):\(port)")
      }, logger: Self.quiet(logger))
    var configuration = ServiceGroupConfiguration(services: [application], logger: Self.quiet(logger))
    configuration.maximumGracefulShutdownDuration = .seconds(StopSignals.graceSeconds)
    let group = ServiceGroup(configuration: configuration)
    StopSignals.atFirst(logger: logger, drainSeconds: endpoint.drainSeconds) {
      await api.drain(endpoint.drain)
      await group.triggerGracefulShutdown()
    }
    do {
      try await group.run()
    } catch let error as IOError where error.errnoCode == EADDRINUSE {
      throw ErrorReport(
        .internal, "\(address) is in use by another program",
        hint: "give another address to --listen")
    }
  }

  /// Hummingbird and the service group say at `info` what this log says in its own words.
  private static func quiet(_ logger: Logger) -> Logger {
    var logger = logger
    logger.logLevel = max(logger.logLevel, .warning)
    return logger
  }

  private static var nowUnixMilliseconds: Int {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return time.tv_sec * 1_000 + time.tv_nsec / 1_000_000
  }
}
