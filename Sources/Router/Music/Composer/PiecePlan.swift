import WireProtocol

/// A piece before its notes are written: its grid, its chords and its motif. Places are in ticks, sixteenths
/// (semiquavers) from the start.
package struct PiecePlan: Sendable {
  package let deliveryID: String
  package let parameters: MusicalParameters
  package let key: Key
  /// Samples of a quarter (crotchet).
  package let beat: Int
  /// The length of one chord.
  package let chordTicks: Int
  /// The last is held while the piece dies away.
  package let chords: [Chord]
  /// Where the last chord begins.
  package let finalTick: Int
  package let motif: Motif
  /// The melody's.
  package let register: Register
  /// Whether it begins on the chord with which the last piece asked its question.
  package let answers: Bool

  /// - Parameter history: of what came before the event.
  package init(_ event: RepositoryEvent, _ parameters: MusicalParameters, _ history: MusicHistory) {
    deliveryID = event.deliveryID
    self.parameters = parameters
    let own = Motif(of: event.repositoryID)
    motif = history.motif?.varied(for: event.deliveryID, own: own) ?? own
    key = Key(of: event.repositoryID)
    register = Register(key, around: parameters.mood == .dark ? 58 : 69)
    beat = Int((Double(60 * ScoreLimits.sampleRate) / parameters.tempo).rounded())
    let most = parameters.figure == .remark ? Self.remarkBeats : .max
    let beats = min(PieceLength(intensity: parameters.intensity, tempo: parameters.tempo).beats, most)
    chordTicks = Self.chordBeats(of: beats, tempo: parameters.tempo) * ScoreWriter.ticksPerBeat
    let count = beats * ScoreWriter.ticksPerBeat / chordTicks
    finalTick = (count - 1) * chordTicks
    answers = history.isUnresolved && parameters.cadence == .authentic
    var generator = SeededGenerator("chords:\(event.deliveryID)")
    chords = Self.chords(count, parameters, answers: answers, &generator)
  }

  package func chord(at tick: Int) -> Chord {
    chords[(tick / chordTicks).clamped(to: 0...chords.count - 1)]
  }

  /// Whether a note that begins there belongs to the chord: the first and third beat, and where a chord begins.
  package func isStrong(_ tick: Int) -> Bool {
    tick % 8 == 0 || tick % chordTicks == 0
  }

  /// 0 at the start to 1 at the last chord.
  func progress(at tick: Int) -> Double {
    finalTick == 0 ? 1 : (Double(tick) / Double(finalTick)).clamped(to: 0...1)
  }

  private static let remarkBeats = 4

  /// Half bars while there is little time or the beat is slow, so that harmony moves in any piece.
  private static func chordBeats(of beats: Int, tempo: Double) -> Int {
    switch beats {
    case ...4: beats / 2
    case 16...: tempo > 92 ? 4 : 2
    default: 2
    }
  }

  private static func chords(
    _ count: Int, _ parameters: MusicalParameters, answers: Bool, _ generator: inout SeededGenerator
  ) -> [Chord] {
    let table = Progressions.of(parameters.scale)
    let ending = generator.pick(table.endings(parameters.cadence))
    var roots = Array(ending.suffix(count))
    var phrase = generator.pick(table.openings)
    let other = generator.pick(table.openings)
    // Phrases of four chords; the second and every other has chords of its own.
    var opening: [Int] = []
    while opening.count < count - roots.count {
      opening += phrase
      phrase = phrase == other ? table.openings[0] : other
    }
    roots = opening.prefix(count - roots.count) + roots
    if answers, count > 2 { roots[0] = table.dominant }
    return roots.indices.map { index in
      Chord(roots[index], colour(roots[index], isLast: index == count - 1, parameters, &generator))
    }
  }

  private static func colour(
    _ root: Int, isLast: Bool, _ parameters: MusicalParameters, _ generator: inout SeededGenerator
  ) -> Chord.Colour {
    if isLast {
      switch parameters.cadence {
      case .authentic: return parameters.mood == .bright && generator.chance(40) ? .added : .triad
      case .plagal: return generator.chance(50) ? .added : .triad
      case .half: return generator.chance(60) ? .suspended : .triad
      case .deceptive: return .seventh
      }
    }
    // More colour where it is tense or where much goes on.
    let spice = Int(20 + 40 * parameters.emotion.tension)
    return generator.chance(spice) ? .seventh : root == 0 && generator.chance(20) ? .added : .triad
  }
}
