import Glibc
import Logging
import ServiceSupport
import WireProtocol

/// Keeps what is delivered on this machine's disk, makes music of it and publishes it. Deliveries come on the event bus; the
/// disk is asked at the start, so that what was not done when the Router died is done, and where something has not come on
/// the bus.
package struct MusicService: EventKeeper {
  private let log: EventLog
  private let repositories: Repositories
  private let composer: EventComposer
  private static let subscriber = "music"

  private let bus: EventBus
  private let statistics: RepositoryStatistics
  private let logger: Logger
  private let deliveries: AsyncStream<LoggedEvent>

  package init(
    log: EventLog, repositories: Repositories, bus: EventBus, statistics: RepositoryStatistics, logger: Logger
  ) {
    self.log = log
    self.repositories = repositories
    composer = EventComposer(repositories: repositories, logger: logger)
    self.bus = bus
    self.statistics = statistics
    self.logger = logger
    // From the first on.
    deliveries = bus.subscribe(Self.subscriber, to: EventTopic.everyGitHubEvent)
  }

  package func append(
    _ event: RepositoryEvent, testOf tester: Grant? = nil
  ) async throws -> EventLog.Appended {
    let appended = try await log.append(event, testOf: tester)
    if case .new(let logged, let repository, let evicted) = appended {
      repositories.recordDelivery(repository, evicted: evicted)
      bus.publish(logged, on: .gitHub(event.kind))
    }
    return appended
  }

  func keepPollMark(_ mark: String, of source: String) async throws {
    try await log.keepPollMark(mark, of: source)
  }

  var problem: String? { nil }

  /// Makes music until it is cancelled.
  package func run() async {
    await composeWhatWaits()
    var lostCount = 0
    for await event in deliveries {
      let lost = bus.lostEvents[Self.subscriber] ?? 0
      if lost == lostCount, await composeNext(event) { continue }
      lostCount = lost
      await composeWhatWaits()
    }
  }

  /// Composes an event that is its repository's next.
  ///
  /// - Returns: false where the disk has to say what waits: an earlier event has not come, or this one could not be
  ///   saved.
  private func composeNext(_ logged: LoggedEvent) async -> Bool {
    guard let composed = repositories.repository(logged.event.repositoryID)?.lastComposed,
      logged.number <= composed + 1
    else { return false }
    // Else it was found on the disk before it came.
    guard logged.number > composed else { return true }
    do {
      try await compose(logged)
      return true
    } catch {
      return false
    }
  }

  private func composeWhatWaits() async {
    while !Task.isCancelled {
      do {
        let events = try await log.uncomposed()
        guard !events.isEmpty else { return }
        for event in events { try await compose(event) }
      } catch {
        guard !Task.isCancelled else { return }
        logger.error("composed music could not be saved: \(error)")
        try? await Task.sleep(for: .seconds(RouterLimits.composeRetrySeconds))
      }
    }
  }

  private func compose(_ logged: LoggedEvent) async throws {
    let id = logged.event.repositoryID
    var history = try await log.history(of: id)
    let composed = composer.compose(logged, &history)
    try await log.save(composed, history: history)
    repositories.recordComposed(id, number: logged.number)
    guard let music = composed.music else { return }
    statistics.countPiece()
    logger.debug("\(logged.event.kind.rawValue) has become music", metadata: ["session": "\(id)"])
    bus.publish(music, on: .musicGenerated)
  }
}
