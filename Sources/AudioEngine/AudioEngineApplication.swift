import CLinux
import Glibc
import Hummingbird
import Logging
import NIOCore
import NIOPosix
import ServiceLifecycle
import WireProtocol

/// Puts the engine together and runs it: a play command comes in at `Control`, its source is resolved in
/// `Sources`, a producer fills a timeline, the pacer reads it, a packet goes out through `Transport`.
package struct AudioEngineApplication: Sendable {
  private let configuration: AudioEngineConfiguration
  private let logger: Logger
  /// One for each core of a small machine: workers holding a permit are no more.
  private static let heapArenaCount: Int32 = 2

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
    let pacer = Pacer()
    let workers = WorkerPool(
      maximumWorkers: configuration.maximumWorkers, maximumQueuedJobs: configuration.maximumQueuedJobs)
    let freshness = SourceFreshness(
      mediaRoot: mediaRoot, webCacheSeconds: configuration.webCacheSeconds)
    let disk = try makeDiskCache(freshness)
    let timelines = makeTimelines(
      mediaRoot: mediaRoot, freshness: freshness, disk: disk, pacer: pacer, workers: workers)
    let handler = CommandHandler(pacer: pacer, timelines: timelines, mediaRoot: mediaRoot)
    try pacer.start(
      limits: Hello.Limits(
        maximumWorkers: configuration.maximumWorkers, maximumSessions: configuration.maximumSessions,
        readAheadMilliseconds: configuration.readAheadMilliseconds),
      startedAtMilliseconds: Self.nowUnixMilliseconds,
      acquireTimeline: handler.acquireTimeline)
    let server = try PacketServer(
      path: configuration.socketPath, pacer: pacer, handler: handler, logger: logger)
    try server.start()
    defer { server.stop() }
    logger.info("routers connect to \(configuration.socketPath)")
    let figures = EngineFigures(
      pacer: pacer, timelines: timelines, disk: disk, workers: workers,
      startedNanoseconds: MonotonicClock.nowNanoseconds)
    try await serveHTTP(
      EngineHTTPAPI(
        handler: handler, pacer: pacer, figures: figures,
        requestGuard: RequestGuard(bindHost: configuration.httpHost)))
  }

  private func makeDiskCache(_ freshness: SourceFreshness) throws(ErrorReport) -> DiskCache? {
    guard let directory = configuration.cacheDirectory else { return nil }
    return try DiskCache(
      directory: directory, byteLimit: configuration.cacheDirectoryByteCount,
      encoding: configuration.encoding, freshness: freshness, logger: logger)
  }

  private func makeTimelines(
    mediaRoot: MediaRoot?, freshness: SourceFreshness, disk: DiskCache?, pacer: Pacer, workers: WorkerPool
  ) -> TimelineStore {
    let web = WebAccess(
      policy: AddressPolicy(allowed: configuration.allowedNetworks),
      timeoutSeconds: configuration.sourceTimeoutSeconds, byteLimit: configuration.maximumSourceByteCount,
      bytesPerSecond: configuration.maximumSourceBytesPerSecond,
      eventLoopGroup: MultiThreadedEventLoopGroup.singleton)
    let permits = CPUPermits(count: sysconf(Int32(_SC_NPROCESSORS_ONLN)))
    let configuration = configuration
    let logger = logger
    return TimelineStore(cacheByteLimit: configuration.cacheByteCount, freshness: freshness) {
      (timeline, store) throws(ErrorReport) in
      let producer = Producer(
        mediaRoot: mediaRoot, web: web, permits: permits, settings: configuration.encoding, disk: disk,
        readAheadPackets: configuration.readAheadMilliseconds / WireLimits.packetDurationMilliseconds,
        hasRoom: store.hasRoom(for:), onProduction: store.countProduction,
        onChange: { timeline in
          if let failure = timeline.failure, !timeline.isCancelled {
            logger.warning("\(timeline.key.source): \(failure)")
          }
          pacer.timelineChanged(timeline)
        })
      let submitted = MonotonicClock.nowNanoseconds
      do throws(ErrorReport) {
        try workers.submit { producer.produce(timeline, submittedNanoseconds: submitted) }
      } catch {
        // Another session may have found the timeline in the meantime.
        timeline.finish(failure: error)
        pacer.timelineChanged(timeline)
        throw error
      }
    }
  }

  private func serveHTTP(_ api: EngineHTTPAPI) async throws {
    let logger = logger
    let application = Application(
      router: api.routes(),
      configuration: .init(
        address: .hostname(configuration.httpHost, port: configuration.httpPort), serverName: "Antiphon"),
      onServerRunning: { channel in
        guard let address = channel.localAddress, let ip = address.ipAddress, let port = address.port else {
          return
        }
        logger.info("listening on http://\(ip):\(port)")
      }, logger: Self.quiet(logger))
    var group = ServiceGroupConfiguration(
      services: [application], gracefulShutdownSignals: [.sigterm, .sigint], logger: Self.quiet(logger))
    group.maximumGracefulShutdownDuration = .seconds(4)
    do {
      try await ServiceGroup(configuration: group).run()
    } catch let error as IOError where error.errnoCode == EADDRINUSE {
      throw ErrorReport(
        .internal, "\(configuration.httpHost):\(configuration.httpPort) is in use by another program",
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
