import WireProtocol

/// A room: diffusers that make one echo many, and eight delay lines that feed one another (Jean-Marc Jot, "Digital
/// Delay Networks for Designing Artificial Reverberators", 1991).
struct Reverb: ~Copyable {
  /// In samples, of the largest room; all prime, so that no two echoes coincide.
  private static let lengths = [1_447.0, 1_783, 2_089, 2_477, 2_903, 3_313, 3_761, 4_273]
  private static let lineSizeLog2 = 13
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
  private static let level = 0.7

  // Safe: allocated in `init`, reached through this one owner only, freed in `deinit`. One vector a sample holds
  // all eight lines; every index is masked to its size.
  private let memory: UnsafeMutablePointer<SIMD8<Float>>
  private let mask = (1 << lineSizeLog2) - 1
  private var end = 0
  private var earlyLeft = Diffuser(delay: 149)
  private var earlyRight = Diffuser(delay: 163)
  private var lateLeft = Diffuser(delay: 389)
  private var lateRight = Diffuser(delay: 421)
  private let lengths: [Double]
  private let gains: SIMD8<Float>
  private let dulling: SIMD8<Float>
  private let wetLevel: Float
  private var dulled = SIMD8<Float>.zero
  private var wholeDelays = [Int](repeating: 1, count: 8)
  private var fractions = SIMD8<Float>.zero
  private var fractionSlopes = SIMD8<Float>.zero
  private var (thinLeft, thinRight): (Float, Float) = (0, 0)

  /// - Parameter seconds: until it is 60 dB down.
  init(seconds: Double) {
    // A room that dies away fast is a small one.
    let size = min(1, 0.3 + 0.25 * seconds)
    lengths = Self.lengths.map { $0 * size }
    let gains = lengths.map { PortableMath.decay(seconds: seconds, samples: $0) }
    self.gains = SIMD8(gains.map { Float($0) })
    dulling = SIMD8(gains.map { Float(Self.dulling($0)) })
    // What is in the lines after many turns is more, the longer they last.
    let kept = gains.reduce(0) { $0 + $1 * $1 } / 8
    wetLevel = Float(Self.level * (1 - kept).squareRoot())
    memory = .allocate(capacity: mask + 1)
    memory.initialize(repeating: .zero, count: mask + 1)
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
  mutating func add(_ input: Channels, to output: Channels, _ span: Span) {
    for index in 0..<span.count {
      thinLeft += Self.lowCut * (input.left[index] - thinLeft) + Self.floor
      thinRight += Self.lowCut * (input.right[index] - thinRight) + Self.floor
      input.left[index] -= thinLeft
      input.right[index] -= thinRight
    }
    earlyLeft.apply(input.left, count: span.count)
    earlyRight.apply(input.right, count: span.count)
    lateLeft.apply(input.left, count: span.count)
    lateRight.apply(input.right, count: span.count)
    var dulled = dulled
    var end = end
    let gains = gains
    let dulling = dulling
    wholeDelays.withUnsafeBufferPointer { delays in
      for index in 0..<span.count {
        var near = SIMD8<Float>.zero
        var far = SIMD8<Float>.zero
        for line in 0..<8 {
          near[line] = memory[(end - delays[line]) & mask][line]
          far[line] = memory[(end - delays[line] - 1) & mask][line]
        }
        let fraction = fractions + Float(span.offset + index) * fractionSlopes
        let out = near + fraction * (far - near)
        dulled = out + dulling * (dulled - out)
        let left = dulled.lowHalf
        let right = dulled.highHalf
        output.left[index] += wetLevel * ((left.x - left.y) + (left.z - left.w))
        output.right[index] += wetLevel * ((right.x - right.y) + (right.z - right.w))
        // A Householder reflection keeps the energy and mixes every line into every other.
        let halves = left + right
        let shared = 0.25 * ((halves.x + halves.y) + (halves.z + halves.w))
        let (l, r) = (input.left[index], input.right[index])
        memory[end] = gains * (dulled - shared) + (SIMD8(l, l, l, -l, r, -r, r, r) * 0.5 + Self.floor)
        end = (end + 1) & mask
      }
    }
    self.dulled = dulled
    self.end = end
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

  mutating func apply(_ samples: UnsafeMutablePointer<Float>, count: Int) {
    for index in 0..<count {
      let late = line.read(delay)
      let fed = samples[index] + Self.share * late
      line.write(fed)
      samples[index] = late - Self.share * fed
    }
  }
}
