/// A value that runs straight from one setting to the next.
struct Segment {
  var start: Float
  var slope: Float

  static let zero = Segment(start: 0, slope: 0)

  init(start: Float, slope: Float) {
    self.start = start
    self.slope = slope
  }

  init(from start: Float, to end: Float, samples: Int) {
    self.init(start: start, slope: (end - start) / Float(samples))
  }

  /// Of eight samples from `offset` on.
  @inline(__always)
  func vector(_ offset: Int) -> SIMD8<Float> {
    SIMD8<Float>(repeating: start) + (Float(offset) + SIMD8<Float>(0, 1, 2, 3, 4, 5, 6, 7))
      * SIMD8<Float>(repeating: slope)
  }

  /// Of four samples from `offset` on, each twice: for left and right.
  @inline(__always)
  func frames(_ offset: Int) -> SIMD8<Float> {
    SIMD8<Float>(repeating: start) + (Float(offset) + SIMD8<Float>(0, 0, 1, 1, 2, 2, 3, 3))
      * SIMD8<Float>(repeating: slope)
  }

  @inline(__always)
  func value(_ offset: Int) -> Float { value(Int32(truncatingIfNeeded: offset)) }

  @inline(__always)
  func value(_ offset: Int32) -> Float { start + Float(offset) * slope }
}
