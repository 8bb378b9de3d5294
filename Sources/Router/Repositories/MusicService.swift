import Glibc
import Logging
import WireProtocol

/// Makes music of what was delivered: hears of it on the event bus, takes from the disk whatever has not become music,
/// and publishes what it has made. What was not done when the Router died is done at the next start.
struct MusicService: Sendable {
  private let log: EventLog
  private let repositories: Repositories
  private let bus: EventBus
  private let statistics: RepositoryStatistics
  private let logger: Logger
  private let deliveries: AsyncStream<LoggedEvent>

  init(
    log: EventLog, repositories: Repositories, bus: EventBus, statistics: RepositoryStatistics, logger: Logger
  ) {
    self.log = log
    self.repositories = repositories
    self.bus = bus
    self.statistics = statistics
    self.logger = logger
    // From the first on.
    deliveries = bus.subscribe("music", to: EventTopic.everyGitHubEvent)
  }

  /// Runs until it is cancelled.
  func run() async {
    await composeWhatWaits()
    // What is lost on the bus is on the disk all the same.
    for await _ in deliveries { await composeWhatWaits() }
  }

  private func composeWhatWaits() async {
    while !Task.isCancelled {
      do {
        let events = try await log.unplayed()
        guard !events.isEmpty else { return }
        for event in events { try await compose(event) }
      } catch {
        guard !Task.isCancelled else { return }
        logger.error("music cannot be written down: \(error)")
        try? await Task.sleep(for: .seconds(RouterLimits.composeRetrySeconds))
      }
    }
  }

  private func compose(_ logged: LoggedEvent) async throws {
    let id = logged.event.repositoryID
    let mapping = repositories.mapping(for: id).mapping
    var history = try await log.history(of: id)
    let parameters = MusicMapper.parameters(for: logged.event, history: history, mapping: mapping)
    let score =
      parameters.isSilent || logged.event.isPast == true
      ? nil : checked(Composer.piece(for: logged.event, parameters: parameters, history: &history), logged)
    let played = EventLog.Played(
      number: logged.number, event: logged.event, parameters: parameters, score: score)
    try await log.save(played, history: history)
    repositories.played(id, number: logged.number)
    guard let score else { return }
    statistics.countPiece()
    logger.debug("\(logged.event.kind.rawValue) has become music", metadata: ["session": "\(id)"])
    bus.publish(
      GeneratedMusic(number: logged.number, event: logged.event, parameters: parameters, score: score),
      on: .musicGenerated)
  }

  private func checked(_ score: Score, _ logged: LoggedEvent) -> Score? {
    do {
      return try score.checked()
    } catch {
      logger.error(
        "the music of the delivery \(logged.event.deliveryID) is no score: \(error)",
        metadata: ["session": "\(logged.event.repositoryID)"])
      return nil
    }
  }
}
