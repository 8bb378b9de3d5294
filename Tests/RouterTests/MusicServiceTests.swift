import FoundationEssentials
import Logging
import RouterCore
import ServiceSupport
import Testing
import WireProtocol

@Suite struct `The music service` {
  private struct Stand {
    let log: EventLog
    let bus = EventBus()
    let repositories = Repositories(
      [], mappings: MappingFiles(folder: nil, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    )

    /// Writes an event down, as the receiver of webhooks does.
    func write(_ delivery: String, in repository: String) async throws -> LoggedEvent {
      let event = RepositoryEvent(
        deliveryID: delivery, kind: .push, repositoryID: try SessionID(repository), repositoryName: "o/n",
        language: "Swift", sender: "octocat", title: "A push", commits: 2, branch: "main",
        receivedMilliseconds: 1_000)
      guard case .new(let logged, let known, let evicted) = try await log.append(event) else {
        throw ErrorReport(.internal, "the delivery \(delivery) is not new")
      }
      repositories.recordDelivery(known, evicted: evicted)
      return logged
    }
  }

  @Test(.timeLimit(.minutes(1)))
  func `composes what the bus carries, and asks the log where something has not come`() async throws {
    let folder = FileManager.default.temporaryDirectory.path + "/antiphon-\(UUID().uuidString)"
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let store = try StateStore(directory: folder)
    let stand = Stand(log: EventLog(store: store, clock: CumulativeUptimeClock(base: 0)))
    let bus = stand.bus
    let service = MusicService(
      log: stand.log, repositories: stand.repositories, bus: bus, statistics: RepositoryStatistics(),
      logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    var music = bus.subscribe("test", to: [.musicGenerated]).makeAsyncIterator()
    let atStart = try await stand.write("a", in: "1")
    let run = Task { await service.run() }
    let first = await music.next()?.event
    #expect(first == atStart.event, "it was written before the start")

    let silent = try await stand.write("b", in: "2")
    let announced = try await stand.write("c", in: "1")
    bus.publish(announced, on: .gitHub(.push))
    let second = await music.next()?.event
    #expect(second == announced.event, "the log has an older one, and was not asked")

    let last = try await stand.write("d", in: "2")
    bus.publish(last, on: .gitHub(.push))
    let third = await music.next()?.event
    #expect(third == silent.event, "the one before the last has not come")
    let fourth = await music.next()?.event
    #expect(fourth == last.event)

    // Again, as one that was found on the disk before it came.
    bus.publish(last, on: .gitHub(.push))
    let next = try await stand.write("e", in: "1")
    bus.publish(next, on: .gitHub(.push))
    let fifth = await music.next()?.event
    #expect(fifth == next.event, "each event becomes music once")
    run.cancel()
    await run.value
    try store.close()
  }
}
