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

  /// From one line's beginning to the next one's.
  private static let lineStride = lineCount + mirroredCount

  // Safe: allocated in `init`, reached through this one owner only, freed in `deinit`. The lines lie one behind the
  // other; where a span begins is masked to a line's size, and a span is shorter than what is mirrored.
  private let memory: UnsafeMutablePointer<Float>
  private var end = 0
  private var early = Diffuser(delay: 163)
  private var late = Diffuser(delay: 421)
  private let lengths: [Double]
  private let gains: SIMD8<Float>
  private let dulling: SIMD8<Float>
  private let wetLevel: Float
  private var dulled = SIMD8<Float>.zero
  private var thinned = SIMD2<Float>.zero
  private var wholeDelays = SIMD8<Int>(repeating: 1)
  private var fractions = SIMD8<Float>.zero
  private var fractionSlopes = SIMD8<Float>.zero
  /// The lines' lengths where the next control block begins, and where that is.
  private var nextDelays = SIMD8<Double>.zero
  private var nextPosition = -1

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
    memory = .allocate(capacity: 8 * Self.lineStride)
    memory.initialize(repeating: 0, count: 8 * Self.lineStride)
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
    let next = position + ControlBlock.sampleCount
    // Where a control block ends, the next one begins.
    let known = nextPosition == position ? nextDelays : nil
    for line in 0..<8 {
      let from = known?[line] ?? delay(of: line, at: position)
      let to = delay(of: line, at: next)
      nextDelays[line] = to
      wholeDelays[line] = Int(from)
      fractions[line] = Float(from - Double(Int(from)))
      fractionSlopes[line] = Float((to - from) / Double(ControlBlock.sampleCount))
    }
    nextPosition = next
  }

  private func delay(of line: Int, at position: Int) -> Double {
    let turns = Self.waverHertz[line] * Double(position) / 48_000
    return lengths[line] + Self.waverSampleCount * PortableMath.sine(turns: turns + Double(line) * 0.29)
  }

  /// Adds the room of `input` to `output`; `input` is used up.
  mutating func add(_ input: Samples, to output: Samples, _ span: Span) {
    var thinned = thinned
    // In one loop: while a sample waits for the one before it, the diffusers have time.
    for index in 0..<span.count {
      let frame = input[frame: index]
      thinned += Self.lowCut * (frame - thinned) + Self.floor
      input[frame: index] = late.passed(early.passed(frame - thinned))
    }
    self.thinned = thinned
    addLines(input, to: output, span)
  }

  /// Four samples at a time, of every line: all that is read is older than a span.
  private mutating func addLines(_ input: Samples, to output: Samples, _ span: Span) {
    let (leftDulling, rightDulling) = (dulling.lowHalf, dulling.highHalf)
    let (gains, wetLevel) = (gains, wetLevel)
    let (fractions, slopes) = (fractions, fractionSlopes)
    let (p0, p1, p2, p3) = (place(0), place(1), place(2), place(3))
    let (p4, p5, p6, p7) = (place(4), place(5), place(6), place(7))
    // Safe: a line's room behind its end holds a span's beginning anywhere in the line, and a vector more.
    let fed = memory + end
    var (left, right) = (dulled.lowHalf, dulled.highHalf)
    for index in stride(from: 0, to: span.count, by: 4) {
      let first = Float(Int32(truncatingIfNeeded: span.offset &+ index))
      let offset = SIMD4<Float>(repeating: first) + SIMD4<Float>(0, 1, 2, 3)
      var lefts = FourLines(
        read(p0 + index, fractions[0] + offset * slopes[0]),
        read(p1 + index, fractions[1] + offset * slopes[1]),
        read(p2 + index, fractions[2] + offset * slopes[2]),
        read(p3 + index, fractions[3] + offset * slopes[3])
      ).transposed
      var rights = FourLines(
        read(p4 + index, fractions[4] + offset * slopes[4]),
        read(p5 + index, fractions[5] + offset * slopes[5]),
        read(p6 + index, fractions[6] + offset * slopes[6]),
        read(p7 + index, fractions[7] + offset * slopes[7])
      ).transposed
      let last = min(3, span.count &- index &- 1)
      left = lefts.dull(left, leftDulling, last)
      right = rights.dull(right, rightDulling, last)
      lefts = lefts.transposed
      rights = rights.transposed
      output.add(index, left: wetLevel * lefts.outgoing, right: wetLevel * rights.outgoing)
      // A Householder reflection keeps the energy and mixes every line into every other.
      let both: SIMD4<Float> = (lefts.a + rights.a) + (lefts.b + rights.b)
      let others: SIMD4<Float> = (lefts.c + rights.c) + (lefts.d + rights.d)
      let shared: SIMD4<Float> = 0.25 * (both + others)
      let (inputLeft, inputRight) = input.sides(index)
      let fedLeft = 0.5 * inputLeft + Self.floor
      let fedRight = 0.5 * inputRight + Self.floor
      write(fed + (0 &* Self.lineStride &+ index), gains[0] * (lefts.a - shared) + fedLeft)
      write(fed + (1 &* Self.lineStride &+ index), gains[1] * (lefts.b - shared) + fedLeft)
      write(fed + (2 &* Self.lineStride &+ index), gains[2] * (lefts.c - shared) + fedLeft)
      write(fed + (3 &* Self.lineStride &+ index), gains[3] * (lefts.d - shared) - fedLeft)
      write(fed + (4 &* Self.lineStride &+ index), gains[4] * (rights.a - shared) + fedRight)
      write(fed + (5 &* Self.lineStride &+ index), gains[5] * (rights.b - shared) - fedRight)
      write(fed + (6 &* Self.lineStride &+ index), gains[6] * (rights.c - shared) + fedRight)
      write(fed + (7 &* Self.lineStride &+ index), gains[7] * (rights.d - shared) + fedRight)
    }
    dulled = SIMD8(lowHalf: left, highHalf: right)
    advance(span.count)
  }

  /// Where a line's next sample is.
  private func place(_ line: Int) -> UnsafePointer<Float> {
    // One behind the beginning, so that there is an older one.
    let index = ((end &- wholeDelays[line] &- 1) & (Self.lineCount &- 1)) &+ 1
    return UnsafePointer(memory + (line &* Self.lineStride &+ index))
  }

  /// What comes out of a line: four samples, each between two.
  @inline(__always)
  private func read(_ place: UnsafePointer<Float>, _ fractions: SIMD4<Float>) -> SIMD4<Float> {
    let near = UnsafeRawPointer(place).loadUnaligned(as: SIMD4<Float>.self)
    let far = UnsafeRawPointer(place - 1).loadUnaligned(as: SIMD4<Float>.self)
    return near + fractions * (far - near)
  }

  /// Over a line's end too, and over the span's, where the oldest samples are, older than the longest delay.
  @inline(__always)
  private func write(_ place: UnsafeMutablePointer<Float>, _ values: SIMD4<Float>) {
    UnsafeMutableRawPointer(place).storeBytes(of: values, as: SIMD4<Float>.self)
  }

  /// Makes the beginning and what lies behind the end the same again.
  private mutating func advance(_ count: Int) {
    let newEnd = end + count
    for line in 0..<8 where end < Self.mirroredCount || newEnd > Self.lineCount {
      let start = memory + line * Self.lineStride
      if end < Self.mirroredCount {
        let copied = min(newEnd, Self.mirroredCount) - end
        (start + Self.lineCount + end).update(from: start + end, count: copied)
      }
      if newEnd > Self.lineCount {
        start.update(from: start + Self.lineCount, count: newEnd - Self.lineCount)
      }
    }
    end = newEnd & (Self.lineCount - 1)
  }
}

