import Foundation
import RouterCore
import Testing
import WireProtocol

@Suite struct `The state on disk` {
  private func withFolder(_ body: (String) async throws -> Void) async throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "antiphon-\(UUID().uuidString)").path
    defer { try? FileManager.default.removeItem(atPath: folder) }
    try await body(folder)
  }

  private func write(_ batch: StateBatch, to store: StateStore) async throws {
    try await withCheckedThrowingContinuation { (done: CheckedContinuation<Void, any Error>) in
      store.write(batch) { done.resume(with: $0) }
    }
  }

  private func queue(of record: SessionRecord, in store: StateStore) async throws -> LoadedQueue {
    try await withCheckedThrowingContinuation { (done: CheckedContinuation<LoadedQueue, any Error>) in
      store.loadQueue(of: record) { done.resume(with: $0) }
    }
  }

  @Test(arguments: 1...6)
  func `is the queue after any changes`(_ seed: UInt64) async throws {
    try await withFolder { folder in
      var generator = SplitMix64(state: seed)
      let store = try StateStore(directory: folder)
      let id = try SessionID("guild:1")
      var queue = TrackQueue()
      for _ in 0..<60 {
        for _ in 0...Int.random(in: 0...3, using: &generator) { queue.changeAtRandom(using: &generator) }
        var batch = StateBatch()
        batch.changes = [id: QueueChanges(queue.takeChanges())]
        var record = SessionRecord(id: id)
        record.loop = queue.loop
        record.bitrateKilobits = queue.bitrateKilobits
        record.current = queue.current
        record.lastID = queue.lastID
        record.lastPlayedNumber = queue.lastPlayedNumber
        record.creator = ClientID(subject: "a", address: nil)
        record.rows.waitingCount = queue.waiting.count
        batch.records = [record]
        try await write(batch, to: store)
        let loaded = try #require(try store.load().sessions.first)
        #expect(loaded == record)
        let kept = try await self.queue(of: loaded, in: store)
        #expect(kept.unreadable.isEmpty)
        #expect(kept.queue.view() == queue.view())
        #expect(kept.queue.history == queue.history)
        #expect(kept.queue.byteCount == queue.byteCount, "counted from nothing as from change to change")
        #expect(Set(queue.waiting.map(\.entry.id)).count == queue.waiting.count)
      }
      try store.close()
    }
  }

  @Test func `finds room between neighbours, however often something is put there`() async throws {
    var queue = TrackQueue()
    _ = try queue.add(
      [QueuedTrack(url: "media:first"), QueuedTrack(url: "media:last")], isSessionIdle: false)
    for number in 0..<200 {
      _ = try queue.add([QueuedTrack(url: "media:\(number)")], at: .index(1), isSessionIdle: false)
      let ranks = queue.waiting.map(\.rank)
      #expect(ranks == ranks.sorted() && Set(ranks).count == ranks.count)
    }
    #expect(queue.waiting.last?.entry.track.url == "media:last")
  }

  @Test func `belongs to one Router alone`() async throws {
    try await withFolder { folder in
      let store = try StateStore(directory: folder)
      try await write(StateBatch(), to: store)
      let error = #expect(throws: StateStore.OpenError.self) { try StateStore(directory: folder) }
      #expect(error?.description.contains("another Router uses") == true)
      try store.close()
    }
  }

  @Test func `says that its file was deleted, and writes no more into nothing`() async throws {
    try await withFolder { folder in
      let store = try StateStore(directory: folder)
      try await write(StateBatch(), to: store)
      try FileManager.default.removeItem(atPath: folder + "/router.sqlite")
      let error = await #expect(throws: (any Error).self) { try await write(StateBatch(), to: store) }
      #expect(String(describing: error).contains("was deleted or replaced"))
      try store.close()
    }
  }

  @Test func `says what is wrong with a file that is none of its own`() async throws {
    try await withFolder { folder in
      try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
      try Data(repeating: 0x41, count: 8_192).write(to: URL(filePath: folder + "/router.sqlite"))
      let error = #expect(throws: StateStore.OpenError.self) { try StateStore(directory: folder) }
      #expect(error?.description.contains("is damaged") == true)
    }
  }

  @Test func `has the answers to commands, but the oldest`() async throws {
    try await withFolder { folder in
      let answers = try (1...3).map { number in
        StoredAnswer(
          intent: Intent(try SessionID("guild:1"), try IdempotencyKey("key\(number)")), fingerprint: "f",
          json: Array("\"\u{1F3B5}\"".utf8),
          answeredAtMilliseconds: 1_000, number: number, client: ClientID(subject: "a", address: nil))
      }
      var store = try StateStore(directory: folder)
      for answer in answers {
        var batch = StateBatch()
        batch.answers = [answer]
        batch.forgottenAnswers = [answer.number - 2]
        try await write(batch, to: store)
      }
      try store.close()
      store = try StateStore(directory: folder)
      #expect(try store.load().answers == Array(answers[1...]))
    }
  }
}
