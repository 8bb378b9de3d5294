/// The loop's length and its filter: four points interpolate between two samples, three take the heights away,
/// and both together are six taps.
struct StringLoop {
  private static let tapCount = 6

  /// Samples from one written to the newest of those it is made of.
  private let delay: Int
  private let taps: [Float]

  var historyCount: Int { delay + Self.tapCount - 1 }

  init(hertz: Double, decaySeconds: Double) {
    let period = 48_000 / hertz
    let turns = hertz / 48_000
    // 4 kHz dies away within half a second, whatever the string's own pitch.
    let damping = min(0.24, 52 / hertz)
    // One sample is the damping's own.
    delay = Int(period - 2)
    let fraction = period - 1 - Double(delay)
    // The interpolation is a little late or early for high notes: what it errs by is taken away.
    var corrected = fraction
    for _ in 0..<3 { corrected += Self.error(corrected, wanted: fraction, turns: turns) }
    let interpolation = Self.interpolation(corrected)
    let gain = PortableMath.decay(seconds: decaySeconds, samples: period)
    taps = (0..<Self.tapCount).map { tap in
      let weights = [(0, damping), (1, 1 - 2 * damping), (2, damping)]
      return Float(
        gain
          * weights.reduce(0) { sum, weight in
            let index = tap - weight.0
            return sum + (interpolation.indices.contains(index) ? interpolation[index] * weight.1 : 0)
          })
    }
  }

  /// Lagrange's polynomial of the third order at `delay` samples, 1 to 2.
  private static func interpolation(_ delay: Double) -> [Double] {
    [
      -(delay - 1) * (delay - 2) * (delay - 3) / 6, delay * (delay - 2) * (delay - 3) / 2,
      -delay * (delay - 1) * (delay - 3) / 2, delay * (delay - 1) * (delay - 2) / 6,
    ]
  }

  /// Samples that the delay lacks at a frequency.
  private static func error(_ delay: Double, wanted: Double, turns: Double) -> Double {
    // The response, turned back by what is wanted, would be real.
    var (real, imaginary) = (0.0, 0.0)
    for (tap, weight) in interpolation(delay).enumerated() {
      let angle = (wanted - Double(tap)) * turns
      real += weight * PortableMath.cosine(turns: angle)
      imaginary += weight * PortableMath.sine(turns: angle)
    }
    // A small angle is as its tangent.
    return imaginary / real / (2 * .pi * turns)
  }

  /// Writes the next samples at `output`, before which lie those of a period; may write up to a vector more.
  func extend(_ output: UnsafeMutablePointer<Float>, count: Int) {
    let (t0, t1, t2, t3, t4, t5) = (taps[0], taps[1], taps[2], taps[3], taps[4], taps[5])
    let source = output - delay
    // Eight at a time, where none of the eight is made of another.
    if delay >= SampleBuffer.vectorCount {
      for index in stride(from: 0, to: count, by: SampleBuffer.vectorCount) {
        var sum = source[vector: index] * t0
        sum += source[vector: index - 1] * t1
        sum += source[vector: index - 2] * t2
        sum += source[vector: index - 3] * t3
        sum += source[vector: index - 4] * t4
        output[vector: index] = sum + source[vector: index - 5] * t5
      }
    } else {
      for index in 0..<count {
        var sum = source[index] * t0
        sum += source[index - 1] * t1
        sum += source[index - 2] * t2
        sum += source[index - 3] * t3
        sum += source[index - 4] * t4
        output[index] = sum + source[index - 5] * t5
      }
    }
  }
}
