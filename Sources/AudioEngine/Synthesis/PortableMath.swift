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

  /// Of a MIDI pitch, in equal temperament: 69 is 440 Hz.
  package static func hertz(pitch: Double) -> Double { 440 * exp2((pitch - 69) / 12) }

  /// What is left after `samples` of something that falls by 60 dB in `seconds`.
  package static func decay(seconds: Double, samples: Double) -> Double {
    // log2(1,000)
    exp2(-9.965_784_284_662_087 * samples / (seconds * Double(ScoreLimits.sampleRate)))
  }

  /// The sine of an angle in turns, −1,000 to 1,000; right to 10⁻⁶, which is 120 dB down. Without branches, so that
  /// the compiler computes several at once.
  @inline(__always)
  static func sine(_ turns: Float) -> Float {
    // Adding and taking away 1.5 × 2²³ rounds to a whole number. The cosine is even, so that of the angle less a
    // quarter only the magnitude is needed: sin t = cos(t − ¼) = sin(¼ − |t − ¼|).
    let shifted = turns - 0.25
    let whole = (shifted + 12_582_912) - 12_582_912
    let x = 0.25 - (shifted - whole).magnitude
    let square = x * x
    // The polynomial with the least error on −¼…¼, 3 × 10⁻⁹.
    var sum = square * 39.536_700 - 76.549_780
    sum = sum * square + 81.601_006
    sum = sum * square - 41.341_656
    return x * (sum * square + 6.283_185)
  }

  /// A phase of which 2³² are a turn, in turns.
  @inline(__always)
  static func turns(_ phase: UInt32) -> Float {
    // The upper 24 bits are a number's whole precision.
    Float(Int32(truncatingIfNeeded: phase &>> 8)) * (1 / 16_777_216)
  }
}
