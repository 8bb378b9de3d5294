/// Repeats that go from side to side, each duller than the last.
struct PingPongDelay: ~Copyable {
  /// Of a one-pole low-pass, about 6 kHz.
  private static let dulling: Float = 0.6
  /// Keeps the repeats from growing so small that a processor computes them slowly.
  private static let floor: Float = 1e-18
  private static let level: Float = 0.7

  private let delay: Int
  private let feedback: Float
  private var line: DelayLine
  private var dulled = SIMD2<Float>.zero

  /// - Parameters:
  ///   - delay: in samples, from a sound to its first repeat, and from each to the next.
  ///   - feedback: what of a repeat is left in the next, 0 to 0.9.
  init(delay: Int, feedback: Double) {
    self.delay = delay
    self.feedback = Float(feedback)
    line = DelayLine(count: delay)
  }

  /// Adds the repeats of `input` to `output`.
  mutating func add(_ input: Samples, to output: Samples, _ span: Span) {
    var dulled = dulled
    for index in 0..<span.count {
      dulled += Self.dulling * (line.read(delay) - dulled) + Self.floor
      output[frame: index] += Self.level * dulled
      // The first repeat is on the left.
      let frame = input[frame: index]
      line.write(SIMD2(0.5 * (frame.x + frame.y) + feedback * dulled.y, feedback * dulled.x))
    }
    self.dulled = dulled
  }
}
