/// A sine whose phase another sine bends.
struct ModulatedSine {
  private var carrier = Phase()
  private var modulator = Phase()

  mutating func set(carrierHertz: Double, modulatorHertz: Double) {
    carrier.step = phaseStep(hertz: carrierHertz)
    modulator.step = phaseStep(hertz: modulatorHertz)
  }

  /// Adds the next samples; may write over the span's end, up to a whole vector.
  ///
  /// - Parameters:
  ///   - bend: how far the modulator bends the carrier, in turns.
  ///   - left: what of it is heard on the left, or at all where it is one channel.
  ///   - right: what of it is heard on the right; nil for one channel.
  mutating func add(
    to output: NoteSamples, _ span: Span, bend: Segment, level: Segment, left: Float, right: Float?
  ) {
    withUnsafeTemporaryAllocation(of: Float.self, capacity: ControlBlock.sampleCount) { buffer in
      // Safe: a span is no longer than a control block, which is whole vectors.
      let bends = buffer.baseAddress!
      let isBent = bend.start != 0 || bend.slope != 0
      // In two loops: one sine after the other is more than a processor can look ahead over.
      if isBent {
        modulator.forEachFour(span) { index, turns, offsets in
          bends[four: index] = PortableMath.sine(turns) * bend.values(offsets)
        }
      }
      carrier.forEachFour(span) { index, turns, offsets in
        let bent = isBent ? turns + bends[four: index] : turns
        let values = PortableMath.sine(bent) * level.values(offsets)
        output.left[four: index] += values * left
        if let right { output.right[four: index] += values * right }
      }
    }
    carrier.advance(span.count)
    modulator.advance(span.count)
  }
}

/// Where a sine is in its turn.
private struct Phase {
  /// In 2⁻³² of a turn.
  private var value: UInt32 = 0
  /// The same a sample.
  var step: UInt32 = 0

  /// The next samples by four: in turns, and how long after the control values' setting they are.
  @inline(__always)
  func forEachFour(
    _ span: Span, _ body: (_ index: Int, _ turns: SIMD4<Float>, _ offsets: SIMD4<Float>) -> Void
  ) {
    var phases = SIMD4(value, value &+ step, value &+ 2 &* step, value &+ 3 &* step)
    let steps = SIMD4(repeating: 4 &* step)
    var offsets = Segment.offsets(span.offset)
    for index in stride(from: 0, to: span.count, by: 4) {
      body(index, PortableMath.turns(phases), offsets)
      phases &+= steps
      offsets += 4
    }
  }

  mutating func advance(_ count: Int) { value &+= UInt32(truncatingIfNeeded: count) &* step }
}
