import NATS
import NATSTestSupport
import NIOCore
import RouterCore
import Testing
import WireProtocol

@Suite struct `Sessions that nobody uses` {
  @Test func `leave markers, which go when everyone has had the time to hear of them`() throws {
    var markers = DeleteMarkers()
    let start = NIODeadline.now()
    let all = try (0..<100).map {
      DeleteMarkers.Marker(id: try SessionID("s\($0)"), revision: UInt64($0 + 1))
    }
    for marker in all { markers.add(marker, now: start) }
    let late = DeleteMarkers.Marker(id: try SessionID("late"), revision: 200)
    markers.add(late, now: start + .minutes(1))
    #expect(markers.due(now: start + DeleteMarkers.lifetime - .nanoseconds(1)) == [])
    let end = start + DeleteMarkers.lifetime
    #expect(markers.due(now: end) == Array(all.prefix(DeleteMarkers.batchCount)))
    #expect(markers.due(now: end) == Array(all.dropFirst(DeleteMarkers.batchCount)))
    #expect(markers.due(now: end) == [])
    #expect(markers.due(now: end + .minutes(1)) == [late])
  }

  @Test(.timeLimit(.minutes(1)))
  func `can be claimed again where the marker is gone, with a later epoch`() async throws {
    try await withNATS { nats in
      let server = try nats.server(jetStream: true)
      let client = try await nats.connect(server.url)
      let homes = HomeBucket(client: client, router: "a")
      try await homes.open(replicas: 1)
      let id = try SessionID("guild:1")
      guard case .won(let first) = await homes.claim(id, replacing: nil) else {
        Issue.record("nobody else claims it")
        return
      }
      try await homes.release(id, epoch: first)
      let bucket = try KeyValueBucket("antiphon-homes", client: client)
      let marker = try #require(try await bucket.last("guild=3A1", from: .leader))
      #expect(marker.value == nil)
      #expect(await homes.purge(.init(id: id, revision: marker.revision)))
      #expect(try await bucket.last("guild=3A1", from: .leader) == nil)
      guard case .won(let second) = await homes.claim(id, replacing: nil) else {
        Issue.record("nobody else claims it")
        return
      }
      #expect(second > marker.revision)
      // A marker of before takes nothing away that came after it.
      #expect(await homes.purge(.init(id: id, revision: marker.revision)))
      #expect(try await bucket.last("guild=3A1", from: .leader)?.revision == second)
    }
  }

  @Test func `take one client's room, and not the others'`() throws {
    var unused = UnusedClaims()
    let (greedy, other) = (
      ClientID(subject: "greedy", address: nil), ClientID(subject: "other", address: nil)
    )
    let now = NIODeadline.now()
    let ids = try (0..<RouterLimits.unusedHomesPerClient).map { try SessionID("s\($0)") }
    for id in ids {
      #expect(unused.hasRoom(for: greedy))
      unused.claimed(id, by: greedy)
      #expect(unused.markUnused(id, now: now) == now)
      #expect(unused.markUnused(id, now: now + .seconds(1)) == now)
    }
    #expect(!unused.hasRoom(for: greedy) && unused.hasRoom(for: other))
    unused.markUsed(ids[0])
    #expect(unused.hasRoom(for: greedy) && unused.count == ids.count - 1)
    // Used for a moment: it is that client's again.
    _ = unused.markUnused(ids[0], now: now)
    #expect(!unused.hasRoom(for: greedy))
    unused.remove(ids[0])
    // Claimed by another since: each is counted for one.
    unused.claimed(ids[1], by: other)
    _ = unused.markUnused(ids[1], now: now)
    #expect(unused.count(of: greedy) == ids.count - 2 && unused.count(of: other) == 1)
    for id in ids { unused.remove(id) }
    #expect(unused.count == 0 && unused.count(of: greedy) == 0 && unused.count(of: other) == 0)
  }
}
