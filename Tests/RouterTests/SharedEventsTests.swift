import Foundation
import GRDB
import Logging
import NATS
import NATSTestSupport
import NIOCore
import RouterCore
import ServiceSupport
import Testing
import WireProtocol

/// One of several Routers, with what it has of repositories.
private struct Member {
  let log: EventLog
  let store: StateStore
  let bus = EventBus()
  let repositories: Repositories
  let statistics = RepositoryStatistics()
  let events: SharedEvents
  /// What is heard there.
  let music: AsyncStream<GeneratedMusic>
  private let folder: String
  private let run: Task<Void, Never>

  /// - Parameter appendTimeout: how long what it is told may take to be kept.
  init(_ client: NATSClient, appendTimeout: Duration = .seconds(30)) throws {
    folder = FileManager.default.temporaryDirectory.path + "/antiphon-\(UUID().uuidString)"
    store = try StateStore(directory: folder)
    log = EventLog(store: store, clock: CumulativeUptimeClock(base: 0))
    let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    repositories = Repositories([], mappings: MappingFiles(folder: nil, logger: logger))
    events = SharedEvents(
      client: client, replicas: 1, log: log, repositories: repositories, bus: bus, statistics: statistics,
      logger: logger, appendTimeout: appendTimeout)
    music = bus.subscribe("test", to: [.musicGenerated], capacity: 1_000)
    run = Task { [events] in await events.run() }
  }

  func isReady() async -> Bool { await eventually { await events.problem == nil } }

  /// What is on its disk, each event with its music.
  func rows() async throws -> [String] {
    try await store.read { database in
      try Row.fetchAll(
        database,
        sql: """
          SELECT repository_id, number, event, received_ms, parameters, score, name, creator, history
          FROM event JOIN repository USING (repository_id) ORDER BY repository_id, number
          """
      ).map { row in row.databaseValues.map(\.description).joined(separator: " ") }
    }
  }

  func end() async throws {
    run.cancel()
    await run.value
    try store.close()
    try FileManager.default.removeItem(atPath: folder)
  }
}

@Suite struct `Repositories of several Routers` {
  private static let tester = {
    var grant = Grant(sessions: [.all], scope: .control)
    grant.client = ClientID(subject: "someone", address: nil)
    return grant
  }()

  private func event(
    _ delivery: String, in repository: String = "1", received: Int = 1_000
  ) throws -> RepositoryEvent {
    RepositoryEvent(
      deliveryID: delivery, kind: .push, repositoryID: try SessionID(repository),
      repositoryName: "octocat/\(repository)", language: "Swift", sender: "octocat", title: "A push",
      commits: 2,
      branch: "main", receivedMilliseconds: received)
  }

  private struct Stand {
    let nats: NATSFixture
    let server: NATSServerProcess

    func join() async throws -> Member { try Member(try await nats.connect(server.url)) }

    func bucket() async throws -> KeyValueBucket {
      try KeyValueBucket("antiphon-repositories", client: try await nats.connect(server.url))
    }

    /// Puts another bucket in the place of the one that is there, with its first events alone.
    ///
    /// - Parameter isOld: whether they were written in 1970.
    func restore(events: Int, isOld: Bool = false) async throws {
      let bucket = try await bucket()
      let told = Told<KeyValueWatchEvent>()
      let watch = try bucket.watch(withHistory: true) { told.add($0) }
      #expect(await eventually { told.values.contains(.current) })
      watch.cancel()
      try await bucket.destroy()
      var settings = KeyValueBucket.Settings()
      settings.history = RouterLimits.maximumEventsPerRepository
      try await bucket.createIfMissing(settings, startsAtTime: true)
      for case .entry(let entry) in told.values.prefix(events) {
        guard let value = entry.value else { continue }
        let text = String(buffer: value)
        let written = isOld ? text.replacing(/"written_ms":\d+/, with: #""written_ms":1"#) : text
        try await bucket.put(entry.key, ByteBuffer(string: written))
      }
    }
  }

