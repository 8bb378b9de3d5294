import Foundation
import NATS
import NATSTestSupport
import NIOCore
import Testing

@Suite struct `A key-value bucket` {
  private func bucket(
    _ nats: NATSFixture, _ settings: KeyValueBucket.Settings = .init()
  ) async throws -> (KeyValueBucket, NATSServerProcess) {
    let server = try nats.server(jetStream: true)
    let bucket = try KeyValueBucket("place", client: try await nats.connect(server.url))
    try await bucket.create(settings)
    return (bucket, server)
  }

  @Test func `values are written and read`() async throws {
    try await withNATS { nats in
      let (bucket, _) = try await bucket(nats)
      // Making it again changes nothing.
      try await bucket.create()
      #expect(try await bucket.get("a.1") == nil)
      #expect(try await bucket.get("a.1", from: .leader) == nil)
      let first = try await bucket.put("a.1", bytes("one"))
      let second = try await bucket.put("a.1", ByteBuffer(bytes: [0, 13, 10, 255]))
      #expect(second > first)
      let expected = KeyValueEntry(key: "a.1", revision: second, value: ByteBuffer(bytes: [0, 13, 10, 255]))
      #expect(try await bucket.get("a.1") == expected)
      #expect(try await bucket.get("a.1", from: .leader) == expected)
      try await bucket.put("empty", bytes(""))
      #expect(try await bucket.get("empty")?.value == bytes(""))
      #expect(try await bucket.get("empty", from: .leader)?.value == bytes(""))
      try await bucket.delete("a.1")
      #expect(try await bucket.get("a.1") == nil)
      #expect(try await bucket.get("a.1", from: .leader) == nil)
      try await bucket.destroy()
      // Of replicas that are not there, none answers; the leader's question is answered by any server.
      let hasty = try KeyValueBucket("place", client: bucket.client, timeout: .milliseconds(200))
      await #expect(throws: KeyValueError.failed(.timeout)) { try await hasty.get("a.1") }
      await #expect(throws: KeyValueError.noJetStream) { try await bucket.put("a.1", bytes("")) }
      await #expect(throws: KeyValueError.noBucket) { try await bucket.get("a.1", from: .leader) }
      await #expect(throws: KeyValueError.noBucket) { try await bucket.keys() }
      await #expect(throws: KeyValueError.noBucket) { try await bucket.destroy() }
    }
  }

