import Foundation
import NATS
import NATSTestSupport
import RouterCore
import Testing
import WireProtocol

/// Writes that end anywhere: what a Router writes to the archive as it dies, or as its connection breaks.
@Suite struct `A write to the archive that is cut` {
  /// Writers that are cut at random publications, write again, or are followed by another Router.
  private struct Simulation {
    let bed: ArchiveBed
    let reader: SessionArchive
    var generator: SplitMix64
    var archive: SessionArchive
    /// What is confirmed.
    var kept: ArchivedModel
    var lastAnswer = 0
    /// What happened, to be printed with a failure.
    var cuts = 0
    var takeovers = 0

    /// A change of the session, and the batch that writes it.
    mutating func change() throws -> (ArchivedModel, StateBatch) {
      var next = kept
      var batch = StateBatch()
      for _ in 0...Int.random(in: 0...3, using: &generator) { next.queue.changeAtRandom(using: &generator) }
      if Int.random(in: 0...2, using: &generator) == 0 {
        lastAnswer += 1
        let answer = StoredAnswer(
          intent: Intent(next.id, try IdempotencyKey("k\(lastAnswer)")), fingerprint: "f",
          json: Array("\(lastAnswer)".utf8), answeredAtMilliseconds: 99_000, number: lastAnswer)
        next.answers.append(answer)
        batch.answers = [answer]
      }
      if next.answers.count > 3 { batch.forgottenAnswers = [next.answers.removeFirst().number] }
      next.volume = Double.random(in: 0...1, using: &generator)
      batch.changes = [next.id: QueueChanges(next.queue.takeChanges())]
      batch.records = [next.record]
      return (next, batch)
    }

    mutating func armCut() {
      let publication = Int.random(in: 0...7, using: &generator)
      switch Int.random(in: 0...2, using: &generator) {
      case 0: bed.proxy.arm(nil)
      case 1: bed.proxy.arm(.before(publication: publication))
      default: bed.proxy.arm(.behind(publication: publication))
      }
    }

    func read() async throws -> ArchivedModel {
      let content = try await reader.read(kept.id)
      #expect(content?.unreadable.isEmpty != false)
      return content.map(ArchivedModel.init) ?? ArchivedModel(kept.id)
    }

    /// Writes until it is written, as a Router whose NATS is back.
    func insist(_ batch: StateBatch) async throws {
      bed.proxy.arm(nil)
      try await bed.shaky.client.waitUntilConnected()
      var outcome = await archive.write(batch)
      for _ in 0..<20 where outcome.failure != nil { outcome = await archive.write(batch) }
      #expect(outcome.failure == nil && outcome.overtaken.isEmpty)
    }

    /// All of it, in place of a batch that may be there.
    func anew(_ model: ArchivedModel, after batch: StateBatch) -> StateBatch {
      var again = model.anew
      let numbers = batch.answers.map(\.number) + batch.forgottenAnswers
      again.forgottenAnswers = numbers.filter { number in !model.answers.contains { $0.number == number } }
      return again
    }

    mutating func round(_ number: Int) async throws {
      try await bed.shaky.client.waitUntilConnected()
      let (next, batch) = try change()
      armCut()
      let outcome = await archive.write(batch)
      bed.proxy.arm(nil)
      #expect(outcome.overtaken.isEmpty)
      let there = try await read()
      guard outcome.failure != nil else {
        #expect(there == next, "round \(number)")
        kept = next
        return
      }
      cuts += 1
      #expect(there == kept || there == next, "round \(number): \(there) is neither \(kept) nor \(next)")
      if there != kept { #expect(outcome.possiblyWritten.contains(kept.id), "round \(number)") }
      let isAhead = outcome.possiblyWritten.contains(kept.id)
      switch Int.random(in: 0...2, using: &generator) {
      // A client's command: undone.
      case 0: if isAhead { try await insist(anew(kept, after: batch)) }
      // The engine's event: in effect all the same.
      case 1:
        kept = next
        try await insist(isAhead ? anew(kept, after: batch) : batch)
      default: try await takeOver(next)
      }
      #expect(try await read() == kept, "round \(number), afterwards")
    }

    /// What another Router reads, which may find the connection cut still.
    private func imported(by archive: SessionArchive) async throws -> ArchivedContent? {
      for _ in 0..<20 {
        try await bed.shaky.client.waitUntilConnected()
        do {
          return try await ArchiveBed.withStore { [id = kept.id] store in
            try await SessionImport(from: archive, into: store)(id)
          }
        } catch ArchiveError.unavailable {}
      }
      throw ArchiveError.unavailable("it is cut again and again")
    }

    /// Another Router takes the session over; the one of before is not dead, and writes once more.
    mutating func takeOver(_ next: ArchivedModel) async throws {
      takeovers += 1
      let successor = bed.archive(bed.shaky)
      let content = try await imported(by: successor)
      let taken = ArchivedModel(try #require(content))
      #expect(taken == kept || taken == next)
      kept = taken
      let outcome = await archive.write(next.anew)
      #expect(outcome.overtaken == [kept.id])
      #expect(try await read() == kept)
      archive = successor
    }
  }

  @Test(arguments: 1...8)
  func `leaves what was before or what it wrote, never a mix`(_ seed: UInt64) async throws {
    try await ArchiveBed.with { bed in
      var simulation = Simulation(
        bed: bed, reader: bed.archive(), generator: SplitMix64(state: seed), archive: bed.archive(bed.shaky),
        kept: ArchivedModel(try SessionID("guild:\(seed).a")))
      try await simulation.insist(simulation.kept.anew)
      for number in 0..<50 { try await simulation.round(number) }
      #expect(simulation.cuts > 5)
      print("seed \(seed): \(simulation.cuts) cuts, \(simulation.takeovers) takeovers in 50 rounds")
    }
  }

  @Test func `loses nothing that was confirmed when the server is killed and comes back`() async throws {
    try await ArchiveBed.with { bed in
      let archive = bed.archive(bed.shaky)
      var generator = SplitMix64(state: 9)
      var kept = ArchivedModel(try SessionID("a"))
      var failures = 0
      for number in 0..<120 {
        var next = kept
        next.queue.changeAtRandom(using: &generator)
        next.volume = Double(number) / 120
        var batch = StateBatch()
        batch.changes = [next.id: QueueChanges(next.queue.takeChanges())]
        batch.records = [next.record]
        if number == 60 {
          let restart = Task {
            bed.server.end()
            try bed.server.start()
          }
          if await archive.write(batch).failure != nil { failures += 1 }
          try await restart.value
        }
        // Anew where it is not known, until it is there.
        var outcome = await archive.write(number == 60 ? next.anew : batch)
        for _ in 0..<2_000 where outcome.failure != nil {
          failures += 1
          try await Task.sleep(for: .milliseconds(5))
          outcome = await archive.write(next.anew)
        }
        #expect(outcome.failure == nil && outcome.overtaken.isEmpty)
        kept = next
      }
      #expect(failures > 0)
      try await bed.bucket.client.waitUntilConnected()
      #expect(try await bed.archive().read(kept.id).map(ArchivedModel.init) == kept)
    }
  }
}
