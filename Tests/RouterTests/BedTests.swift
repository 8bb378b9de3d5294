import RouterCore
import Testing
import WireProtocol

@Suite struct `A bed` {
  private func bed(_ repository: String) throws -> Score {
    try Composer.bed(repositoryID: SessionID(repository), name: repository, mapping: .standard).checked()
  }

  @Test func `has no end, and goes with every scale`() throws {
    for index in 0..<200 {
      let bed = try bed("\(index)")
      #expect(bed.length == nil)
      #expect(try encoded(bed).count < 60_000)
      let tonic = Key(of: try SessionID("\(index)")).pitchClass
      // The tonic, second, fourth and fifth: nothing that is major or minor.
      #expect(bed.notes.allSatisfy { [0, 2, 5, 7].contains(($0.pitch - tonic + 120) % 12) })
      #expect(bed.voices.allSatisfy { $0.role == .bed })
    }
  }

  @Test func `does not come round within hours`() throws {
    for index in 0..<200 {
      let loops = try bed("\(index)").voices.compactMap(\.loop)
      #expect(loops.count >= 5)
      #expect(loops.allSatisfy { (13 * 48_000...40 * 48_000).contains($0) })
      // Two voices alone are together again after the least common multiple of their loops.
      for (place, loop) in loops.enumerated() {
        for other in loops[..<place] { #expect(loop / divisor(loop, other) * other > 4 * 3_600 * 48_000) }
      }
    }
  }

  private func divisor(_ left: Int, _ right: Int) -> Int { right == 0 ? left : divisor(right, left % right) }

  @Test func `is the repository's own, and always the same`() throws {
    #expect(try bed("1") == bed("1"))
    #expect(Set(try (0..<100).map { try bed("\($0)").voices.map(\.loop) }).count == 100)
    #expect(Set(try (0..<100).map { try bed("\($0)").voices.map(\.instrument) }).count >= 4)
    let fingerprint = try MusicEvents.fingerprint(bed("1296269"))
    #expect(fingerprint == "692743e38c993d67")
  }

  @Test func `is far softer than a piece`() throws {
    #expect(try bed("1").voices.allSatisfy { $0.gain <= 0.35 })
    #expect(try bed("1").notes.allSatisfy { $0.velocity < 64 })
  }
}
