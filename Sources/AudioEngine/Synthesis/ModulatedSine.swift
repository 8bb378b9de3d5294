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
      let samples = buffer.baseAddress!
      if bend.start != 0 || bend.slope != 0 {
        modulator.write(to: samples, span, bend)
        carrier.bend(samples, span, level)
      } else {
        modulator.advance(span.count)
        carrier.write(to: samples, span, level)
      }
      for index in stride(from: 0, to: span.count, by: 4) {
        output.left[four: index] += samples[four: index] * left
      }
      guard let right else { return }
      for index in stride(from: 0, to: span.count, by: 4) {
        output.right[four: index] += samples[four: index] * right
      }
    }
  }
}

/// Where a sine is in its turn.
private struct Phase {
  /// In 2⁻³² of a turn.
  private var value: UInt32 = 0
  /// The same a sample.
  var step: UInt32 = 0

  /// Of the next four samples.
  private var four: SIMD4<UInt32> { SIMD4(value, value &+ step, value &+ 2 &* step, value &+ 3 &* step) }

  mutating func advance(_ count: Int) { value &+= UInt32(truncatingIfNeeded: count) &* step }

  /// Writes the next samples of the sine.
  mutating func write(to samples: UnsafeMutablePointer<Float>, _ span: Span, _ level: Segment) {
    let steps = SIMD4(repeating: 4 &* step)
    var phases = four
    var offsets = Segment.offsets(span.offset)
    for index in stride(from: 0, to: span.count, by: 4) {
      samples[four: index] = PortableMath.sine(PortableMath.turns(phases)) * level.values(offsets)
      phases &+= steps
      offsets += 4
    }
    advance(span.count)
  }

  /// Writes them, each bent by the turns that are there.
  mutating func bend(_ samples: UnsafeMutablePointer<Float>, _ span: Span, _ level: Segment) {
    let steps = SIMD4(repeating: 4 &* step)
    var phases = four
    var offsets = Segment.offsets(span.offset)
    for index in stride(from: 0, to: span.count, by: 4) {
      let turns = PortableMath.turns(phases) + samples[four: index]
      samples[four: index] = PortableMath.sine(turns) * level.values(offsets)
      phases &+= steps
      offsets += 4
    }
    advance(span.count)
  }
}
