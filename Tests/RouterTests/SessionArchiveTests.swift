import Foundation
import GRDB
import NATS
import NATSTestSupport
import NIOCore
import RouterCore
import Testing
import WireProtocol

@Suite struct `The archive of sessions` {
  private func model(_ name: String = "guild:1", waiting count: Int = 3) throws -> ArchivedModel {
    var model = ArchivedModel(try SessionID(name))
    let tracks = (0..<count).map { QueuedTrack(url: "media:folder/track-\($0).flac", title: "Track \($0)") }
    _ = try model.queue.add(tracks, isSessionIdle: false)
    _ = model.queue.takeChanges()
    return model
  }

  private func answer(_ id: SessionID, _ number: Int, at milliseconds: Int) throws -> StoredAnswer {
    StoredAnswer(
      intent: Intent(id, try IdempotencyKey("key\(number)")), fingerprint: "f", json: Array("\(number)".utf8),
      answeredAtMilliseconds: milliseconds, number: number, client: ClientID(subject: "a", address: nil))
  }

  private func expectWritten(_ outcome: SessionArchive.Outcome) {
    #expect(outcome.failure == nil && outcome.overtaken.isEmpty)
  }

  /// Keys of what a session has in the bucket.
  private func keys(_ bed: ArchiveBed) async throws -> [String] { try await bed.bucket.keys() }

  @Test func `gives a session back, with ages by the reader's running time`() async throws {
    try await ArchiveBed.with { bed in
      let start = ContinuousClock.now
      var model = try model()
      _ = try model.queue.skip(isSessionIdle: true)
      _ = try model.queue.skip(isSessionIdle: false)
      model.answers = [try answer(model.id, 5, at: 40_000), try answer(model.id, 9, at: 100_000)]
      expectWritten(await bed.archive().write(model.anew))
      let other = bed.archive(runningMilliseconds: 1_000_000)
      let read = try #require(try await other.read(model.id))
      #expect(ArchivedModel(read) == model)
      // Touched 10 s before the write, answered 60 s and 0 s before it; the test itself takes a moment.
      let spent = Int((ContinuousClock.now - start) / .milliseconds(1)) + 1
      func isBefore(_ age: Int, _ milliseconds: Int) -> Bool {
        abs(milliseconds - (1_000_000 - age)) <= spent
      }
      #expect(isBefore(10_000, read.record.touchedMilliseconds))
      #expect(isBefore(60_000, read.answers[0].answeredAtMilliseconds))
      #expect(isBefore(0, read.answers[1].answeredAtMilliseconds))
      #expect(read.answers.map(\.number) == [-2, -1])
      #expect(read.answers.map(\.client) == model.answers.map(\.client))
      #expect(read.record.rows.waitingCount == 1 && read.record.rows.historyCount == 1)
      // One whose clock is young has no session from before it was set up.
      #expect(try await bed.archive(runningMilliseconds: 0).read(model.id)?.record.touchedMilliseconds == 1)
      #expect(try await other.read(try SessionID("unknown")) == nil)
    }
  }

  @Test func `keeps nothing that its record does not name`() async throws {
    try await ArchiveBed.with { bed in
      let archive = bed.archive()
      var generator = SplitMix64(state: 3)
      var model = try model()
      expectWritten(await archive.write(model.anew))
      for _ in 0..<60 {
        model.queue.changeAtRandom(using: &generator)
        var batch = StateBatch()
        batch.changes = [model.id: QueueChanges(model.queue.takeChanges())]
        batch.records = [model.record]
        expectWritten(await archive.write(batch))
      }
      // A row that a dead Router has left.
      try await bed.bucket.put("guild=3A1.w.other-1", bytes("{}"))
      #expect(try await archive.read(model.id).map(ArchivedModel.init) == model)
      #expect(await eventually { await archive.isClean })
      #expect(try await keys(bed).count == 1 + model.queue.rowCount + 1)

      try await archive.remove(model.id)
      #expect(try await keys(bed) == [])
      #expect(try await bed.bucket.last("guild=3A1.s", from: .leader) == nil, "not even a mark")
      #expect(try await archive.read(model.id) == nil)
      // It may come again.
      expectWritten(await archive.write(model.anew))
      #expect(try await archive.read(model.id).map(ArchivedModel.init) == model)
      var batch = StateBatch()
      batch.cleared = [model.id]
      expectWritten(await archive.write(batch))
      #expect(try await keys(bed) == [])
    }
  }

