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
    to output: NoteSamples, _ span: Span, bend: LinearRamp, level: LinearRamp, left: Float, right: Float?
  ) {
    withUnsafeTemporaryAllocation(of: Float.self, capacity: ControlBlock.sampleCount) { buffer in
      // Safe: a span is no longer than a control block, which is whole vectors.
      let bends = buffer.baseAddress!
      let isBent = bend.start != 0 || bend.slope != 0
      // In two loops: one sine after the other is more than a processor can look ahead over.
      if isBent {
        var offsets = LinearRamp.offsets(span.offset)
        modulator.forEachFour(span.count) { index, phases in
          bends[four: index] = PortableMath.sine(PortableMath.turns(phases)) * bend.values(offsets)
          offsets += 4
        }
      } else {
        modulator.advance(span.count)
      }
      var offsets = LinearRamp.offsets(span.offset)
      carrier.forEachFour(span.count) { index, phases in
        var turns = PortableMath.turns(phases)
        if isBent { turns += bends[four: index] }
        let values = PortableMath.sine(turns) * level.values(offsets)
        output.left[four: index] += values * left
        if let right { output.right[four: index] += values * right }
        offsets += 4
      }
    }
  }
}
