import WireProtocol

extension Composer {
  /// What sounds while nothing happens: quiet, without an end, and of the tonic, fifth, second and fourth alone, so
  /// that a piece in any scale goes with it.
  ///
  /// Every voice repeats after a time of its own, to the sample, so that they do not come together again the same
  /// way within any time that somebody listens.
  package static func bed(repositoryID: SessionID, name: String, mapping: MusicMapping) -> Score {
    var bed = Bed(repositoryID, gains: mapping.gains)
    return bed.score(name)
  }
}

/// Writes a bed.
private struct Bed {
  private let key: Key
  private let gains: MusicalParameters.Gains
  private var generator: SeededGenerator
  private var voices: [Score.Voice] = []
  private var notes: [Score.Note] = []

  /// Half a second: an event is not long waited for by its piece.
  private static let beat = 24_000

  init(_ repository: SessionID, gains: MusicalParameters.Gains) {
    key = Key(of: repository)
    self.gains = gains
    generator = SeededGenerator("bed:\(repository)")
  }

  mutating func score(_ name: String) -> Score {
    let wide: [Score.Instrument] = generator.chance(50) ? [.strings, .choir] : [.choir, .strings]
    let struck: [Score.Instrument] = generator.pick([
      [.bell, .pluck], [.electricPiano, .bell], [.pluck, .electricPiano],
    ])
    // Semitones above the tonic: fifths and octaves low down, seconds and fourths where they are soft or soon gone.
    held(.pad, seconds: 23...31, below: 55, [0, 7], count: 2, gain: 0.32, velocity: 52, pan: -0.3)
    held(.pad, seconds: 29...38, below: 62, [0, 7, 14, -5], count: 3, gain: 0.26, velocity: 48, pan: 0.35)
    held(wide[0], seconds: 31...40, below: 67, [0, 2, 7, -5], count: 3, gain: 0.19, velocity: 44, pan: 0.1)
    held(wide[1], seconds: 35...40, below: 74, [0, -5, 2], count: 2, gain: 0.13, velocity: 42, pan: -0.5)
    held(.triangle, seconds: 19...26, below: 41, [0], count: 1, gain: 0.22, velocity: 46, pan: 0)
    strike(struck[0], seconds: 25...38, below: 79, [0, 2, 5, 7, 12], count: 3, gain: 0.21, pan: 0.5)
    strike(struck[1], seconds: 13...21, below: 72, [0, 7, 12, 14], count: 2, gain: 0.16, pan: -0.55)
    var effects = Score.Effects()
    effects.reverbSeconds = 4.5
    effects.delaySamples = 33_000 + generator.below(12_000)
    effects.delayFeedback = 0.45
    effects.chorusHertz = 0.2
    return Score(
      title: String(String.UnicodeScalarView(name.unicodeScalars.prefix(WireLimits.maximumTagScalarCount))),
      seed: generator.scoreSeed(), beat: Self.beat, length: nil, effects: effects, voices: voices,
      notes: notes)
  }

  /// Notes that take the loop's time in turns, each coming as the one before goes.
  private mutating func held(
    _ instrument: Score.Instrument, seconds: ClosedRange<Int>, below highest: Int, _ intervals: [Int],
    count: Int,
    gain: Double, velocity: Int, pan: Double
  ) {
    let loop = addVoice(instrument, seconds: seconds, gain: gain, pan: pan, delay: 0)
    let tonic = key.tonic(notAbove: highest)
    var start = generator.below(loop / 4)
    var choices = intervals
    for _ in 0..<count {
      let interval = choices.remove(at: generator.below(choices.count))
      let share = loop / count
      notes.append(
        Score.Note(
          voice: voices.count - 1, start: start, length: share * generator.within(60...85) / 100,
          pitch: tonic + interval, velocity: velocity + generator.within(-5...5)))
      start += share * generator.within(85...100) / 100
    }
  }

  private mutating func strike(
    _ instrument: Score.Instrument, seconds: ClosedRange<Int>, below highest: Int, _ intervals: [Int],
    count: Int,
    gain: Double, pan: Double
  ) {
    let loop = addVoice(instrument, seconds: seconds, gain: gain, pan: pan, delay: 0.4)
    let tonic = key.tonic(notAbove: highest)
    for index in 0..<count {
      notes.append(
        Score.Note(
          voice: voices.count - 1, start: loop / count * index + generator.below(loop / count),
          length: 48_000,
          pitch: tonic + generator.pick(intervals), velocity: generator.within(34...52)))
    }
  }

  /// Euclid's.
  private static func divisor(_ left: Int, _ right: Int) -> Int {
    right == 0 ? left : divisor(right, left % right)
  }

  /// - Returns: after how many samples the voice repeats.
  private mutating func addVoice(
    _ instrument: Score.Instrument, seconds: ClosedRange<Int>, gain: Double, pan: Double, delay: Double
  ) -> Int {
    let rate = ScoreLimits.sampleRate
    var loop = generator.within(seconds.lowerBound * rate...seconds.upperBound * rate - 1_000)
    // Two voices without a common divisor are together again after the product of their times: days.
    while voices.contains(where: { Self.divisor($0.loop ?? 1, loop) > 1 }) { loop += 1 }
    voices.append(
      Score.Voice(
        role: .bed, instrument: instrument, gain: gains.applied(to: gain, of: .bed), pan: pan, reverb: 0.55,
        delay: delay,
        chorus: 0.25,
        cutoffHertz: instrument.isSustained ? 1_400 : nil, loop: loop))
    return loop
  }
}
