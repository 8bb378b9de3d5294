/// Repeats that go from side to side, each duller than the last.
struct PingPongDelay: ~Copyable {
  /// Of a one-pole low-pass, about 4 kHz.
  private static let dulling: Float = 0.6
  private static let floor: Float = 1e-18
  private static let level: Float = 0.7

  private let delay: Int
  private let feedback: Float
  private var left: DelayLine
  private var right: DelayLine
  private var (dullLeft, dullRight): (Float, Float) = (0, 0)

  /// - Parameters:
  ///   - delay: in samples, from a sound to its first repeat, and from each to the next.
  ///   - feedback: what of a repeat is left in the next, 0 to 0.9.
  init(delay: Int, feedback: Double) {
    self.delay = delay
    self.feedback = Float(feedback)
    left = DelayLine(count: delay)
    right = DelayLine(count: delay)
  }

  /// Adds the repeats of `input` to `output`.
  mutating func add(_ input: Channels, to output: Channels, _ span: Span) {
    for index in 0..<span.count {
      dullLeft += Self.dulling * (left.read(delay) - dullLeft) + Self.floor
      dullRight += Self.dulling * (right.read(delay) - dullRight) + Self.floor
      output.left[index] += Self.level * dullLeft
      output.right[index] += Self.level * dullRight
      left.write(0.5 * (input.left[index] + input.right[index]) + feedback * dullRight)
      right.write(feedback * dullLeft)
    }
  }
}
