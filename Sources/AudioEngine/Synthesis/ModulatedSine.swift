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
    let isBent = bend.start != 0 || bend.slope != 0
    let (carrierSteps, modulatorSteps) = (
      SIMD4(repeating: 4 &* carrier.step), SIMD4(repeating: 4 &* modulator.step)
    )
    var (carriers, modulators, offsets) = (carrier.four, modulator.four, Segment.offsets(span.offset))
    for index in stride(from: 0, to: span.count, by: 4) {
      var turns = PortableMath.turns(carriers)
      if isBent { turns += PortableMath.sine(PortableMath.turns(modulators)) * bend.values(offsets) }
      let values = PortableMath.sine(turns) * level.values(offsets)
      output.left[four: index] += values * left
      if let right { output.right[four: index] += values * right }
      carriers &+= carrierSteps
      modulators &+= modulatorSteps
      offsets += 4
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

  /// Of the next four samples.
  var four: SIMD4<UInt32> { SIMD4(value, value &+ step, value &+ 2 &* step, value &+ 3 &* step) }

  mutating func advance(_ count: Int) { value &+= UInt32(truncatingIfNeeded: count) &* step }
}
