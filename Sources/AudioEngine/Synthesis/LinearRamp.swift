/// A value that runs straight from one setting to the next.
struct LinearRamp {
  var start: Float
  var slope: Float

  static let zero = LinearRamp(start: 0, slope: 0)

  init(start: Float, slope: Float) {
    self.start = start
    self.slope = slope
  }

  init(from start: Float, to end: Float, samples: Int) {
    self.init(start: start, slope: (end - start) / Float(samples))
  }

  /// That of four samples from `offset` on, to which a loop adds 4: in small whole numbers that is exact.
  @inline(__always)
  static func offsets(_ offset: Int) -> SIMD4<Float> {
    Float(Int32(truncatingIfNeeded: offset)) + SIMD4<Float>(0, 1, 2, 3)
  }

  /// The values of the samples at these offsets from the setting.
  @inline(__always)
  func values(_ offsets: SIMD4<Float>) -> SIMD4<Float> { start + offsets * slope }

  /// The ramp multiplied by a gain.
  func scaled(_ gain: Float) -> LinearRamp { LinearRamp(start: start * gain, slope: slope * gain) }
}
