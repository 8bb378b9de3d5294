import Glibc
import Logging
import ServiceSupport

/// Builds and runs everything between a delivery and its music.
struct RepositoryServices: Sendable {
  let log: EventLog
  let repositories: Repositories
  let bus = EventBus()
  let statistics = RepositoryStatistics()
  let mappings: MappingFiles
  let receiver: WebhookReceiver
  let poller: EventPoller
  private let service: MusicService
  private let logger: Logger

  /// Reads what is known from the disk.
  init(
    state: StateStore, clock: CumulativeUptimeClock, mappingFolder: String?, stations: [GroupStation],
    polling: EventPoller.Options, logger: Logger
  ) throws {
    self.logger = logger
    log = EventLog(store: state, clock: clock)
    mappings = MappingFiles(folder: mappingFolder, logger: logger)
    repositories = Repositories(try log.repositories(), mappings: mappings, stations: stations)
    receiver = WebhookReceiver(
      log: log, name: { [repositories] in repositories.repository($0)?.name },
      onAppended: { [repositories] in repositories.recordDelivery($0, evicted: $1) }, bus: bus,
      statistics: statistics, logger: logger)
    poller = EventPoller(polling, receiver: receiver, logger: logger)
    service = MusicService(
      log: log, repositories: repositories, bus: bus, statistics: statistics, logger: logger)
  }

  /// Makes music until it is cancelled.
  ///
  /// - Parameter listeners: who hears of each piece, by the name that what they lose is counted under.
  func run(listeners: [String: @Sendable (GeneratedMusic) async -> Void]) async {
    let listening = listeners.map { (bus.subscribe($0, to: [.musicGenerated]), $1) }
    await withDiscardingTaskGroup { tasks in
      for (pieces, hear) in listening {
        tasks.addTask { for await music in pieces { await hear(music) } }
      }
      tasks.addTask { await service.run() }
      tasks.addTask { await sweep() }
      tasks.addTask { await poller.run() }
    }
  }

  private func sweep() async {
    while !Task.isCancelled {
      do {
        try await log.sweep()
      } catch {
        logger.warning("old events cannot be taken off the disk: \(error)")
      }
      try? await Task.sleep(for: .seconds(RouterLimits.eventSweepSeconds))
    }
  }
}
