import WireProtocol

/// Functions that give the same bits on every machine: nothing but IEEE 754's + − × ÷, which are exact to the
/// last bit everywhere, as the C library's `sin` and `exp2` are not (`docs/decisions/0017-portable-sound.md`).
package enum PortableMath {
  /// The sine of an angle in turns: one turn is 2π.
  package static func sine(turns: Double) -> Double {
    // Into −½…½, and then into −¼…¼, where the sine has the same value.
    let whole = Double(Int(turns + (turns < 0 ? -0.5 : 0.5)))
    var angle = turns - whole
    if angle > 0.25 { angle = 0.5 - angle } else if angle < -0.25 { angle = -0.5 - angle }
    let x = angle * (2 * .pi)
    let square = x * x
    // Its series, to the 17th power: the next term is below 10⁻¹⁶.
    var sum = square * (1 / 355_687_428_096_000) - 1 / 1_307_674_368_000
    sum = sum * square + 1 / 6_227_020_800
    sum = sum * square - 1 / 39_916_800
    sum = sum * square + 1 / 362_880
    sum = sum * square - 1 / 5_040
    sum = sum * square + 1 / 120
    sum = sum * square - 1 / 6
    return x * (sum * square + 1)
  }

  package static func cosine(turns: Double) -> Double { sine(turns: turns + 0.25) }

  /// 2 to the power of `exponent`, −1,000 to 1,000.
  package static func exp2(_ exponent: Double) -> Double {
    let whole = Int(exponent + (exponent < 0 ? -0.5 : 0.5))
    let x = (exponent - Double(whole)) * 0.693_147_180_559_945_3
    // Its series, to the 12th power: the next term is below 10⁻¹⁵.
    var sum = x * (1 / 479_001_600) + 1 / 39_916_800
    sum = sum * x + 1 / 3_628_800
    sum = sum * x + 1 / 362_880
    sum = sum * x + 1 / 40_320
    sum = sum * x + 1 / 5_040
    sum = sum * x + 1 / 720
    sum = sum * x + 1 / 120
    sum = sum * x + 1 / 24
    sum = sum * x + 1 / 6
    sum = sum * x + 1 / 2
    sum = sum * x + 1
    return (sum * x + 1) * Double(bitPattern: UInt64(1_023 + whole) << 52)
  }

  /// The frequency of a MIDI pitch, in equal temperament: 69 is 440 Hz.
  package static func hertz(pitch: Double) -> Double { 440 * exp2((pitch - 69) / 12) }

  /// What is left after `samples` of something that falls by 60 dB in `seconds`.
  package static func decay(seconds: Double, samples: Double) -> Double {
    // log2(1,000)
    exp2(-9.965_784_284_662_087 * samples / (seconds * Double(ScoreLimits.sampleRate)))
  }

  /// 1.5 × 2²³: adding it rounds to a whole number, which is then in the lowest bits, and which taking it away gives
  /// (IEEE 754, sections 3.4 and 4.3.1).
  static let rounding: Float = 12_582_912

  /// 2 to the power of `exponent`, −100 to 100; right to 2 × 10⁻⁷ of itself.
  static func exp2(_ exponent: Float) -> Float {
    let whole = (exponent + rounding) - rounding
    let x = (exponent - whole) * 0.693_147_18
    var sum = x * (1 / 720) + 1 / 120
    sum = sum * x + 1 / 24
    sum = sum * x + 1 / 6
    sum = sum * x + 1 / 2
    sum = sum * x + 1
    return (sum * x + 1) * Float(bitPattern: UInt32(127 + Int32(whole)) << 23)
  }

  /// The sines of angles in turns, −1,000 to 1,000; right to 10⁻⁶, which is 120 dB down.
  @inline(__always)
  static func sine(_ turns: SIMD4<Float>) -> SIMD4<Float> {
    // The cosine is even, so that of the angle less a quarter only the magnitude is needed:
    // sin t = cos(t − ¼) = sin(¼ − |t − ¼|).
    let shifted = turns - 0.25
    let whole = (shifted + rounding) - rounding
    // Safe: both are four words of 32 bits, of which any is a Float; the highest bit is its sign.
    let bits = unsafeBitCast(shifted - whole, to: SIMD4<UInt32>.self) & 0x7FFF_FFFF
    let x = 0.25 - unsafeBitCast(bits, to: SIMD4<Float>.self)
    let square = x * x
    // The polynomial with the least error on −¼…¼, 6 × 10⁻⁷.
    var sum = 81.340_771 - square * 70.993_454
    sum = sum * square - 41.337_142
    return x * (sum * square + 6.283_164)
  }

  /// Phases of which 2³² are a turn, in turns, and one turn more.
  @inline(__always)
  static func turns(_ phases: SIMD4<UInt32>) -> SIMD4<Float> {
    // Safe: as above. These bits are the fraction of a number from 1 to 2 (IEEE 754, section 3.4).
    unsafeBitCast((phases &>> 9) | 0x3F80_0000, to: SIMD4<Float>.self)
  }
}
