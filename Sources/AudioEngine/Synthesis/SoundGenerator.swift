/// What makes one note's raw sound; its envelope and filter are the note's (`SoundingNote`).
protocol SoundGenerator {
  /// Whether nothing more is to be heard, though the note is held.
  var isOver: Bool { get }

  /// Sets what changes slowly for the samples that follow.
  mutating func setControls(_ samples: Int)

  /// Adds the next samples; one that is not stereo (`Instrument.isStereo`) to `left` only. May write over the
  /// span's end, up to a whole vector.
  mutating func add(to left: UnsafeMutablePointer<Float>, _ right: UnsafeMutablePointer<Float>, _ span: Span)
}

/// A wavering of the pitch, which sets in gently.
struct Vibrato {
  struct Shape {
    var cents = 0.0
    var hertz = 5.3
    var delaySeconds = 0.25
  }

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

  /// The factor of the frequency for the samples that follow.
  mutating func next(_ samples: Int) -> Double {
    guard shape.cents > 0 else { return 1 }
    let seconds = Double(age) / 48_000
    age += samples
    let depth = shape.cents * min(1, max(0, (seconds - shape.delaySeconds) / 0.6))
    // For small ratios, a cent is as good as a share of the frequency.
    return 1 + depth * 0.000_577_8 * PortableMath.sine(turns: startTurns + hertz * seconds)
  }
}

/// The advance of a phase in 2⁻³² of a turn a sample.
func phaseStep(hertz: Double) -> UInt32 { UInt32(min(0.499, hertz / 48_000) * 4_294_967_296) }
