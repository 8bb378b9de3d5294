import Glibc
import Logging
import WireProtocol

/// Everything between a delivery and its music, put together.
struct RepositoryParts: Sendable {
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
    state: StateStore, clock: RunningClock, mappingFolder: String?, stations: [GroupStation],
    polling: EventPoller.Options, logger: Logger
  ) throws {
    self.logger = logger
    log = EventLog(store: state, clock: clock)
    mappings = MappingFiles(folder: mappingFolder, logger: logger)
    repositories = Repositories(try log.repositories(), mappings: mappings, stations: stations)
    receiver = WebhookReceiver(
      log: log, repositories: repositories, bus: bus, statistics: statistics, logger: logger)
    poller = EventPoller(polling, receiver: receiver, logger: logger)
    service = MusicService(
      log: log, repositories: repositories, bus: bus, statistics: statistics, logger: logger)
  }

  /// Makes music, and has it heard, until it is cancelled.
  func run(plane: DataPlaneHandle, streams: StreamHubHandle) async {
    let station = bus.subscribe("station", to: [.musicGenerated])
    let stream = bus.subscribe("stream", to: [.musicGenerated])
    await withDiscardingTaskGroup { tasks in
      tasks.addTask {
        for await music in station { try? await plane { plane in plane.station.perform(music) } }
      }
      tasks.addTask {
        for await music in stream {
          try? await streams { hub in hub.happened(music.repositoryID) }
        }
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