  /// Some Routers at one NATS server.
  private func withMembers(
    _ count: Int, appendTimeout: Duration = .seconds(30),
    _ body: ([Member], Stand) async throws -> Void
  ) async throws {
    try await withNATS { nats in
      let server = try nats.server(jetStream: true)
      var members: [Member] = []
      for _ in 0..<count {
        members.append(try Member(try await nats.connect(server.url), appendTimeout: appendTimeout))
      }
      for member in members { #expect(await member.isReady()) }
      try await body(members, Stand(nats: nats, server: server))
      for member in members { try await member.end() }
    }
  }

  @Test(.timeLimit(.minutes(1)))
  func `have each delivery once, with the same number and music at all of them`() async throws {
    try await withMembers(3) { members, _ in
      let deliveries = 40
      // Each Router is told of each, as those that all poll are.
      let answers = try await withThrowingTaskGroup(of: Bool.self) { tasks in
        for number in 0..<deliveries {
          for member in members {
            let event = try event("d\(number)", in: "\(number % 3)")
            tasks.addTask { try await member.events.append(event) != .duplicate }
          }
        }
        return try await tasks.reduce(into: 0) { $0 += $1 ? 1 : 0 }
      }
      #expect(answers == deliveries, "each is new at one Router")
      var all: [[String]] = []
      for member in members {
        #expect(try await eventually { try await member.rows().count == deliveries })
        all.append(try await member.rows())
        #expect(
          member.repositories.all.map { [$0.lastNumber, $0.lastComposed] } == [
            [14, 14], [13, 13], [13, 13],
          ])
        var heard: [String] = []
        for await music in member.music {
          heard.append("\(music.repositoryID) \(music.number)")
          if heard.count == deliveries { break }
        }
        #expect(Set(heard).count == deliveries, "each is heard once at each Router")
      }
      #expect(all[0] == all[1] && all[1] == all[2])
      let made = members.map(\.statistics.composedPieces).reduce(0, +)
      #expect(made == deliveries, "each is made into music by one")
    }
  }

  @Test(.timeLimit(.minutes(1)))
  func `are read by a Router that comes later, which hears what comes then`() async throws {
    try await withMembers(1) { members, nats in
      let old = members[0]
      for number in 0..<5 { _ = try await old.events.append(try event("d\(number)")) }
      _ = try await old.events.append(try event("t"), testOf: Self.tester)
      try await old.events.keepPollMark("etag", of: "octocat/1")
      let late = try await nats.join()
      #expect(await late.isReady())
      #expect(try await late.rows() == old.rows())
      #expect(try await late.log.pollMark(of: "octocat/1") == "", "it was polled, and not by this one")
      #expect(try await old.log.pollMark(of: "octocat/1") == "etag")
      #expect(try await late.events.append(try event("d3")) == .duplicate)
      guard case .new(let next, _, nil) = try await late.events.append(try event("e")) else {
        Issue.record("it is new")
        return
      }
      #expect(next.number == 7)
      var heard = late.music.makeAsyncIterator()
      #expect(await heard.next()?.number == 7, "what was there before is over")
      #expect(try await eventually { try await old.rows() == late.rows() })
      try await late.end()
    }
  }

  @Test(.timeLimit(.minutes(1)))
  func `give way at all of them where one makes room, and may come again`() async throws {
    try await withMembers(2) { members, nats in
      let share = RouterLimits.testRepositoriesPerClient
      for number in 0...share {
        let answer = try await members[0].events.append(
          try event("t\(number)", in: "r\(number)"), testOf: Self.tester)
        guard case .new(_, _, let evicted) = answer else {
          Issue.record("a test event is new")
          return
        }
        #expect(evicted == (number == share ? try SessionID("r0") : nil))
      }
      let evicted = try SessionID("r0")
      for member in members {
        #expect(try await eventually { try await member.rows().count == share })
        #expect(await eventually { member.repositories.repository(evicted) == nil })
      }
      // The other one's, since its first: GitHub's find room.
      guard case .new(let again, _, _) = try await members[1].events.append(try event("a", in: "r0")) else {
        Issue.record("it is new")
        return
      }
      #expect(again.number == 1)
      let late = try await nats.join()
      #expect(await late.isReady())
      #expect(try await late.rows() == members[1].rows())
      try await late.end()
    }
  }