  @Test func `of those who write at once, one wins`() async throws {
    try await withNATS { nats in
      let (bucket, _) = try await bucket(nats)
      let winners = try await withThrowingTaskGroup(of: UInt64?.self) { group in
        for number in 0..<20 {
          group.addTask {
            do throws(KeyValueError) {
              return try await bucket.create("session", bytes("\(number)"))
            } catch .wrongRevision { return nil }
          }
        }
        return try await group.compactMap { $0 }.reduce(into: []) { $0.append($1) }
      }
      #expect(winners.count == 1)
      let revision = try #require(winners.first)
      let next = try await bucket.update("session", bytes("next"), revision: revision)
      await #expect(throws: KeyValueError.wrongRevision) {
        try await bucket.update("session", bytes("late"), revision: revision)
      }
      await #expect(throws: KeyValueError.wrongRevision) {
        try await bucket.delete("session", revision: revision)
      }
      #expect(try await bucket.get("session")?.value == bytes("next"))
      try await bucket.delete("session", revision: next)
      // Deleted, it may be made again.
      try await bucket.create("session", bytes("again"))
      await #expect(throws: KeyValueError.wrongRevision) {
        try await bucket.create("session", bytes("twice"))
      }
      #expect(try await bucket.get("session")?.value == bytes("again"))
    }
  }

  /// Debian 12's server does not know the first sequence of a stream.
  @Test(arguments: [false, true]) func `revisions start at the time of the creation, once`(
    fromDebian: Bool
  ) async throws {
    try await withNATS { nats in
      let server = try nats.server(jetStream: true, fromDebian: fromDebian)
      let bucket = try KeyValueBucket("place", client: try await nats.connect(server.url))
      let before = UInt64(Date().timeIntervalSince1970 * 1_000)
      try await bucket.createIfMissing(.init(), startsAtTime: true)
      let behind = UInt64(Date().timeIntervalSince1970 * 1_000)
      let first = try await bucket.put("a", bytes("1"))
      #expect((before...behind).contains(first))
      try await bucket.createIfMissing(.init(), startsAtTime: true)
      #expect(try await bucket.get("a")?.value == bytes("1"))
      #expect(try await bucket.update("a", bytes("2"), revision: first) == first + 1)
    }
  }

  @Test func `revisions start at the time in a bucket that an operator has created`() async throws {
    try await withNATS { nats in
      let (bucket, _) = try await bucket(nats)
      let before = UInt64(Date().timeIntervalSince1970 * 1_000)
      try await bucket.createIfMissing(.init(), startsAtTime: true)
      #expect((before - 60_000...before).contains(try await bucket.put("a", bytes("1"))))
    }
  }

  @Test func `many that create it take nothing away that another has written`() async throws {
    try await withNATS { nats in
      let server = try nats.server(jetStream: true, fromDebian: false)
      var buckets: [KeyValueBucket] = []
      for _ in 0..<20 {
        buckets.append(try KeyValueBucket("place", client: try await nats.connect(server.url)))
      }
      try await withThrowingTaskGroup { tasks in
        for (number, bucket) in buckets.enumerated() {
          tasks.addTask {
            try await bucket.createIfMissing(.init(), startsAtTime: true)
            try await bucket.put("\(number)", bytes(""))
          }
        }
        try await tasks.waitForAll()
      }
      #expect(try await Set(buckets[0].keys()) == Set(buckets.indices.map(String.init)))
    }
  }

  @Test func `keys and entries are those that have a value`() async throws {
    try await withNATS { nats in
      let (bucket, _) = try await bucket(nats)
      #expect(try await bucket.keys() == [])
      for number in 0..<500 { try await bucket.put("eng.\(number)", bytes("\(number)")) }
      try await bucket.put("rt.1", bytes("x"))
      try await bucket.delete("eng.7")
      #expect(
        try await Set(bucket.keys()) == Set((0..<500).filter { $0 != 7 }.map { "eng.\($0)" } + ["rt.1"]))
      #expect(try await bucket.entries("rt.*").map(\.value) == [bytes("x")])
      #expect(try await bucket.keys("rt.2") == [])
    }
  }

  @Test func `a value that is not written again goes`() async throws {
    try await withNATS { nats in
      var settings = KeyValueBucket.Settings()
      settings.timeToLive = .seconds(1)
      settings.isInMemory = true
      let (bucket, _) = try await bucket(nats, settings)
      let start = ContinuousClock.now
      try await bucket.put("eng.1", bytes("lease"))
      let found = try await bucket.get("eng.1")
      // On a machine that is busy it may have gone by then.
      #expect(found != nil || ContinuousClock.now - start >= .milliseconds(900))
      #expect(try await eventually { try await bucket.get("eng.1") == nil })
      #expect(ContinuousClock.now - start >= .milliseconds(900))
      #expect(try await bucket.keys() == [])
      try await bucket.create("eng.1", bytes("new"))
      settings.timeToLive = .seconds(2)
      await #expect(throws: KeyValueError.self) { try await bucket.create(settings) }
    }
  }

  @Test(arguments: [
    "", ".", "a.", ".a", "a..b", "a b", "a*", ">", "ä", "a\r\nb", String(repeating: "k", count: 513),
  ])
  func `what is no key is refused`(key: String) async throws {
    try await withNATS { nats in
      let bucket = try KeyValueBucket("x", client: try nats.start("nats://127.0.0.1:1"))
      await #expect(throws: KeyValueError.invalidKey(String(key.prefix(200)))) { try await bucket.get(key) }
      #expect(throws: KeyValueError.self) { try KeyValueBucket("a.b", client: bucket.client) }
      await #expect(throws: KeyValueError.self) { try await bucket.get("a") }
    }
  }

  @Test func `without JetStream it says so`() async throws {
    try await withNATS { nats in
      let bucket = try KeyValueBucket("x", client: try await nats.connect(nats.server().url))
      await #expect(throws: KeyValueError.noJetStream) { try await bucket.create() }
      await #expect(throws: KeyValueError.noJetStream) { try await bucket.put("a", bytes("")) }
      await #expect(throws: KeyValueError.noJetStream) { try await bucket.get("a") }
      await #expect(throws: KeyValueError.noJetStream) { try await bucket.keys() }
    }
  }

  @Test func `a watch tells what is there, then each change, and goes on after a restart`() async throws {
    try await withNATS { nats in
      let (bucket, server) = try await bucket(nats)
      let told = Told<KeyValueWatchEvent>()
      let a = try await bucket.put("a", bytes("1"))
      let b = try await bucket.put("b", bytes("2"))
      try await bucket.put("other.c", bytes("3"))
      let watch = try bucket.watch("*") { told.add($0) }
      #expect(await told.values(3).count == 3)
      let c = try await bucket.put("c", bytes("4"))
      // Writes that are refused are not told.
      await #expect(throws: KeyValueError.wrongRevision) { try await bucket.create("c", bytes("5")) }
      try await bucket.delete("a")
      var expected: [KeyValueWatchEvent] = [
        .entry(KeyValueEntry(key: "a", revision: a, value: bytes("1"))),
        .entry(KeyValueEntry(key: "b", revision: b, value: bytes("2"))),
        .current,
        .entry(KeyValueEntry(key: "c", revision: c, value: bytes("4"))),
        .entry(KeyValueEntry(key: "a", revision: c + 1, value: nil)),
      ]
      #expect(await told.values(5) == expected)

      server.end()
      try server.start()
      try await bucket.client.waitUntilConnected()
      var revision: UInt64 = 0
      #expect(
        await eventually {
          revision = (try? await bucket.put("d", bytes("6"))) ?? 0
          return revision > 0
        })
      expected.append(.entry(KeyValueEntry(key: "d", revision: revision, value: bytes("6"))))
      #expect(await told.values(6) == expected)

      // Another bucket of the same name begins at 1 again.
      try await bucket.destroy()
      try await bucket.create()
      let new = try await bucket.put("e", bytes("7"))
      #expect(new == 1)
      expected.append(.entry(KeyValueEntry(key: "e", revision: new, value: bytes("7"))))
      #expect(await told.values(7) == expected)

      watch.cancel()
      try await bucket.put("f", bytes("8"))
      try await bucket.client.roundTrip()
      #expect(told.values.count == 7)
    }
  }

  @Test func `several copies are not kept at a server that does not keep them equal`() async throws {
    try await withNATS { nats in
      let server = try await LaggingServer(version: "2.10.25")
      let bucket = try KeyValueBucket("x", client: try await nats.connect(server.url))
      var settings = KeyValueBucket.Settings()
      settings.replicas = 3
      await #expect(throws: KeyValueError.outdatedServer("2.10.25")) { try await bucket.create(settings) }
      server.end()
    }
  }

  @Test func `versions are compared by number`() throws {
    let versions = try ["2.9.10", "2.10.3", "2.10.26", "2.11.0-RC.1", "10.0.0"]
      .map { try #require(NATSServerVersion($0)) }
    #expect(versions == versions.shuffled().sorted())
    #expect(versions[3].description == "2.11.0")
    #expect(["", "2", "2.10", "2.10.x", "two", "2..1"].allSatisfy { NATSServerVersion($0) == nil })
  }

  /// Creates a bucket of a new cluster, whose nodes take a while to find each other and to choose a leader.
  private func create(
    _ bucket: KeyValueBucket, _ settings: KeyValueBucket.Settings, startsAtTime: Bool = false
  ) async throws {
    // The last try says why it fails.
    let isCreated = await eventually(within: 60) {
      (try? await bucket.createIfMissing(settings, startsAtTime: startsAtTime)) != nil
    }
    if !isCreated { try await bucket.createIfMissing(settings, startsAtTime: startsAtTime) }
  }

  /// Of nodes before 2.10 all writes succeed.
  @Test func `three nodes take one of several writes at a time`() async throws {
    try await withNATS { nats in
      let nodes = try nats.cluster()
      var settings = KeyValueBucket.Settings()
      settings.replicas = 3
      var buckets: [KeyValueBucket] = []
      for node in nodes {
        buckets.append(
          try KeyValueBucket("place", client: try await nats.connect(node.url), timeout: .seconds(5)))
      }
      try await create(buckets[0], settings)
      for number in 0..<20 {
        let revision = try await buckets[0].put("a", bytes("\(number)"))
        let winners = await withTaskGroup(of: Bool.self) { tasks in
          for bucket in buckets {
            tasks.addTask { (try? await bucket.update("a", bytes("x"), revision: revision)) != nil }
          }
          return await tasks.reduce(into: 0) { $0 += $1 ? 1 : 0 }
        }
        #expect(winners == 1)
      }
    }
  }

  @Test func `three nodes keep it, and one may go`() async throws {
    try await withNATS { nats in
      let nodes = try nats.cluster()
      let client = try await nats.connect(nodes.map(\.url).joined(separator: ","))
      let bucket = try KeyValueBucket("place", client: client, timeout: .seconds(2))
      var settings = KeyValueBucket.Settings()
      settings.replicas = 3
      try await create(bucket, settings, startsAtTime: true)
      let told = Told<KeyValueWatchEvent>()
      _ = try bucket.watch { told.add($0) }
      var revision = try await bucket.put("a", bytes("0"))
      #expect(revision > 1_700_000_000_000)
      let states = Told<NATSConnectionState>()
      _ = client.observe { states.add($0) }
      guard case .connected(let server) = await states.values(1)[0] else {
        Issue.record("not connected")
        return
      }
      nodes.first { server == "127.0.0.1:\($0.port)" }?.end()
      // A write whose outcome is not known is looked for; the next one follows what is there. Two nodes that choose a
      // leader may vote for themselves several times.
      for number in 1...20 {
        let wanted = bytes("\(number)")
        #expect(
          await eventually(within: 60) {
            do throws(KeyValueError) {
              revision = try await bucket.update("a", wanted, revision: revision)
              return true
            } catch {
              let there = try? await bucket.get("a", from: .leader)
              guard let there, there.value == wanted else { return false }
              revision = there.revision
              return true
            }
          }, "\(number)")
      }
      #expect(try await bucket.get("a", from: .leader)?.value == bytes("20"))
      // The watch may have begun anew before it was current, and say that it is after the last value.
      let last = KeyValueWatchEvent.entry(.init(key: "a", revision: revision, value: bytes("20")))
      #expect(await eventually(within: 60) { told.values.contains(last) }, "\(told.values.suffix(5))")
      #expect(told.values.filter { $0 == .current }.count <= 1)
      let revisions = told.values.compactMap {
        if case .entry(let entry) = $0 { entry.revision } else { nil }
      }
      #expect(revisions == revisions.sorted())
      #expect(Set(revisions).count == revisions.count)
    }
  }

  @Test func `a reply subject says where a message stands`() {
    #expect(
      DeliveryMetadata("$JS.ACK.KV_x.c.1.7.3.1700000000.2").map {
        [$0.streamSequence, $0.consumerSequence, $0.pending]
      }
        == [7, 3, 2])
    #expect(
      DeliveryMetadata("$JS.ACK.hub.acc.KV_x.c.1.7.3.1700000000.2.token")
        .map { [$0.streamSequence, $0.consumerSequence, $0.pending] } == [7, 3, 2])
    #expect(DeliveryMetadata("$JS.ACK.KV_x.c.1.7.3") == nil)
    #expect(DeliveryMetadata("a.b.c.d.e.1.2.3.4") == nil)
  }
}
