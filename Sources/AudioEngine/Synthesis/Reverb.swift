import WireProtocol

/// A room: diffusers that make one echo many, and eight delay lines that feed one another (Jean-Marc Jot, "Digital
/// Delay Networks for Designing Artificial Reverberators", 1991).
struct Reverb: ~Copyable {
  /// In samples, of the largest room; all prime, so that no two echoes coincide.
  private static let lengths = [1_447.0, 1_783, 2_089, 2_477, 2_903, 3_313, 3_761, 4_273]
  /// A power of two above the longest.
  private static let lineCount = 8_192
  /// The lines' beginning once more behind their end, so that a span is read in one piece.
  private static let mirroredCount = 2 * ControlBlock.sampleCount
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

  // Safe: allocated in `init`, reached through this one owner only, freed in `deinit`. One vector a sample holds
  // all eight lines; where a span begins is masked to the lines' size, and a span is shorter than what is mirrored.
  private let memory: UnsafeMutablePointer<SIMD8<Float>>
  private var end = 0
  private var early = Diffuser(delay: 163)
  private var late = Diffuser(delay: 421)
  private let lengths: [Double]
  private let gains: SIMD8<Float>
  private let dulling: SIMD8<Float>
  private let wetLevel: Float
  private var dulled = SIMD8<Float>.zero
  private var thinned = SIMD2<Float>.zero
  private var wholeDelays = [Int](repeating: 1, count: 8)
  private var fractions = SIMD8<Float>.zero
  private var fractionSlopes = SIMD8<Float>.zero

  /// - Parameter seconds: until it is 60 dB down.
  init(seconds: Double) {
    // A room that dies away fast is a small one.
    let size = min(1, 0.3 + 0.25 * seconds)
    lengths = Self.lengths.map { $0 * size }
    let gains = lengths.map { PortableMath.decay(seconds: seconds, samples: $0) }
    self.gains = SIMD8(gains.map { Float($0) })
    dulling = SIMD8(gains.map { Float(Self.dulling($0)) })
    // The longer the lines last, the more is in them.
    let kept = gains.reduce(0) { $0 + $1 * $1 } / 8
    wetLevel = Float(Self.level * (1 - kept).squareRoot())
    memory = .allocate(capacity: Self.lineCount + Self.mirroredCount)
    memory.initialize(repeating: .zero, count: Self.lineCount + Self.mirroredCount)
  }

  deinit { memory.deallocate() }

  /// Of a one-pole low-pass that leaves `share` at `dullHertz`.
  private static func dulling(_ share: Double) -> Double {
    let square = share * share
    let cosine = PortableMath.cosine(turns: dullHertz / 48_000)
    let (a, b) = (1 - square, 1 - square * cosine)
    return (b - (b * b - a * a).squareRoot()) / a
  }

  /// Sets the lines' lengths for the samples of the control block that begins at `position`.
  mutating func setControls(at position: Int) {
    for line in 0..<8 {
      let from = delay(of: line, at: position)
      let to = delay(of: line, at: position + ControlBlock.sampleCount)
      wholeDelays[line] = Int(from)
      fractions[line] = Float(from - Double(Int(from)))
      fractionSlopes[line] = Float((to - from) / Double(ControlBlock.sampleCount))
    }
  }

  private func delay(of line: Int, at position: Int) -> Double {
    let turns = Self.waverHertz[line] * Double(position) / 48_000
    return lengths[line] + Self.waverSampleCount * PortableMath.sine(turns: turns + Double(line) * 0.29)
  }

  /// Adds the room of `input` to `output`; `input` is used up.
  mutating func add(_ input: Samples, to output: Samples, _ span: Span) {
    for index in 0..<span.count {
      thinned += Self.lowCut * (input[frame: index] - thinned) + Self.floor
      input[frame: index] -= thinned
    }
    early.apply(to: input, count: span.count)
    late.apply(to: input, count: span.count)
    addLines(input, to: output, span)
  }

  private mutating func addLines(_ input: Samples, to output: Samples, _ span: Span) {
    let (leftGains, rightGains) = (gains.lowHalf, gains.highHalf)
    let (leftDulling, rightDulling) = (dulling.lowHalf, dulling.highHalf)
    let (leftFractions, rightFractions) = (fractions.lowHalf, fractions.highHalf)
    let (leftSlopes, rightSlopes) = (fractionSlopes.lowHalf, fractionSlopes.highHalf)
    let (p0, p1, p2, p3) = (place(0), place(1), place(2), place(3))
    let (p4, p5, p6, p7) = (place(4), place(5), place(6), place(7))
    var (left, right) = (dulled.lowHalf, dulled.highHalf)
    // Of each line, a sample older than the first.
    var farLeft = SIMD4(p0[-8], p1[-8], p2[-8], p3[-8])
    var farRight = SIMD4(p4[-8], p5[-8], p6[-8], p7[-8])
    for index in 0..<span.count {
      let i = 8 &* index
      let offset = Float(Int32(truncatingIfNeeded: span.offset &+ index))
      let nearLeft = SIMD4(p0[i], p1[i], p2[i], p3[i])
      let nearRight = SIMD4(p4[i], p5[i], p6[i], p7[i])
      let outLeft = nearLeft + (leftFractions + offset * leftSlopes) * (farLeft - nearLeft)
      let outRight = nearRight + (rightFractions + offset * rightSlopes) * (farRight - nearRight)
      (farLeft, farRight) = (nearLeft, nearRight)
      left = outLeft + leftDulling * (left - outLeft)
      right = outRight + rightDulling * (right - outRight)
      output[frame: index] +=
        wetLevel * SIMD2((left.x - left.y) + (left.z - left.w), (right.x - right.y) + (right.z - right.w))
      // A Householder reflection keeps the energy and mixes every line into every other.
      let both = left + right
      let shared = 0.25 * ((both.x + both.y) + (both.z + both.w))
      let frame = 0.5 * input[frame: index] + Self.floor
      let fedLeft = leftGains * (left - shared) + frame.x * SIMD4(1, 1, 1, -1)
      let fedRight = rightGains * (right - shared) + frame.y * SIMD4(1, -1, 1, 1)
      write(SIMD8(lowHalf: fedLeft, highHalf: fedRight))
    }
    dulled = SIMD8(lowHalf: left, highHalf: right)
  }

  /// Where a line's next sample is; those that follow are eight values apart.
  private func place(_ line: Int) -> UnsafePointer<Float> {
    // One behind the beginning, so that there is an older one.
    let index = ((end - wholeDelays[line] - 1) & (Self.lineCount - 1)) + 1
    return UnsafeRawPointer(memory + index).assumingMemoryBound(to: Float.self) + line
  }

  @inline(__always)
  private mutating func write(_ values: SIMD8<Float>) {
    memory[end] = values
    if end < Self.mirroredCount { memory[end + Self.lineCount] = values }
    end = (end + 1) & (Self.lineCount - 1)
  }
}

/// Passes all frequencies alike, each at another time.
private struct Diffuser: ~Copyable {
  private static let share: Float = 0.6

  private let delay: Int
  private var line: DelayLine

  /// - Parameter delay: in samples.
  init(delay: Int) {
    self.delay = delay
    line = DelayLine(count: delay)
  }

  mutating func apply(to samples: Samples, count: Int) {
    for index in 0..<count {
      let late = line.read(delay)
      let fed = samples[frame: index] + Self.share * late
      line.write(fed)
      samples[frame: index] = late - Self.share * fed
    }
  }
}
