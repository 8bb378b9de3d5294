/// A room: diffusers that make one echo many, and eight delay lines that feed one another (Jean-Marc Jot, "Digital
/// Delay Networks for Designing Artificial Reverberators", 1991).
struct Reverb: ~Copyable {
  /// In samples, of the largest room; all prime, so that no two echoes coincide.
  private static let lengths = [1_447.0, 1_783, 2_089, 2_477, 2_903, 3_313, 3_761, 4_273]
  /// At this frequency the room reverberates half as long as at the lows.
  private static let dullHertz = 5_000.0
  /// Low notes would make it muddy; below about 120 Hz less and less is let in.
  private static let lowCut: Float = 0.0157
  /// The lines' lengths waver by so many samples: without it, a long room rings.
  private static let waverSampleCount = 6.0
  private static let waverHertz = [0.53, 0.61, 0.71, 0.83, 0.47, 0.67, 0.59, 0.79]
  /// Keeps the tail from growing so small that a processor computes it slowly.
  private static let floor: Float = 1e-18
  /// With a send of 1, the room is about as loud as what is sent.
  private static let level = 1.1

  /// For so long the wavering goes straight on: whole control blocks.
  private static let waverBlock = 8 * ControlBlock.sampleCount

  private let lengths: [Double]
  private let gains: [Float]
  /// What each sample leaves in the next.
  private let dulling: SIMD8<Float>
  private let wetLevel: Float
  private var lines: DelayLine
  private var early = Diffuser(delay: 163)
  private var late = Diffuser(delay: 421)
  private var thinned = SIMD2<Float>.zero
  private var dulled = SIMD8<Float>.zero
  /// The lines' lengths where the wavering's block begins, and what they grow by in a sample.
  private var (starts, slopes) = ([Double](repeating: 0, count: 8), [Double](repeating: 0, count: 8))
  private var waverStart = -1
  /// The same where the control block begins: whole samples and the rest.
  private var (wholes, rests) = ([Int](repeating: 0, count: 8), [Float](repeating: 0, count: 8))
  // A span of left and right, and of what comes out of each line.
  private let input = SampleBuffer(count: 2 * ControlBlock.sampleCount)
  private let heard = SampleBuffer(count: 8 * ControlBlock.sampleCount)

  /// - Parameter seconds: until it is 60 dB down.
  init(seconds: Double) {
    // A room that dies away fast is a small one.
    let size = min(1, 0.3 + 0.25 * seconds)
    lengths = Self.lengths.map { $0 * size }
    let gains = lengths.map { PortableMath.decay(seconds: seconds, samples: $0) }
    self.gains = gains.map { Float($0) }
    dulling = SIMD8(gains.map { Float(Self.dulling($0)) })
    // The longer the lines last, the more is in them.
    let kept = gains.reduce(0) { $0 + $1 * $1 } / 8
    wetLevel = Float(Self.level * (1 - kept).squareRoot())
    lines = DelayLine(count: Int(Self.lengths[7] + Self.waverSampleCount) + 2, channelCount: 8)
  }

  /// The coefficient of a one-pole low-pass that leaves `share` at `dullHertz`.
  private static func dulling(_ share: Double) -> Double {
    let square = share * share
    let cosine = PortableMath.cosine(turns: dullHertz / 48_000)
    let (a, b) = (1 - square, 1 - square * cosine)
    return (b - (b * b - a * a).squareRoot()) / a
  }

  /// Sets the lines' lengths for the samples of the control block that begins at `position`.
  mutating func setControls(at position: Int) {
    let start = position - position % Self.waverBlock
    for line in 0..<8 {
      if start != waverStart {
        starts[line] = delay(of: line, at: start)
        slopes[line] = (delay(of: line, at: start + Self.waverBlock) - starts[line]) / Double(Self.waverBlock)
      }
      let delay = starts[line] + Double(position - start) * slopes[line]
      wholes[line] = Int(delay)
      rests[line] = Float(delay - Double(wholes[line]))
    }
    waverStart = start
  }

  private func delay(of line: Int, at position: Int) -> Double {
    let turns = Self.waverHertz[line] * Double(position) / 48_000
    return lengths[line] + Self.waverSampleCount * PortableMath.sine(turns: turns + Double(line) * 0.29)
  }

  /// Adds the room of `source` to `output`.
  mutating func add(_ source: Samples, to output: Samples, _ span: Span) {
    let (left, right) = (input.base, input.base + ControlBlock.sampleCount)
    var thinned = thinned
    for index in 0..<span.count {
      let frame = source[frame: index]
      // The sum that does not wait for the sample before is made first.
      thinned = (Self.lowCut * frame + Self.floor) + (1 - Self.lowCut) * thinned
      left[index] = frame.x - thinned.x
      right[index] = frame.y - thinned.y
    }
    self.thinned = thinned
    early.pass(left, right, span.count)
    late.pass(left, right, span.count)
    for line in 0..<8 { read(line, span) }
    dull(from: 0, span.count)
    dull(from: 4, span.count)
    mix(left, right, to: output, span.count)
    lines.advance(span.count)
  }