  @Test func `is written by one Router alone, and the one of before is told`() async throws {
    try await ArchiveBed.with { bed in
      let (old, new) = (bed.archive(), bed.archive())
      let model = try model()
      let neighbour = try self.model("guild:2")
      expectWritten(await old.write(model.anew))
      let taken = try await ArchiveBed.withStore { store in
        try await SessionImport(from: new, into: store)(model.id)
      }
      #expect(taken != nil)
      // What else is in the batch is written.
      var batch = model.anew
      batch.cleared.insert(neighbour.id)
      batch.changes[neighbour.id] = QueueChanges(neighbour.queue.allRows)
      batch.records.append(neighbour.record)
      batch.records[0].volume = 0.25
      let outcome = await old.write(batch)
      #expect(outcome.overtaken == [model.id] && outcome.failure == nil)
      #expect(try await new.read(model.id).map(ArchivedModel.init) == model)
      #expect(try await new.read(neighbour.id).map(ArchivedModel.init) == neighbour)
      #expect(await eventually { await old.isClean })
      #expect(try await keys(bed).count == 2 * (1 + 3), "the rows of what came too late are erased")
      var changed = model
      changed.volume = 0.75
      expectWritten(await new.write(changed.anew))
      // One that it never had is another's too.
      #expect(await bed.archive().write(model.anew).overtaken == [model.id])
      // And one that it would remove.
      let third = bed.archive()
      expectWritten(await third.write(try self.model("guild:3").anew))
      try await ArchiveBed.withStore { store in
        _ = try await SessionImport(from: new, into: store)(try SessionID("guild:3"))
      }
      await #expect(throws: ArchiveError.overtaken(try SessionID("guild:3"))) {
        try await third.remove(try SessionID("guild:3"))
      }
      #expect(try await new.read(try SessionID("guild:3")) != nil)
    }
  }

  @Test func `has positions every few seconds, and everything else at once`() async throws {
    try await ArchiveBed.with { bed in
      let archive = bed.archive()
      let model = try model()
      let written = ContinuousClock.now
      expectWritten(await archive.write(model.anew))
      func revision() async throws -> UInt64? {
        try await bed.bucket.last("guild=3A1.s", from: .leader)?.revision
      }
      let first = try await revision()
      var positions = 0
      while try await revision() == first, positions < 1_000 {
        positions += 1
        var batch = StateBatch()
        batch.positions = [(session: model.id, milliseconds: positions)]
        expectWritten(await archive.write(batch))
        try await Task.sleep(for: .milliseconds(20))
      }
      // Both clocks are read to the millisecond below.
      #expect(ContinuousClock.now - written >= .milliseconds(RouterLimits.archivedPositionMilliseconds - 2))
      #expect(try await archive.read(model.id)?.record.positionMilliseconds == positions)
      // Of one that it does not have, nothing.
      var batch = StateBatch()
      batch.positions = [(session: try SessionID("unknown"), milliseconds: 1)]
      expectWritten(await archive.write(batch))
      #expect(try await archive.read(try SessionID("unknown")) == nil)
      batch.records = [model.record]
      expectWritten(await archive.write(batch))
      #expect(try await archive.read(model.id)?.record.positionMilliseconds == 0)
    }
  }

  @Test func `has what cannot be read put aside, and the rest is there`() async throws {
    try await ArchiveBed.with { bed in
      let model = try model()
      expectWritten(await bed.archive().write(model.anew))
      let key = "guild=3A1.s"
      let record = try #require(try await bed.bucket.last(key, from: .leader))
      let newer = try await bed.bucket.put("guild=3A1.w.x-1", bytes(#"{"id":"8","v":2,"url":"media:d"}"#))
      let text = String(buffer: try #require(record.value))
      let list = try #require(text.firstMatch(of: /"waiting":"([^"]*)"/))
      let damaged = text.replacing(
        list.0, with: "\"waiting\":\"\(newer) \(list.1) \(newer + 1_000)\",\"playing\":\"not JSON\"")
      try await bed.bucket.put(key, bytes(damaged))
      try await ArchiveBed.withStore { store in
        let archive = bed.archive()
        let content = try #require(try await SessionImport(from: archive, into: store)(model.id))
        #expect(ArchivedModel(content) == model)
        #expect(
          content.unreadable.map(\.place)
            == ["playing", "waiting \(newer)", "waiting \(newer + 1_000)"])
        let kept = try await store.read { database in
          try Row.fetchAll(database, sql: "SELECT content FROM unreadable ORDER BY number").map {
            $0["content"] as String
          }
        }
        #expect(kept == ["not JSON", #"{"id":"8","v":2,"url":"media:d"}"#, "it is gone"])
        expectWritten(await archive.write(model.anew))
        #expect(try await archive.read(model.id)?.unreadable == [])
      }
      try await bed.bucket.put(key, bytes(#"{"v":2}"#))
      await #expect(throws: ArchiveError.self) { try await bed.archive().read(model.id) }
    }
  }

  @Test func `is on the disk of the Router that takes it over`() async throws {
    try await ArchiveBed.with { bed in
      var model = try model(waiting: 20)
      _ = try model.queue.skip(isSessionIdle: true)
      _ = try model.queue.skip(isSessionIdle: false)
      model.answers = [try answer(model.id, 7, at: 90_000)]
      expectWritten(await bed.archive().write(model.anew))
      try await ArchiveBed.withStore { store in
        // What was there before is not the session any more.
        var stale = StateBatch()
        var other = try self.model(waiting: 2)
        other.queue.setLoop(.queue)
        stale.changes = [model.id: QueueChanges(other.queue.allRows)]
        stale.records = [other.record]
        try await withCheckedThrowingContinuation { (done: CheckedContinuation<Void, any Error>) in
          store.write(stale) { done.resume(with: $0) }
        }
        let content = try #require(try await SessionImport(from: bed.archive(), into: store)(model.id))
        let saved = try store.load()
        #expect(saved.sessions == [content.record])
        #expect(saved.answers == content.answers)
        let loaded = try await withCheckedThrowingContinuation {
          (done: CheckedContinuation<LoadedQueue, any Error>) in
          store.loadQueue(of: content.record) { done.resume(with: $0) }
        }
        #expect(loaded.queue.view() == model.queue.view() && loaded.queue.history == model.queue.history)
        try store.removeShared()
        #expect(try store.load().sessions == [] && store.load().answers == [])
      }
    }
  }

  @Test func `says why it cannot be written`() async throws {
    try await ArchiveBed.with { bed in
      let archive = bed.archive()
      let model = try model()
      expectWritten(await archive.write(model.anew))
      bed.server.end()
      #expect(await eventually { !bed.bucket.client.isConnected })
      let outcome = await archive.write(model.anew)
      guard case .unavailable(let reason) = outcome.failure else {
        Issue.record("\(outcome)")
        return
      }
      #expect(reason.contains("not connected to NATS"))
      #expect(outcome.possiblyWritten.isEmpty)
      await #expect(throws: ArchiveError.self) { try await archive.read(model.id) }
      await #expect(throws: ArchiveError.self) { try await archive.remove(model.id) }
    }
  }

  @Test func `takes a thousand sessions in one batch`() async throws {
    try await ArchiveBed.with { bed in
      let models = try (0..<1_000).map { try model("s\($0)", waiting: 3) }
      var batch = StateBatch()
      for model in models {
        batch.changes[model.id] = QueueChanges(model.queue.allRows)
        batch.records.append(model.record)
      }
      let archive = bed.archive()
      let clock = ContinuousClock()
      let withRows = await clock.measure { expectWritten(await archive.write(batch)) }
      print("1,000 sessions with 3 rows each: \(withRows)")
      var records = StateBatch()
      records.records = models.map(\.record)
      let alone = await clock.measure { expectWritten(await archive.write(records)) }
      print("1,000 records alone: \(alone)")
      for model in models.shuffled().prefix(20) {
        #expect(try await archive.read(model.id).map(ArchivedModel.init) == model)
      }
    }
  }

  @Test func `takes the longest queue`() async throws {
    try await ArchiveBed.with { bed in
      let archive = bed.archive()
      var model = try model(waiting: RouterLimits.maximumQueueEntries)
      let clock = ContinuousClock()
      func say(_ what: String, _ batch: StateBatch) async throws {
        let time = await clock.measure { expectWritten(await archive.write(batch)) }
        let record = try #require(try await bed.bucket.last("guild=3A1.s", from: .leader)?.value)
        print("10,000 entries, \(what): \(time), the record has \(record.readableBytes) bytes")
        #expect(record.readableBytes < 1 << 20)
      }
      try await say("added", model.anew)
      var generator = SplitMix64(state: 1)
      model.queue.shuffle(using: &generator)
      var batch = StateBatch()
      batch.changes = [model.id: QueueChanges(model.queue.takeChanges())]
      batch.records = [model.record]
      try await say("shuffled", batch)
      var read: ArchivedModel?
      let reading = try await clock.measure {
        read = try await archive.read(model.id).map(ArchivedModel.init)
      }
      #expect(read == model)
      let removing = try await clock.measure { try await archive.remove(model.id) }
      print("10,000 entries, read: \(reading), removed: \(removing)")
      #expect(try await keys(bed) == [])
    }
  }
}
