import WireProtocol

/// Takes notes on a grid of sixteenths (semiquavers) and puts them into samples, a little unevenly as people play.
struct ScoreWriter {
  /// Samples.
  let beat: Int
  /// Samples.
  let length: Int
  private(set) var voices: [Score.Voice] = []
  private var notes: [Score.Note] = []
  private var generator: SeededGenerator

  static let ticksPerBeat = 4
  /// Four milliseconds early or late.
  private static let unevenSamples = 192
  /// A note's length that any sound needs to be heard.
  private static let shortestSamples = 1_920

  init(beat: Int, length: Int, seed: String) {
    self.beat = beat
    self.length = length
    generator = SeededGenerator("playing:\(seed)")
  }

  mutating func addVoice(_ voice: Score.Voice) -> Int {
    voices.append(voice)
    return voices.count - 1
  }

  /// - Parameters:
  ///   - tick: a sixteenth of the grid.
  ///   - ticks: the note's written length.
  ///   - touch: how much of it sounds: below 1 detached, above 1 into the next.
  mutating func add(
    voice: Int, tick: Int, ticks: Int, pitch: Int, velocity: Int, touch: Double = 0.9, delay: Int = 0
  ) {
    // The first notes fall on the grid to the sample: there the piece joins the one that plays.
    let uneven = tick == 0 ? 0 : generator.within(-Self.unevenSamples...Self.unevenSamples)
    let start = max(tick * beat / Self.ticksPerBeat + uneven + delay, 0)
    guard start < length else { return }
    let written = Double(ticks * beat / Self.ticksPerBeat)
    let sounding = Int((written * touch).rounded()).clamped(
      to: Self.shortestSamples...max(length, Self.shortestSamples))
    notes.append(
      Score.Note(
        voice: voice, start: start, length: sounding, pitch: pitch.clamped(to: 0...127),
        velocity: (velocity + generator.within(-3...3)).clamped(to: 1...127)))
  }

  /// Takes away what begins there and lets go of what was begun before.
  mutating func silence(_ ticks: Range<Int>) {
    let early = Self.unevenSamples
    let samples =
      ticks.lowerBound * beat / Self.ticksPerBeat - early..<ticks.upperBound * beat / Self.ticksPerBeat
      - early
    notes.removeAll { samples.contains($0.start) }
    for index in notes.indices where notes[index].start < samples.lowerBound {
      let room = samples.lowerBound - notes[index].start
      notes[index].length = min(notes[index].length, max(room, Self.shortestSamples))
    }
  }

  /// In the order in which they sound.
  func score(title: String, seed: Int, effects: Score.Effects) -> Score {
    let ordered = notes.sorted { ($0.start, $0.voice, $0.pitch) < ($1.start, $1.voice, $1.pitch) }
    return Score(
      title: String(String.UnicodeScalarView(title.unicodeScalars.prefix(WireLimits.maximumTagScalarCount))),
      seed: seed, beat: beat, length: length, effects: effects, voices: voices, notes: ordered)
  }
}
