import Foundation
import GRDB
import RouterCore
import Testing
import WireProtocol

@Suite struct `The event log` {
  // Digits are an ID.
  private let repository = try! SessionID("1296269")

  /// - Parameter body: opens the log as the Router does at a start, after having run so long.
  private func withLog(
    _ body: (_ open: (_ runningMilliseconds: Int) throws -> (EventLog, StateStore)) async throws -> Void
  ) async throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "antiphon-\(UUID().uuidString)").path
    defer { try? FileManager.default.removeItem(atPath: folder) }
    try await body { milliseconds in
      let store = try StateStore(directory: folder)
      return (EventLog(store: store, clock: CumulativeUptimeClock(base: milliseconds)), store)
    }
  }

  private func event(_ delivery: String, at milliseconds: Int = 1_000, in id: SessionID? = nil)
    -> RepositoryEvent
  {
    RepositoryEvent(
      deliveryID: delivery, kind: .push, repositoryID: id ?? repository,
      repositoryName: "octocat/Hello-World",
      language: "Swift", sender: "octocat", title: "A push", commits: 2, branch: "main",
      receivedMilliseconds: milliseconds)
  }

  /// Makes an event into music as the service does.
  @discardableResult
  private func play(_ logged: LoggedEvent, _ log: EventLog) async throws -> EventLog.Composed {
    var history = try await log.history(of: logged.event.repositoryID)
    let parameters = MusicMapper.parameters(for: logged.event, history: history, mapping: .standard)
    let score = Composer.piece(for: logged.event, parameters: parameters, history: &history)
    let composed = EventLog.Composed(
      number: logged.number, event: logged.event, parameters: parameters, score: score)
    try await log.save(composed, history: history)
    return composed
  }

  @Test func `takes a delivery once within a day, and again after it`() async throws {
    try await withLog { open in
      var (log, store) = try open(0)
      guard case .new(let first, let known, nil) = try await log.append(event("a")) else {
        Issue.record("it is new")
        return
      }
      #expect(first.number == 1 && known.lastNumber == 1 && known.lastComposed == 0)
      #expect(try await log.append(event("a", at: 2_000)) == .duplicate)
      try store.close()
      // A wall clock in the year 2100 makes nothing old; running does.
      (log, store) = try open(86_000_000)
      #expect(try await log.append(event("a", at: 4_102_444_800_000)) == .duplicate)
      try store.close()
      (log, store) = try open(86_500_000)
      #expect(try await log.append(event("a", at: 3_000)) != .duplicate)
      #expect(try log.repositories().map(\.lastNumber) == [2])
      try store.close()
    }
  }

  @Test func `takes one of equal deliveries at once`() async throws {
    try await withLog { open in
      let (log, store) = try open(0)
      let count = try await withThrowingTaskGroup(of: Bool.self) { tasks in
        for _ in 0..<20 {
          tasks.addTask { [event = event("a")] in try await log.append(event) != .duplicate }
        }
        return try await tasks.reduce(into: 0) { $0 += $1 ? 1 : 0 }
      }
      #expect(count == 1)
      try store.close()
    }
  }

  @Test func `has what is not music yet after the process has died`() async throws {
    try await withLog { open in
      var (log, store) = try open(0)
      for name in ["a", "b", "c"] { _ = try await log.append(event(name)) }
      let uncomposed = try await log.uncomposed()
      #expect(
        uncomposed.map(\.number) == [1, 2, 3] && uncomposed.map(\.event.deliveryID) == ["a", "b", "c"])
      let composed = try await play(uncomposed[0], log)
      try store.close()
      (log, store) = try open(0)
      #expect(try await log.uncomposed().map(\.number) == [2, 3])
      #expect(try log.repositories().map(\.lastComposed) == [1])
      #expect(try await log.history(of: repository).eventCount == 1)
      let page = try await log.page(of: repository, before: nil, limit: 10)
      #expect(page.events == [composed] && page.total == 1)
      try store.close()
    }
  }

  @Test func `keeps so many events and scores of a repository`() async throws {
    try await withLog { open in
      let (log, store) = try open(0)
      for number in 1...(RouterLimits.maximumScoresPerRepository + 5) {
        guard case .new(let logged, _, _) = try await log.append(event("\(number)", at: number)) else {
          return
        }
        try await play(logged, log)
      }
      let first = try await log.piece(of: repository, after: 0)
      #expect(first?.number == 6)
      #expect(try await log.isGap(of: repository, after: 0, before: 6))
      #expect(try await !log.isGap(of: repository, after: 5, before: 6))
      #expect(try await log.piece(of: repository, after: 105) == nil)
      let page = try await log.page(of: repository, before: 7, limit: 3)
      #expect(page.events.map(\.number) == [6, 5, 4] && page.total == 105)
      #expect(page.events.map { $0.score != nil } == [true, false, false])
      try store.close()
    }
  }

  @Test func `makes room for another repository by forgetting the quietest`() async throws {
    try await withLog { open in
      let (log, store) = try open(0)
      for number in 1...RouterLimits.maximumRepositories {
        let id = try SessionID("\(number)")
        _ = try await log.append(event("\(number)", at: number == 7 ? 1 : 1_000 + number, in: id))
      }
      guard
        case .new(_, _, let evicted) = try await log.append(event("new", at: 5_000, in: SessionID("new")))
      else { return }
      #expect(evicted == (try SessionID("7")))
      #expect(try log.repositories().count == RouterLimits.maximumRepositories)
      try store.close()
    }
  }

  private func tester(_ name: String) -> Grant {
    var grant = Grant(subject: name, sessions: [.all], scope: .control)
    grant.client = ClientID(subject: name, address: nil)
    return grant
  }

  @Test func `makes room for test events' repositories by forgetting the same client's`() async throws {
    try await withLog { open in
      let (log, store) = try open(0)
      _ = try await log.append(event("signed", at: 1))
      _ = try await log.append(event("calm", at: 2, in: SessionID("calm")), testOf: tester("calm"))
      for number in 1...(RouterLimits.testRepositoriesPerClient + 3) {
        let id = try SessionID("a-\(number)")
        guard
          case .new(_, _, let evicted) = try await log.append(
            event("\(number)", at: 1_000 + number, in: id), testOf: tester("greedy"))
        else { return }
        let own = number - RouterLimits.testRepositoriesPerClient
        let expected = own > 0 ? try SessionID("a-\(own)") : nil
        #expect(evicted == expected)
      }
      let kept = Set(try log.repositories().map(\.id))
      let calm = try SessionID("calm")
      #expect(kept.contains(repository) && kept.contains(calm))
      #expect(kept.count == 2 + RouterLimits.testRepositoriesPerClient)
      try store.close()
    }
  }

  @Test func `refuses test events' repositories beyond all clients' room, and GitHub's never`() async throws {
    try await withLog { open in
      let (log, store) = try open(0)
      for number in 0..<RouterLimits.maximumTestRepositories {
        _ = try await log.append(
          event("\(number)", at: 1_000, in: SessionID("a-\(number)")), testOf: tester("\(number % 10)"))
      }
      let requestError = await #expect(throws: RequestError.self) {
        try await log.append(event("x", in: SessionID("late")), testOf: tester("late"))
      }
      #expect(requestError?.report.code == .tooManySessions)
      // One who has some of its own makes room by them.
      guard
        case .new(_, _, let evicted) = try await log.append(
          event("y", in: SessionID("more")), testOf: tester("3"))
      else { return }
      #expect(evicted != nil)
      guard case .new(_, _, nil) = try await log.append(event("z")) else {
        Issue.record("GitHub's found no room")
        return
      }
      // What GitHub has told of once is none of the client's any more.
      _ = try await log.append(event("adopted", at: 5_000, in: SessionID("a-4")))
      for number in 0..<RouterLimits.testRepositoriesPerClient {
        _ = try await log.append(
          event("own \(number)", at: 9_000, in: SessionID("b-\(number)")), testOf: tester("4"))
      }
      #expect(try log.repositories().contains { $0.id.description == "a-4" })
      try store.close()
    }
  }

  @Test func `takes scores from the client that has too many`() async throws {
    try await withLog { open in
      let (log, store) = try open(0)
      guard case .new(let signed, _, _) = try await log.append(event("signed", at: 1)),
        case .new(let calm, _, _) = try await log.append(
          event("calm", at: 2, in: SessionID("calm")), testOf: tester("calm"))
      else { return }
      let composed = try await play(signed, log)
      try await play(calm, log)
      for number in 0..<(RouterLimits.testScoresPerClient + 5) {
        let id = try SessionID("a-\(number / 100)")
        guard
          case .new(let logged, _, _) = try await log.append(
            event("\(number)", at: 1_000 + number, in: id), testOf: tester("greedy"))
        else { return }
        try await log.save(
          EventLog.Composed(
            number: logged.number, event: logged.event, parameters: composed.parameters, score: composed.score
          ),
          history: MusicHistory())
      }
      try await log.sweep()
      #expect(try await log.piece(of: repository, after: 0)?.number == 1)
      #expect(try await log.piece(of: SessionID("calm"), after: 0)?.number == 1)
      #expect(try await log.piece(of: SessionID("a-0"), after: 0)?.number == 6)
      try store.close()
    }
  }

  @Test func `puts aside what cannot be read, and goes on behind it`() async throws {
    try await withLog { open in
      let (log, store) = try open(0)
      for number in 1...25 { _ = try await log.append(event("\(number)", at: number)) }
      try await store.write { database in
        try database.execute(sql: "UPDATE event SET event = '{\"v\":99}' WHERE number <= 22")
      }
      #expect(try await log.uncomposed().map(\.number) == [23, 24, 25])
      let aside = try await store.read { database in
        try String.fetchAll(database, sql: "SELECT place FROM unreadable ORDER BY number")
      }
      #expect(aside == (1...22).map { "event \($0)" })
      try store.close()
    }
  }

  @Test func `drops what is older than a month`() async throws {
    try await withLog { open in
      var (log, store) = try open(0)
      for (name, running) in [("old", 0), ("new", 3_600_000)] {
        try store.close()
        (log, store) = try open(running)
        // The clock on the wall has gone back meanwhile.
        guard case .new(let logged, _, _) = try await log.append(event(name, at: 9_000 - running / 1_000))
        else {
          return
        }
        try await play(logged, log)
      }
      try store.close()
      (log, store) = try open(RouterLimits.eventMilliseconds + 3_000_000)
      try await log.sweep()
      #expect(
        try await log.page(of: repository, before: nil, limit: 10).events.map(\.event.deliveryID) == ["new"])
      // What has gone so long ago is a gap to who asks for it.
      #expect(try await log.isGap(of: repository, after: 0, before: 2))
      try store.close()
    }
  }

  @Test func `counts a day in quarters of an hour`() async throws {
    try await withLog { open in
      let (log, store) = try open(0)
      let width = RouterLimits.activityBinMilliseconds
      for (number, time) in [0, width - 1, width, 95 * width, 96 * width].enumerated() {
        _ = try await log.append(event("\(number)", at: 1_000_000 + time))
      }
      let bins = try await log.activity(of: repository, from: 1_000_000)
      #expect(bins.count == 96 && bins[0].events == 2 && bins[0].commits == 4)
      #expect(bins[1].events == 1 && bins[95].events == 1 && bins.map(\.events).reduce(0, +) == 4)
      try store.close()
    }
  }
}
