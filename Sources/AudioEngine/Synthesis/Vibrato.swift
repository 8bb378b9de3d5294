import WireProtocol

/// A wavering of the pitch, which sets in gently.
struct Vibrato {
  struct Shape {
    /// To either side.
    var cents = 0.0
    var hertz = 5.3
    var delaySeconds = 0.25
  }

  private static let onsetSeconds = 0.6

  private let shape: Shape
  private let startTurns: Double
  private let hertz: Double
  private var age = 0

  init(_ shape: Shape, _ random: inout SplitMix64) {
    self.shape = shape
    startTurns = Double(random.signed())
    // No two players waver together.
    hertz = shape.hertz * (1 + 0.08 * Double(random.signed()))
  }

  /// What the frequency changes by in the samples that follow, as a share of it.
  mutating func next(_ samples: Int) -> Double {
    guard shape.cents > 0 else { return 0 }
    let seconds = Double(age) / Double(ScoreLimits.sampleRate)
    age += samples
    let depth = shape.cents * min(1, max(0, (seconds - shape.delaySeconds) / Self.onsetSeconds))
    // So few cents are as good as a share of the frequency.
    return depth * 0.000_577_8 * PortableMath.sine(turns: startTurns + hertz * seconds)
  }
}
