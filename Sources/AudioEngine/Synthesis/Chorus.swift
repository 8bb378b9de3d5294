/// Copies that alternate between later and earlier, as if more than one were playing.
struct Chorus: ~Copyable {
  /// In samples: 9 ms in the middle, 3 ms to either side.
  private static let delay = 432.0
  private static let depth = 144.0
  private static let level: Float = 0.8

  private let hertz: Double
  private var line: DelayLine
  private var (left, right) = (LinearRamp.zero, LinearRamp.zero)

  /// - Parameter hertz: turns in a second.
  init(hertz: Double) {
    self.hertz = hertz
    line = DelayLine(count: Int(Self.delay + Self.depth) + 2, channelCount: 2)
  }

  /// Sets the delays for the samples of the control block that begins at `position`.
  mutating func setControls(at position: Int) {
    left = delays(at: position, turns: 0)
    // A quarter of a turn apart, the sides are never the same.
    right = delays(at: position, turns: 0.25)
  }

  private func delays(at position: Int, turns: Double) -> LinearRamp {
    LinearRamp(
      from: delay(at: position, turns), to: delay(at: position + ControlBlock.sampleCount, turns),
      samples: ControlBlock.sampleCount)
  }

  private func delay(at position: Int, _ turns: Double) -> Float {
    let angle = hertz * Double(position) / 48_000 + turns
    return Float(Self.delay + Self.depth * PortableMath.sine(turns: angle))
  }

  /// Adds the copies of `input` to `output`.
  mutating func add(_ input: Samples, to output: Samples, _ span: Span) {
    let (fromLeft, fromRight) = (line.past(0, channel: 0), line.past(0, channel: 1))
    let (toLeft, toRight) = (line.next(channel: 0), line.next(channel: 1))
    let (left, right) = (left, right)
    var offsets = LinearRamp.offsets(span.offset)
    for index in stride(from: 0, to: span.count, by: 4) {
      output.add(
        index, left: Self.copies(fromLeft + index, left.values(offsets)),
        right: Self.copies(fromRight + index, right.values(offsets)))
      let frames = input.values[vector: 2 &* index]
      toLeft[four: index] = Self.level * frames.evenHalf
      toRight[four: index] = Self.level * frames.oddHalf
      offsets += 4
    }
    line.advance(span.count)
  }

  /// The next four samples, each interpolated between the two that are next to its delay.
  @inline(__always)
  private static func copies(_ now: UnsafePointer<Float>, _ delays: SIMD4<Float>) -> SIMD4<Float> {
    let shifted = (delays - 0.5) + PortableMath.rounding
    let fractions = delays - (shifted - PortableMath.rounding)
    // Safe: both are four words of 32 bits. The line is as long as the longest delay and two.
    let wholes = unsafeBitCast(shifted, to: SIMD4<UInt32>.self) & 0xFFFF
    let (a, b) = (now[pair: -1 &- Int(wholes.x)], now[pair: 0 &- Int(wholes.y)])
    let (c, d) = (now[pair: 1 &- Int(wholes.z)], now[pair: 2 &- Int(wholes.w)])
    let pairs = SIMD8(lowHalf: SIMD4(lowHalf: a, highHalf: b), highHalf: SIMD4(lowHalf: c, highHalf: d))
    return pairs.oddHalf + fractions * (pairs.evenHalf - pairs.oddHalf)
  }
}
