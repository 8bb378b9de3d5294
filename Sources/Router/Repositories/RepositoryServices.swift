import Glibc
import Logging
import NATS
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
  let keeper: any EventKeeper
  private let logger: Logger

  /// Where several Routers keep what happens together, and which of them polls.
  struct Sharing {
    var client: NATSClient
    var replicas: Int
    var isPoller: @Sendable () async -> Bool
  }

  /// Reads what is known from the disk.
  ///
  /// - Parameter sharing: nil where there is one Router.
  init(
    state: StateStore, clock: CumulativeUptimeClock, sharing: Sharing?, mappingFolder: String?,
    stations: [GroupStation], polling: EventPoller.Options, logger: Logger
  ) throws {
    self.logger = logger
    log = EventLog(store: state, clock: clock)
    mappings = MappingFiles(folder: mappingFolder, logger: logger)
    repositories = Repositories(try log.repositories(), mappings: mappings, stations: stations)
    if let sharing {
      keeper = SharedEvents(
        client: sharing.client, replicas: sharing.replicas, log: log, repositories: repositories, bus: bus,
        statistics: statistics, logger: logger)
    } else {
      keeper = MusicService(
        log: log, repositories: repositories, bus: bus, statistics: statistics, logger: logger)
    }
    receiver = WebhookReceiver(
      keeper: keeper, name: { [repositories] in repositories.repository($0)?.name }, statistics: statistics,
      logger: logger)
    poller = EventPoller(
      polling, receiver: receiver, log: log,
      isOn: { [keeper] in
        guard let sharing else { return true }
        return if await keeper.problem == nil { await sharing.isPoller() } else { false }
      }, logger: logger)
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
      tasks.addTask { await keeper.run() }
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
