/// How something grows and dies away over a note. The attack is a smooth step; decay and release fall by the
/// same share in equal times, as sounds in air do.
struct Envelope {
  struct Shape {
    var attackSeconds: Double
    /// To 60 dB below where it began.
    var decaySeconds: Double
    /// 0 to 1: where the decay ends.
    var sustain: Float
    /// To 60 dB below where it began.
    var releaseSeconds: Double

    init(_ attackSeconds: Double, _ decaySeconds: Double, _ sustain: Float, _ releaseSeconds: Double) {
      self.attackSeconds = attackSeconds
      self.decaySeconds = decaySeconds
      self.sustain = sustain
      self.releaseSeconds = releaseSeconds
    }
  }

  /// −60 dB: what is below it ends.
  static let silence: Float = 1e-3
  /// A stolen note is gone after 5 ms.
  private static let cutSampleCount: Float = 256

  private enum Stage { case attack, decay, release, cut }

  private let shape: Shape
  /// What a whole control block leaves.
  private let decayShare: Float
  private let releaseShare: Float
  private var stage = Stage.attack
  /// Progress of the attack, 0 to 1.
  private var progress: Float = 0
  private(set) var value: Float = 0
  /// The level at which a stolen note was cut.
  private var cutFrom: Float = 0

  init(_ shape: Shape) {
    self.shape = shape
    decayShare = Self.share(shape.decaySeconds, ControlBlock.sampleCount)
    releaseShare = Self.share(shape.releaseSeconds, ControlBlock.sampleCount)
  }

  /// Whether nothing follows.
  var isOver: Bool { value == 0 && (stage == .release || stage == .cut || stage == .decay) }

  mutating func release() {
    if stage == .attack || stage == .decay { stage = .release }
  }

  /// Restarts from the current level.
  mutating func strike() {
    guard stage == .decay else { return }
    stage = .attack
    progress = value
  }

  mutating func cut() {
    guard stage != .cut else { return }
    stage = .cut
    cutFrom = value
  }

  /// The values of the next samples.
  mutating func next(_ samples: Int) -> LinearRamp {
    let start = value
    switch stage {
    case .attack:
      progress = min(1, progress + Float(samples) / Float(max(1, shape.attackSeconds * 48_000)))
      value = progress * progress * (3 - 2 * progress)
      if progress == 1 { stage = .decay }
    case .decay:
      let isWhole = samples == ControlBlock.sampleCount
      let share = isWhole ? decayShare : Self.share(shape.decaySeconds, samples)
      value = shape.sustain + (value - shape.sustain) * share
    case .release:
      value *= samples == ControlBlock.sampleCount ? releaseShare : Self.share(shape.releaseSeconds, samples)
    case .cut:
      value = max(0, value - cutFrom * Float(samples) / Self.cutSampleCount)
    }
    if value < Self.silence, stage != .attack { value = 0 }
    return LinearRamp(from: start, to: value, samples: samples)
  }

  private static func share(_ seconds: Double, _ samples: Int) -> Float {
    Float(PortableMath.decay(seconds: seconds, samples: Double(samples)))
  }
}
