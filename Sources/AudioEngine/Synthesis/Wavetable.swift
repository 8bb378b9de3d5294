/// One period of a waveform, made of as many harmonics as fit below the Nyquist frequency.
final class Wavetable: Sendable {
  /// A multiple of a power of two, and the first sample once more at the end.
  let samples: [Float]
  let sizeLog2: UInt32
  let harmonicCount: Int

  /// - Parameter harmonics: sine and cosine of each, from the first.
  init(_ harmonics: [(sine: Double, cosine: Double)]) {
    harmonicCount = harmonics.count
    // Reading between two samples errs by (2π × harmonic ÷ size)² ÷ 8 of that harmonic: 80 dB below the whole.
    sizeLog2 = harmonics.count > 64 ? 12 : 11
    let size = 1 << Int(sizeLog2)
    var sums = [Double](repeating: 0, count: size)
    for (index, harmonic) in harmonics.enumerated() where harmonic.sine != 0 || harmonic.cosine != 0 {
      let stride = (index + 1) << (Self.sineSizeLog2 - Int(sizeLog2))
      var position = 0
      for sample in sums.indices {
        let quarter = (position + Self.sine.count / 4) & (Self.sine.count - 1)
        sums[sample] += harmonic.sine * Self.sine[position] + harmonic.cosine * Self.sine[quarter]
        position = (position + stride) & (Self.sine.count - 1)
      }
    }
    samples = (sums + [sums[0]]).map { Float($0) }
  }

  private static let sineSizeLog2 = 12
  private static let sine = (0..<1 << sineSizeLog2).map {
    PortableMath.sine(turns: Double($0) / Double(1 << sineSizeLog2))
  }

  /// Adds the waveform to `output`, beginning where in its period `phase` is, in 2⁻³² of it.
  func add(
    to output: UnsafeMutablePointer<Float>, count: Int, phase: UInt32, step: UInt32, gain: Float
  ) {
    let shift = 32 - sizeLog2
    let mask = (UInt32(1) << shift) - 1
    let scale = 1 / Float(UInt32(1) << shift)
    samples.withUnsafeBufferPointer { samples in
      // Safe: a phase's upper bits are less than the size, and one more sample is there.
      let table = samples.baseAddress!
      var phase = phase
      for index in 0..<count {
        let place = table + Int(phase &>> shift)
        let fraction = Float(Int32(truncatingIfNeeded: phase & mask)) * scale
        output[index] += gain * (place[0] + fraction * (place[1] - place[0]))
        phase &+= step
      }
    }
  }

  /// The same to two channels.
  func add(
    to left: UnsafeMutablePointer<Float>, _ right: UnsafeMutablePointer<Float>, count: Int, phase: UInt32,
    step: UInt32, gains: SIMD2<Float>
  ) {
    let shift = 32 - sizeLog2
    let mask = (UInt32(1) << shift) - 1
    let scale = 1 / Float(UInt32(1) << shift)
    samples.withUnsafeBufferPointer { samples in
      // Safe: as above.
      let table = samples.baseAddress!
      var phase = phase
      for index in 0..<count {
        let place = table + Int(phase &>> shift)
        let fraction = Float(Int32(truncatingIfNeeded: phase & mask)) * scale
        let value = place[0] + fraction * (place[1] - place[0])
        left[index] += gains.x * value
        right[index] += gains.y * value
        phase &+= step
      }
    }
  }
}

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
  private static let counts = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512]

  static let sine = Waveform(harmonicCounts: [1]) { _ in 1 }
  static let saw = Waveform(harmonicCounts: counts) { 2 / (.pi * Double($0)) }
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