/// Four lines of four samples each, or four samples of four lines each.
private struct FourLines {
  var (a, b, c, d): (SIMD4<Float>, SIMD4<Float>, SIMD4<Float>, SIMD4<Float>)

  @inline(__always)
  init(_ a: SIMD4<Float>, _ b: SIMD4<Float>, _ c: SIMD4<Float>, _ d: SIMD4<Float>) {
    (self.a, self.b, self.c, self.d) = (a, b, c, d)
  }

  @inline(__always)
  var transposed: FourLines {
    FourLines(
      SIMD4(a.x, b.x, c.x, d.x), SIMD4(a.y, b.y, c.y, d.y), SIMD4(a.z, b.z, c.z, d.z),
      SIMD4(a.w, b.w, c.w, d.w))
  }

  /// What four lines together give to their side.
  @inline(__always)
  var outgoing: SIMD4<Float> { (a - b) + (c - d) }

  /// Makes each sample duller by the one before it; gives the one at `last`.
  @inline(__always)
  mutating func dull(_ before: SIMD4<Float>, _ share: SIMD4<Float>, _ last: Int) -> SIMD4<Float> {
    a = a + share * (before - a)
    b = b + share * (a - b)
    c = c + share * (b - c)
    d = d + share * (c - d)
    return last == 3 ? d : last == 2 ? c : last == 1 ? b : a
  }
}

extension Samples {
  /// Left and right of four samples.
  @inline(__always)
  fileprivate func sides(_ index: Int) -> (SIMD4<Float>, SIMD4<Float>) {
    let frames = values[vector: 2 &* index]
    return (frames.evenHalf, frames.oddHalf)
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

  @inline(__always)
  mutating func passed(_ frame: SIMD2<Float>) -> SIMD2<Float> {
    let late = line.read(delay)
    let fed = frame + Self.share * late
    line.write(fed)
    return late - Self.share * fed
  }
}
