import WireProtocol

extension SplitMix64 {
  /// Uniform in −1 ..< 1.
  mutating func signed() -> Float {
    Float(Int32(truncatingIfNeeded: next() >> 40) - 8_388_608) / 8_388_608
  }
}
