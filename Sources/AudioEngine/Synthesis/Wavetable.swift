/// One period of a sound, made of as many harmonics as fit below the Nyquist frequency.
struct Wavetable: Sendable {
  /// Reading between two samples errs by (2π × harmonic ÷ size)² ÷ 8 of each harmonic: together about 80 dB below
  /// the whole.
  private static let sizeLog2: UInt32 = 11
  private static let size = 1 << Int(sizeLog2)
  private static let shift = 32 - sizeLog2
  private static let sine = (0..<size).map { PortableMath.sine(turns: Double($0) / Double(size)) }

  let harmonicCount: Int
  // Safe: written in `init` and only read afterwards; never freed, as all tables belong to static waveforms. Each
  // sample, less what the next one is more, and this difference.
  private nonisolated(unsafe) let samples: UnsafePointer<SIMD2<Float>>

  /// - Parameter harmonics: sine and cosine of each, from the first.
  init(_ harmonics: [(sine: Double, cosine: Double)]) {
    harmonicCount = harmonics.count
    var sums = [Double](repeating: 0, count: Self.size)
    for (index, harmonic) in harmonics.enumerated() where harmonic.sine != 0 || harmonic.cosine != 0 {
      var place = 0
      for sample in sums.indices {
        let quarter = (place + Self.size / 4) & (Self.size - 1)
        sums[sample] += harmonic.sine * Self.sine[place] + harmonic.cosine * Self.sine[quarter]
        place = (place + index + 1) & (Self.size - 1)
      }
    }
    let samples = UnsafeMutablePointer<SIMD2<Float>>.allocate(capacity: Self.size)
    for place in 0..<Self.size {
      let difference = sums[(place + 1) & (Self.size - 1)] - sums[place]
      (samples + place).initialize(to: SIMD2(Float(sums[place] - difference), Float(difference)))
    }
    self.samples = UnsafePointer(samples)
  }

  /// The sound at a phase in 2⁻³² of the period.
  @inline(__always)
  func value(_ phase: UInt32) -> Float {
    // Safe: the upper bits are less than the size.
    let place = samples[Int(phase &>> Self.shift)]
    // The lower bits are the fraction of a number from 1 to 2 (IEEE 754, section 3.4): one difference too much.
    let fraction = Float(bitPattern: ((phase &<< Self.sizeLog2) &>> 9) | 0x3F80_0000)
    return place.x + fraction * place.y
  }

  /// A sample and the difference to the next one.
  @inline(__always)
  private func place(_ phase: UInt32) -> Double {
    // Safe: the upper bits are less than the size.
    UnsafeRawPointer(samples + Int(phase &>> Self.shift)).load(as: Double.self)
  }

  /// The sound at four phases.
  @inline(__always)
  func values(_ phases: SIMD4<UInt32>) -> SIMD4<Float> {
    let (a, b) = (place(phases.x), place(phases.y))
    let (c, d) = (place(phases.z), place(phases.w))
    // Safe: both are four words of 32 bits, of which any is a Float, as above.
    let fractions = unsafeBitCast(
      ((phases &<< Self.sizeLog2) &>> 9) | 0x3F80_0000, to: SIMD4<Float>.self)
    // Safe: as above. As numbers of 64 bits, two samples' places are loaded in one piece each.
    let places = unsafeBitCast(SIMD4(a, b, c, d), to: SIMD8<Float>.self)
    return places.evenHalf + fractions * places.oddHalf
  }
}
