/// A waveform at every pitch: of its tables, the one that fits a note.
final class Waveform: Sendable {
  private let tables: [Wavetable]
  /// No harmonic is above it.
  private let highestHertz: Double

  /// - Parameter tables: from the poorest to the richest.
  private init(highestHertz: Double, _ tables: [Wavetable]) {
    self.highestHertz = highestHertz
    self.tables = tables
  }

  /// - Parameter harmonic: the strength of each, from 1.
  private convenience init(harmonicCounts: [Int], _ harmonic: (Int) -> Double) {
    // What lies between it and 24 kHz is not heard.
    self.init(
      highestHertz: 20_500,
      harmonicCounts.map { count in Wavetable((1...count).map { (sine: harmonic($0), cosine: 0) }) })
  }

  /// The richest table that has nothing above the limit.
  func table(hertz: Double) -> Wavetable {
    tables.last { Double($0.harmonicCount) * hertz <= highestHertz } ?? tables[0]
  }

  /// Two an octave.
  private static let counts = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256]

  static let saw = Waveform(harmonicCounts: counts) { 2 / (.pi * Double($0)) }
  /// A sawtooth on a strong fundamental.
  static let warmSaw = Waveform(harmonicCounts: counts) { 2 / (.pi * Double($0)) + ($0 == 1 ? 0.7 : 0) }
  static let square = Waveform(harmonicCounts: counts) { $0 % 2 == 1 ? 4 / (.pi * Double($0)) : 0 }
  static let triangle = Waveform(harmonicCounts: counts.filter { $0 <= 64 }) {
    $0 % 2 == 1 ? ($0 % 4 == 1 ? 8 : -8) / (.pi * .pi * Double($0 * $0)) : 0
  }
  /// An open pipe, blown softly.
  static let flute = Waveform(harmonicCounts: [1, 2, 3, 4, 6]) {
    [1, 0.32, 0.16, 0.05, 0.025, 0.012][$0 - 1]
  }

  /// A string plucked at a sixth of its length, with a nail and with a thumb.
  static let brightPluck = pluck(dullAbove: 16)
  static let darkPluck = pluck(dullAbove: 4)

  private static func pluck(dullAbove number: Double) -> Waveform {
    Waveform(harmonicCounts: counts.filter { $0 <= 128 }) { harmonic in
      let height = Double(harmonic) / number
      return 1.6 * PortableMath.sine(turns: Double(harmonic) / 12) / Double(harmonic) / (1 + height * height)
    }
  }

  /// A choir's vowel between "oh" and "ah": the throat's resonances stay where they are while the pitch moves, so
  /// there is a table for every third semitone.
  static let vowel = Waveform(
    highestHertz: vowelHighestHertz,
    stride(from: 126, through: 24, by: -3).map { pitch in
      let hertz = PortableMath.hertz(pitch: Double(pitch) + 1.2)
      let levels = (1...max(1, Int(vowelHighestHertz / hertz))).map { number in
        vowelLevel(Double(number) * hertz) / Double(number).squareRoot()
      }
      let power = levels.reduce(0) { $0 + $1 * $1 }.squareRoot()
      return Wavetable(
        levels.enumerated().map { index, level in
          // Every harmonic begins elsewhere, so that the period has no sharp peak.
          let turns = Double((index + 1) * (index + 1)) * 0.137
          let (sine, cosine) = (PortableMath.sine(turns: turns), PortableMath.cosine(turns: turns))
          return (level / power * sine, level / power * cosine)
        })
    })

  private static func vowelLevel(_ hertz: Double) -> Double {
    var sum = 0.03
    for resonance in vowelResonances {
      let distance = (hertz - resonance.hertz) / resonance.width
      sum += resonance.level / (1 + distance * distance).squareRoot()
    }
    return sum
  }

  private static let vowelHighestHertz = 9_000.0
  private static let vowelResonances: [(hertz: Double, level: Double, width: Double)] = [
    (480, 1, 110), (920, 0.55, 140), (2_500, 0.12, 220), (3_300, 0.07, 260),
  ]
}
