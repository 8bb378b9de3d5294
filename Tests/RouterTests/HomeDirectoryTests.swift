import RouterCore
import Testing
import WireProtocol

@Suite struct `The directory of homes` {
  private static let routers = ["a", "b", "c"]
  private static let sessions = (0..<200).compactMap { try? SessionID("s\($0)") }

  /// Router `router`'s, which knows the others.
  private func directory(_ router: String, live: [String] = routers) -> HomeDirectory {
    var directory = HomeDirectory(router: router)
    for other in live where other != router { directory.joined(other) }
    return directory
  }

  private func fill(_ directory: inout HomeDirectory, owner: String, now: Int = 0) {
    for (index, id) in Self.sessions.enumerated() {
      _ = directory.watched(id, owner: owner, revision: UInt64(index + 1), now: now)
    }
  }

  @Test func `knows what the watch has told`() throws {
    let id = try SessionID("one")
    var directory = directory("a")
    #expect(directory.watched(id, owner: "b", revision: 5, now: 0) == .changed)
    #expect(directory.home(of: id) == HomeDirectory.Home(router: "b", epoch: 5))
    #expect(directory.isHome("b") && !directory.isHome("a"))
    #expect(directory.ownEpoch(of: id) == nil)
    #expect(directory.watched(id, owner: nil, revision: 6, now: 0) == .changed)
    #expect(directory.home(of: id) == nil && !directory.isHome("b"))
  }

  @Test func `loses what another has taken`() throws {
    let id = try SessionID("one")
    var directory = directory("a")
    #expect(directory.answered(id, owner: "a", revision: 5, now: 0) == .changed)
    #expect(directory.ownEpoch(of: id) == 5)
    // Its own claim comes by the watch, too.
    #expect(directory.watched(id, owner: "a", revision: 5, now: 0) == .nothing)
    #expect(directory.watched(id, owner: "b", revision: 7, now: 0) == .lost)
    #expect(directory.ownEpoch(of: id) == nil)
  }

  @Test func `takes no answer that is older than what the watch has told`() throws {
    let id = try SessionID("one")
    var directory = directory("a")
    #expect(directory.watched(id, owner: "b", revision: 9, now: 0) == .changed)
    #expect(directory.answered(id, owner: "a", revision: 8, now: 0) == .nothing)
    #expect(directory.watched(id, owner: nil, revision: 10, now: 0) == .changed)
    #expect(directory.answered(id, owner: "a", revision: 8, now: 0) == .nothing)
    #expect(directory.home(of: id) == nil)
  }

  @Test func `misses what a watch from the beginning does not tell`() throws {
    let ids = Array(Self.sessions.prefix(3))
    var directory = directory("a")
    for (index, id) in ids.enumerated() {
      _ = directory.watched(id, owner: "b", revision: UInt64(10 + index), now: 0)
    }
    directory.watchBegins()
    #expect(directory.missingFromWatch([]) == [:], "nothing is told yet")
    // The second is told again, the first is not, and the third is this Router's since.
    _ = directory.watched(ids[1], owner: "b", revision: 11, now: 0)
    _ = directory.answered(ids[2], owner: "a", revision: 20, now: 0)
    #expect(directory.missingFromWatch([ids[1]]) == [ids[0]: HomeDirectory.Home(router: "b", epoch: 10)])
  }

  @Test func `believes a bucket that begins anew`() throws {
    let id = try SessionID("one")
    var directory = directory("a")
    #expect(directory.watched(id, owner: "b", revision: 100, now: 0) == .changed)
    #expect(directory.watched(id, owner: "c", revision: 1, now: 0) == .changed)
    #expect(directory.home(of: id)?.router == "c")
  }

  @Test func `forgets what the leader does not have`() throws {
    let id = try SessionID("one")
    var directory = directory("a")
    _ = directory.watched(id, owner: "b", revision: 5, now: 0)
    let home = try #require(directory.home(of: id))
    _ = directory.watched(id, owner: "c", revision: 6, now: 0)
    #expect(directory.recordMissing(id, since: home, now: 0) == .nothing)
    #expect(directory.recordMissing(id, since: HomeDirectory.Home(router: "c", epoch: 6), now: 0) == .changed)
  }

  @Test func `shares a dead Router's sessions out, each to one at once`() {
    var survivors = ["a", "b"].map { directory($0) }
    for index in survivors.indices {
      fill(&survivors[index], owner: "c")
      #expect(survivors[index].due(now: 1_000_000).isEmpty)
      survivors[index].left("c", now: 5_000)
    }
    let shares = survivors.map { Set($0.due(now: 5_000).map(\.id)) }
    #expect(shares[0].isDisjoint(with: shares[1]))
    #expect(shares[0].union(shares[1]) == Set(Self.sessions))
    #expect(shares.allSatisfy { $0.count > Self.sessions.count / 4 }, "\(shares.map(\.count))")
  }

  @Test func `takes what the first in the order has not taken, a second later`() {
    var directory = directory("a")
    fill(&directory, owner: "c")
    directory.left("c", now: 5_000)
    let own = directory.due(now: 5_000).count
    #expect(own < Self.sessions.count)
    #expect(directory.due(now: 5_000 + HomeDirectory.rankMilliseconds - 1).count == own)
    #expect(directory.due(now: 5_000 + HomeDirectory.rankMilliseconds).count == Self.sessions.count)
  }

  @Test func `takes nothing of one that comes back`() {
    var directory = directory("a")
    fill(&directory, owner: "c")
    directory.left("c", now: 5_000)
    directory.joined("c")
    #expect(directory.due(now: 1_000_000).isEmpty)
  }

  @Test func `waits for a Router of which nothing was heard yet`() {
    var directory = directory("a", live: [])
    fill(&directory, owner: "c", now: 1_000)
    #expect(directory.due(now: 1_000 + HomeDirectory.unheardMilliseconds - 1).isEmpty)
    #expect(directory.due(now: 1_000 + HomeDirectory.unheardMilliseconds).count == Self.sessions.count)
  }

  @Test func `tells from which home it takes over`() throws {
    var directory = directory("a", live: [])
    fill(&directory, owner: "c")
    directory.left("c", now: 0)
    let first = try #require(directory.due(now: 0).first)
    #expect(first.home == directory.home(of: first.id) && first.home.router == "c")
    // What is taken is not due any more.
    #expect(directory.watched(first.id, owner: "b", revision: 1_000, now: 0) == .changed)
    #expect(!directory.due(now: 10_000).contains { $0.id == first.id && $0.home.router == "c" })
  }
}
