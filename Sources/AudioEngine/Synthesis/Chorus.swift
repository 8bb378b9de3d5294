/// Copies that come later and earlier by turns, as if more than one were playing.
struct Chorus: ~Copyable {
  /// In samples: 9 ms in the middle, 3 ms to either side.
  private static let delay = 432.0
  private static let depth = 144.0
  private static let level: Float = 0.8

  private let hertz: Double
  private var line = DelayLine(count: 600)
  private var (left, right) = (Segment.zero, Segment.zero)

  /// - Parameter hertz: turns in a second.
  init(hertz: Double) { self.hertz = hertz }

  /// Sets the delays for the samples of the control block that begins at `position`.
  mutating func setControls(at position: Int) {
    left = segment(at: position, turns: 0)
    // A quarter of a turn apart, the sides are never the same.
    right = segment(at: position, turns: 0.25)
  }

  private func segment(at position: Int, turns: Double) -> Segment {
    Segment(
      from: delay(at: position, turns), to: delay(at: position + ControlBlock.sampleCount, turns),
      samples: ControlBlock.sampleCount)
  }

  private func delay(at position: Int, _ turns: Double) -> Float {
    let angle = hertz * Double(position) / 48_000 + turns
    return Float(Self.delay + Self.depth * PortableMath.sine(turns: angle))
  }

  /// Adds the copies of `input` to `output`.
  mutating func add(_ input: Samples, to output: Samples, _ span: Span) {
    for index in 0..<span.count {
      let (leftDelay, rightDelay) = (left.value(span.offset + index), right.value(span.offset + index))
      let (wholeLeft, wholeRight) = (Int32(leftDelay), Int32(rightDelay))
      let fraction = SIMD2(leftDelay - Float(wholeLeft), rightDelay - Float(wholeRight))
      let near = SIMD2(line.read(Int(wholeLeft)).x, line.read(Int(wholeRight)).y)
      let far = SIMD2(line.read(Int(wholeLeft) + 1).x, line.read(Int(wholeRight) + 1).y)
      output[frame: index] += Self.level * (near + fraction * (far - near))
      line.write(input[frame: index])
    }
  }
}