  @Test(.timeLimit(.minutes(1)))
  func `take nothing while JetStream is gone, and go on when it is back`() async throws {
    try await withMembers(2, appendTimeout: .seconds(1)) { members, nats in
      _ = try await members[0].events.append(try event("a"))
      nats.server.end()
      await #expect(throws: (any Error).self) { try await members[0].events.append(try event("b")) }
      try nats.server.start()
      try await expect(["b", "c"], of: members, count: 3)
    }
  }

  @Test(.timeLimit(.minutes(3)))
  func `go on where JetStream has lost them, with what each Router has`() async throws {
    try await withMembers(2) { members, nats in
      try await expect(["a", "b"], of: members, count: 2)
      try await nats.bucket().destroy()
      try await expect(["c", "d"], of: members, count: 4)
      // One that comes then has what is there now, under the same numbers.
      let late = try await nats.join()
      #expect(await late.isReady())
      #expect(late.repositories.all.map(\.lastNumber) == [4])
      try await late.end()
    }
  }

  /// The watch begins anew once it knows that it follows another bucket: what it has told of it by then comes twice.
  @Test(.timeLimit(.minutes(3)))
  func `are the same where JetStream has them again`() async throws {
    try await withMembers(2) { members, nats in
      try await expect(["a", "b", "c", "d"], of: members, count: 4)
      try await nats.restore(events: 4)
      try await expect(["e"], of: members, count: 5)
      for member in members {
        var heard: [Int] = []
        for await music in member.music {
          heard.append(music.number)
          if music.number == 5 { break }
        }
        #expect(heard == [1, 2, 3, 4, 5])
      }
    }
  }

  @Test(.timeLimit(.minutes(3)))
  func `stay deleted for their age where JetStream has them still`() async throws {
    try await withMembers(2) { members, nats in
      try await expect(["a", "b"], of: members, count: 2)
      for member in members {
        try await member.store.write { try $0.execute(sql: "DELETE FROM event WHERE number = 1") }
      }
      try await nats.restore(events: 2, isOld: true)
      try await expect(["c"], of: members, count: 2)
      for member in members { #expect(await eventually { member.repositories.all.map(\.lastNumber) == [3] }) }
    }
  }

  /// What was lost has its numbers given to other events by a Router that never had it.
  @Test(.timeLimit(.minutes(3)))
  func `keep what JetStream still has where it was put back to an older copy`() async throws {
    try await withMembers(2) { members, nats in
      try await expect(["a", "b", "c", "d"], of: members, count: 4)
      try await nats.restore(events: 2)
      let late = try await nats.join()
      #expect(await late.isReady())
      // Between the two that are there and the two that are lost.
      let between = try event("x", received: 2_500)
      guard case .new(let other, _, nil) = try await late.events.append(between) else {
        Issue.record("it is new")
        return
      }
      #expect(other.number == 3)
      for member in members {
        #expect(try await eventually(within: 40) { try await member.rows() == late.rows() })
        #expect(await eventually { member.repositories.all.map(\.lastNumber) == [3] })
      }
      #expect(try await late.rows().count == 3)
      try await late.end()
    }
  }

  /// Each Router in turn is told of a delivery, until it has kept it; then all of them have the same.
  private func expect(_ deliveries: [String], of members: [Member], count: Int) async throws {
    for (index, delivery) in deliveries.enumerated() {
      let event = try event(delivery, received: 1_000 * (index + 1))
      #expect(await eventually { (try? await members[index % 2].events.append(event)) != nil })
    }
    // A watch finds after several seconds that its bucket is gone, and on a busy machine after many.
    for member in members {
      let isThere = try await eventually(within: 40) { try await member.rows().count == count }
      let rows = try await member.rows()
      #expect(isThere, "\(rows)")
    }
    #expect(try await members[0].rows() == members[1].rows())
  }
}
