/// Two copies that come later and earlier by turns, as if more than one were playing.
struct Chorus: ~Copyable {
  /// In samples: 9 ms in the middle, 3 ms to either side.
  private static let delay = 432.0
  private static let depth = 144.0
  private static let level: Float = 0.8

  private let hertz: Double
  private var left = DelayLine(count: 600)
  private var right = DelayLine(count: 600)
  private var (leftDelay, rightDelay) = (Segment.zero, Segment.zero)

  /// - Parameter hertz: turns in a second.
  init(hertz: Double) { self.hertz = hertz }

  /// Sets the delays for the samples of the control block that begins at `position`.
  mutating func setControls(at position: Int) {
    leftDelay = segment(at: position, turns: 0)
    // A quarter of a turn apart, the sides are never the same.
    rightDelay = segment(at: position, turns: 0.25)
  }

  private func segment(at position: Int, turns: Double) -> Segment {
    let values = [position, position + ControlBlock.sampleCount].map { position in
      let angle = hertz * Double(position) / 48_000 + turns
      return Float(Self.delay + Self.depth * PortableMath.sine(turns: angle))
    }
    return Segment(from: values[0], to: values[1], samples: ControlBlock.sampleCount)
  }

  /// Adds the copies of `input` to `output`.
  mutating func add(_ input: Channels, to output: Channels, _ span: Span) {
    for index in 0..<span.count {
      output.left[index] += Self.level * left.read(leftDelay.value(span.offset + index))
      output.right[index] += Self.level * right.read(rightDelay.value(span.offset + index))
      left.write(input.left[index])
      right.write(input.right[index])
    }
  }
}
