import Glibc

/// The power of a sound at every frequency, through a Blackman window: what is 60 dB below a tone beside it is seen.
struct Spectrum {
  private(set) var powers: [Double]
  /// Between two of them.
  let hertz: Double

  /// - Parameter samples: at 48 kHz; as many as the largest power of two in them are looked at.
  init(_ samples: some Collection<Float>) {
    let count = 1 << Int(log2(Double(samples.count)))
    var real = samples.prefix(count).enumerated().map { index, sample in
      let turns = Double(index) / Double(count) * 2 * .pi
      return Double(sample) * (0.42 - 0.5 * cos(turns) + 0.08 * cos(2 * turns))
    }
    var imaginary = [Double](repeating: 0, count: count)
    Self.transform(&real, &imaginary)
    powers = (0..<count / 2).map { real[$0] * real[$0] + imaginary[$0] * imaginary[$0] }
    hertz = 48_000 / Double(count)
  }

  /// Cooley and Tukey's fast Fourier transform, in place.
  private static func transform(_ real: inout [Double], _ imaginary: inout [Double]) {
    let count = real.count
    var mirrored = 0
    for index in 0..<count - 1 {
      if index < mirrored {
        real.swapAt(index, mirrored)
        imaginary.swapAt(index, mirrored)
      }
      var bit = count >> 1
      while mirrored & bit != 0 {
        mirrored ^= bit
        bit >>= 1
      }
      mirrored |= bit
    }
    var size = 2
    while size <= count {
      for offset in 0..<size / 2 {
        let angle = -2 * Double.pi * Double(offset) / Double(size)
        let (c, s) = (cos(angle), sin(angle))
        for first in stride(from: offset, to: count, by: size) {
          let second = first + size / 2
          let (x, y) = (real[second] * c - imaginary[second] * s, real[second] * s + imaginary[second] * c)
          (real[second], imaginary[second]) = (real[first] - x, imaginary[first] - y)
          (real[first], imaginary[first]) = (real[first] + x, imaginary[first] + y)
        }
      }
      size *= 2
    }
  }

  /// The centre of what is within 3 % of a frequency: of a few oscillators side by side, where they are together.
  func centre(near frequency: Double) -> Double {
    let range = Int(frequency * 0.97 / hertz)...Int(frequency * 1.03 / hertz)
    let total = range.reduce(0) { $0 + powers[$1] }
    return range.reduce(0) { $0 + powers[$1] * Double($1) * hertz } / total
  }

  /// The share of the power in a range of frequencies for which `isCounted` holds.
  func share(_ isCounted: (Double) -> Bool) -> Double {
    let counted = powers.indices.filter { isCounted(Double($0) * hertz) }.reduce(0) { $0 + powers[$1] }
    return counted / powers.reduce(0, +)
  }
}
