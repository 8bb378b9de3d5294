/// Repeats that go from side to side, each duller than the last.
struct PingPongDelay: ~Copyable {
  /// The coefficient of a one-pole low-pass, about 6 kHz.
  private static let dulling: Float = 0.6
  /// Keeps the repeats from growing so small that a processor computes them slowly.
  private static let floor: Float = 1e-18
  private static let level: Float = 0.7

  private let delay: Int
  private let feedback: Float
  private var line: DelayLine
  private var dulled = SIMD2<Float>.zero

  /// - Parameters:
  ///   - delay: in samples, from a sound to its first repeat, and from each to the next; more than a control block.
  ///   - feedback: what of a repeat is left in the next, 0 to 0.9.
  init(delay: Int, feedback: Double) {
    self.delay = delay
    self.feedback = Float(feedback)
    line = DelayLine(count: delay, channelCount: 2)
  }

  /// Adds the repeats of `input` to `output`.
  mutating func add(_ input: Samples, to output: Samples, _ span: Span) {
    let (fromLeft, fromRight) = (line.past(delay, channel: 0), line.past(delay, channel: 1))
    let (toLeft, toRight) = (line.next(channel: 0), line.next(channel: 1))
    var (x, y) = (dulled.x, dulled.y)
    for index in 0..<span.count {
      // The sum that does not wait for the sample before is made first.
      x = (Self.dulling * fromLeft[index] + Self.floor) + (1 - Self.dulling) * x
      y = (Self.dulling * fromRight[index] + Self.floor) + (1 - Self.dulling) * y
      output[frame: index] += Self.level * SIMD2(x, y)
      // The first repeat is on the left.
      let frame = input[frame: index]
      toLeft[index] = 0.5 * (frame.x + frame.y) + feedback * y
      toRight[index] = feedback * x
    }
    dulled = SIMD2(x, y)
    line.advance(span.count)
  }
}