  /// What comes out of a line: each sample between two.
  private func read(_ line: Int, _ span: Span) {
    let output = heard.base + line * ControlBlock.sampleCount
    let past = lines.past(wholes[line], channel: line)
    let (rest, slope, gain) = (rests[line], Float(slopes[line]), 1 - dulling[line])
    var offsets = LinearRamp.offsets(span.offset)
    for index in stride(from: 0, to: span.count, by: 4) {
      // Safe: the lines are two samples longer than the longest delay.
      let near = past[four: index]
      let far = past[four: index &- 1]
      output[four: index] = gain * (near + (rest + offsets * slope) * (far - near))
      offsets += 4
    }
  }

  /// Makes each sample duller by the one before it, half of the lines at once: each of them waits for itself only.
  private mutating func dull(from first: Int, _ count: Int) {
    let lines = heard.base + first * ControlBlock.sampleCount
    let (second, third) = (lines + ControlBlock.sampleCount, lines + 2 * ControlBlock.sampleCount)
    let fourth = lines + 3 * ControlBlock.sampleCount
    var (a, b, c, d) = (dulled[first], dulled[first + 1], dulled[first + 2], dulled[first + 3])
    let (p, q, r, s) = (dulling[first], dulling[first + 1], dulling[first + 2], dulling[first + 3])
    for index in 0..<count {
      a = lines[index] + p * a
      lines[index] = a
      b = second[index] + q * b
      second[index] = b
      c = third[index] + r * c
      third[index] = c
      d = fourth[index] + s * d
      fourth[index] = d
    }
    dulled[first] = a
    dulled[first + 1] = b
    dulled[first + 2] = c
    dulled[first + 3] = d
  }

  /// Adds the lines to `output` and feeds them.
  private func mix(
    _ left: UnsafePointer<Float>, _ right: UnsafePointer<Float>, to output: Samples, _ count: Int
  ) {
    for index in stride(from: 0, to: count, by: 4) {
      let (a, b, c, d) = (line(0, index), line(1, index), line(2, index), line(3, index))
      let (e, f, g, h) = (line(4, index), line(5, index), line(6, index), line(7, index))
      output.add(index, left: wetLevel * ((a - b) + (c - d)), right: wetLevel * ((e - f) + (g - h)))
      // A Householder reflection keeps the energy and mixes every line into every other.
      let shared: SIMD4<Float> = 0.25 * (((a + e) + (b + f)) + ((c + g) + (d + h)))
      let fedLeft = 0.5 * left[four: index] + Self.floor
      let fedRight = 0.5 * right[four: index] + Self.floor
      feed(0, index, a - shared, fedLeft)
      feed(1, index, b - shared, fedLeft)
      feed(2, index, c - shared, fedLeft)
      feed(3, index, d - shared, -fedLeft)
      feed(4, index, e - shared, fedRight)
      feed(5, index, f - shared, -fedRight)
      feed(6, index, g - shared, fedRight)
      feed(7, index, h - shared, fedRight)
    }
  }

  @inline(__always)
  private func line(_ line: Int, _ index: Int) -> SIMD4<Float> {
    heard.base[four: line &* ControlBlock.sampleCount &+ index]
  }

  @inline(__always)
  private func feed(_ line: Int, _ index: Int, _ kept: SIMD4<Float>, _ fed: SIMD4<Float>) {
    lines.next(channel: line)[four: index] = gains[line] * kept + fed
  }
}

/// Passes all frequencies alike, each at another time.
private struct Diffuser: ~Copyable {
  private static let share: Float = 0.6

  private let delay: Int
  private var line: DelayLine

  /// - Parameter delay: in samples; more than a control block.
  init(delay: Int) {
    self.delay = delay
    line = DelayLine(count: delay, channelCount: 2)
  }

  /// In place.
  mutating func pass(_ left: UnsafeMutablePointer<Float>, _ right: UnsafeMutablePointer<Float>, _ count: Int)
  {
    pass(left, channel: 0, count)
    pass(right, channel: 1, count)
    line.advance(count)
  }

  private func pass(_ samples: UnsafeMutablePointer<Float>, channel: Int, _ count: Int) {
    let (past, next) = (line.past(delay, channel: channel), line.next(channel: channel))
    for index in stride(from: 0, to: count, by: 4) {
      let late = past[four: index]
      let fed = samples[four: index] + Self.share * late
      next[four: index] = fed
      samples[four: index] = late - Self.share * fed
    }
  }
}
