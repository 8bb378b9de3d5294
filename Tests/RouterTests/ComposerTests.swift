import RouterCore
import Testing
import WireProtocol

/// A piece with what it was made from.
private struct Piece {
  let event: RepositoryEvent
  let parameters: MusicalParameters
  let plan: PiecePlan
  let score: Score

  /// Composes events of any repositories, each with its repository's past.
  static func all(_ events: [RepositoryEvent]) throws -> [Piece] {
    var histories: [String: MusicHistory] = [:]
    return try events.map { event in
      let repository = "\(event.repositoryID)"
      var history = histories[repository] ?? MusicHistory()
      let parameters = MusicMapper.parameters(for: event, history: history, mapping: .standard)
      let plan = PiecePlan(event, parameters, history)
      let score = try Composer.piece(for: event, parameters: parameters, history: &history).checked()
      histories[repository] = history
      return Piece(event: event, parameters: parameters, plan: plan, score: score)
    }
  }

  /// Voices of a role, each with its notes in order.
  func lines(_ role: Score.Role) -> [[Score.Note]] {
    score.voices.indices.filter { score.voices[$0].role == role }
      .map { voice in score.notes.filter { $0.voice == voice } }.filter { !$0.isEmpty }
  }

  func notes(_ role: Score.Role) -> [Score.Note] { lines(role).flatMap { $0 } }

  /// The sixteenth that is nearest.
  func tick(_ note: Score.Note) -> Int { (note.start * 4 + plan.beat / 2) / plan.beat }

  /// Semitones above the tonic, within an octave.
  func semitone(_ note: Score.Note) -> Int { (note.pitch - plan.key.pitchClass + 120) % 12 }

  func semitones(_ chord: Chord) -> Set<Int> { Set(chord.degrees.map { parameters.scale.semitones[$0] }) }
}

@Suite struct `A piece` {
  // Made once for all tests; what cannot be made stops them here, named.
  private static let events = try! MusicEvents.random(3_000, seed: 7)
  private static let pieces = try! Piece.all(events)
  private static let day = try! Piece.all(MusicEvents.day())

  // MARK: The same everywhere

  @Test func `is the same for the same delivery`() throws {
    let again = try Piece.all(Self.events)
    #expect(zip(again, Self.pieces).allSatisfy { $0.score == $1.score })
  }

  /// If one of these changes, music that was heard before changes: say so in the change log.
  @Test func `is the one that it always was`() throws {
    let fingerprints = try Self.day.map { try MusicEvents.fingerprint($0.score) }
    #expect(fingerprints == Golden.day)
  }

  @Test func `is another one for another delivery, also of the same event`() throws {
    let pieces = try (0..<50).map {
      try Piece.all([MusicEvents.event(.push, id: "delivery-\($0)", commits: 3)])[0]
    }
    #expect(Set(pieces.map(\.score)).count == 50)
    #expect(Set(pieces.map { $0.notes(.melody).map(\.pitch) }).count > 5)
  }

  // MARK: Within its bounds

  @Test func `keeps to the limits of scores`() throws {
    for piece in Self.pieces {
      let length = try #require(piece.score.length)
      #expect(PieceBounds.hold(piece.parameters))
      #expect(length == piece.parameters.durationMs * 48)
      #expect(try encoded(piece.score).count < 60_000)
      #expect(piece.score.voices.count <= 16)
      #expect(piece.score.notes.contains { $0.start == 0 })
      // Time to die away.
      #expect(piece.score.notes.allSatisfy { $0.start < length - 48_000 })
      #expect(piece.score.notes.map(\.start) == piece.score.notes.map(\.start).sorted())
    }
  }

  @Test func `is not silent for long`() {
    for piece in Self.pieces {
      var end = 0
      for note in piece.score.notes {
        #expect(note.start - end < 2 * piece.plan.beat + 48_000)
        end = max(end, note.start + note.length)
      }
    }
  }

  // MARK: Harmony

  @Test func `is in its scale`() {
    for piece in Self.pieces {
      let scale = Set(piece.parameters.scale.semitones)
      for note in piece.notes(.melody) + piece.notes(.harmony) + piece.notes(.bass) {
        #expect(scale.contains(piece.semitone(note)))
      }
    }
  }

  @Test func `comes home where things are resolved, and stays open where they are not`() {
    for piece in Self.pieces {
      let last = piece.plan.chords.last!
      #expect((last.root == 0) == piece.parameters.cadence.isResolved)
      let held = piece.notes(.harmony).filter { piece.tick($0) >= piece.plan.finalTick }
      #expect(held.allSatisfy { piece.semitones(last).contains(piece.semitone($0)) })
      #expect(
        piece.lines(.bass).allSatisfy {
          piece.semitone($0.last!) == piece.parameters.scale.semitones[last.root]
        })
    }
  }

  @Test func `answers the question that the one before left open`() throws {
    let answer = try #require(Self.day.first { $0.event.kind == .checkRun && $0.event.outcome == .success })
    #expect(answer.plan.answers)
    #expect(answer.plan.parameters.scale == .ionian)
    // From the dominant, where questions stop.
    #expect(answer.plan.chords[0].root == 4)
    #expect(answer.plan.chords.last?.root == 0)
    let alone = try Piece.all([answer.event])[0]
    #expect(!alone.plan.answers)
  }

  @Test func `moves its chords by small steps`() {
    for piece in Self.pieces where !piece.plan.parameters.harmonyInstrument.isStruck {
      guard let held = piece.lines(.harmony).first else { continue }
      let tops = Dictionary(grouping: held, by: piece.tick).sorted { $0.key < $1.key }.map {
        $0.value.map(\.pitch).max()!
      }
      #expect(zip(tops, tops.dropFirst()).allSatisfy { abs($0 - $1) <= 7 })
    }
  }

  // MARK: Melody

  @Test func `sings without great leaps, in a range that can be sung`() {
    // Bells that run twice begin anew; where notes are missing the leap is from the one before.
    for piece in Self.pieces where piece.parameters.figure != .glitter {
      let widest = piece.parameters.figure == .stutter ? 19 : 12
      for line in piece.lines(.melody) {
        #expect(line.allSatisfy { (40...108).contains($0.pitch) })
        for (note, next) in zip(line, line.dropFirst()) {
          #expect(abs(note.pitch - next.pitch) <= widest)
        }
      }
    }
  }

  @Test func `mostly goes by step or stays`() {
    let moves = Self.pieces.flatMap { piece in
      piece.lines(.melody).prefix(1).flatMap { zip($0, $0.dropFirst()).map { abs($0.pitch - $1.pitch) } }
    }
    let small = moves.filter { $0 <= 5 }.count
    #expect(Double(small) > 0.8 * Double(moves.count))
  }

  @Test func `has the chord's notes on strong beats`() {
    // Bells that run through the scale are no melody.
    for piece in Self.pieces where piece.parameters.figure != .glitter {
      for note in piece.notes(.melody) where piece.plan.isStrong(piece.tick(note)) {
        let chord = piece.plan.chord(at: piece.tick(note))
        #expect(
          piece.semitones(chord).contains(piece.semitone(note)))
      }
    }
  }

  @Test func `sings one note at a time in each voice`() {
    for piece in Self.pieces {
      for line in piece.lines(.melody) {
        #expect(zip(line, line.dropFirst()).allSatisfy { piece.tick($0) < piece.tick($1) })
      }
    }
  }

  // MARK: A repository's own

  @Test func `has the motif of its repository, a little otherwise each time`() {
    let own = Motif(of: Self.day[0].event.repositoryID)
    #expect(Self.day[0].plan.motif == own)
    for (piece, next) in zip(Self.day, Self.day.dropFirst()) {
      let motif = next.plan.motif
      #expect(motif.notes.count == own.notes.count)
      // Known again by the one before, and by the repository's own.
      #expect(zip(motif.notes, piece.plan.motif.notes).filter { $0 != $1 }.count <= 3)
      #expect(zip(motif.notes, own.notes).filter { $0 != $1 }.count <= 3)
    }
    #expect(Set(Self.day.map { "\($0.plan.motif)" }).count > 5)
  }

  @Test func `has a motif that others have not`() throws {
    let motifs = try (0..<300).map { Motif(of: try SessionID("\($0)")) }
    #expect(Set(motifs.map { "\($0)" }).count > 200)
    for motif in motifs {
      #expect((3...6).contains(motif.notes.count))
      #expect(Set(motif.notes.map(\.step)).count > 1)
      #expect(motif.notes.reduce(0) { $0 + $1.eighths } <= 7)
    }
  }

  @Test func `states the motif's rhythm first`() {
    // Where there is a whole bar for it.
    for piece in Self.pieces
    where piece.parameters.figure == .song && (16..<112).contains(piece.plan.finalTick) {
      let written = piece.plan.motif.notes.dropLast().map { 2 * $0.eighths }
      let ticks = piece.lines(.melody)[0].map(piece.tick)
      let heard = zip(ticks, ticks.dropFirst()).map { $1 - $0 }.prefix(written.count)
      #expect(Array(heard) == written)
    }
  }

  // MARK: Figures

  @Test func `is two or three notes for a comment and everything there is for a release`() throws {
    let comment = try #require(Self.day.first { $0.event.kind == .issueComment })
    #expect((2...3).contains(comment.score.notes.count))
    let release = try #require(Self.day.last)
    #expect(Set(release.score.voices.map(\.role)) == [.melody, .harmony, .bass, .percussion])
    #expect(release.score.voices.contains { $0.instrument == .brass })
    #expect(release.score.notes.count > 200)
  }

  @Test func `branches for a fork`() throws {
    let fork = try #require(Self.day.first { $0.event.kind == .fork })
    let lines = fork.lines(.melody)
    #expect(lines.count == 2)
    #expect(lines[0].first!.start == 0)
    #expect(lines[1].first!.start > fork.plan.beat)
    #expect(lines[0].last!.pitch > lines[1].last!.pitch)
  }

  @Test func `stops and goes on for a forced push`() throws {
    let forced = try #require(Self.day.first { $0.event.isForced })
    let gap = (forced.plan.finalTick - 4) * forced.plan.beat / 4
    let early = 192
    #expect(
      !forced.score.notes.contains { (gap - early..<gap + forced.plan.beat - early).contains($0.start) })
    #expect(forced.score.notes.contains { forced.tick($0) == forced.plan.finalTick })
  }

  @Test func `is lower when a check fails than when it succeeds`() throws {
    func mean(_ outcome: RepositoryEvent.Outcome) throws -> Double {
      let pieces = try (0..<30).map {
        try Piece.all([MusicEvents.event(.checkRun, "completed", outcome, id: "\($0)")])[0]
      }
      let pitches = pieces.flatMap { $0.notes(.melody).map(\.pitch) }
      return Double(pitches.reduce(0, +)) / Double(pitches.count)
    }
    let (failure, success) = (try mean(.failure), try mean(.success))
    #expect(failure + 6 < success)
  }
}

extension Score.Instrument {
  fileprivate var isStruck: Bool {
    [.pluck, .bell, .electricPiano, .marimba, .bass, .drums].contains(self)
  }
}

/// Fingerprints of what was heard.
private enum Golden {
  static let day = [
    "768af2b3a4ff3f57", "f44cd98ab10233c0", "1d7e3329fd52009b", "c201774f331c8146",
    "8c5f4f9681fd2c71", "a0d80aee127c67eb", "e203e5b6dfd3d025", "220fdd81c8781af8",
    "8c091dee8d518f70", "4869306b002a4d0a", "3822655075f86f77", "1825787ff0111bbd",
    "18d75005ce3c49a6", "b7868c63aa9669e0", "167f2f0ad3b98471",
  ]
}
