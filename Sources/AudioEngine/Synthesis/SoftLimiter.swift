/// Keeps the sound within full scale without delaying it: what is above −3 dBFS is pressed together, softly, by a
/// gain that goes down at once and comes back within a fifth of a second; what is below is left alone. Also takes
/// away what is constant or slower than hearing.
struct SoftLimiter {
  private static let threshold: Float = 0.707_946
  /// What a sample leaves of the level followed: 150 ms to an e-th.
  private static let release: Float = 0.999_861
  /// The coefficient of a high-pass at 8 Hz.
  private static let slowShare: Float = 0.001_047
  private static let floor: Float = 1e-18

  private var level: Float = 0
  private var slow = SIMD2<Float>.zero

  /// In place; every sample is −1 to 1 afterwards.
  mutating func apply(to samples: Samples, count: Int) {
    var (level, slow) = (level, slow)
    for index in 0..<count {
      let dry = samples[frame: index]
      slow = (Self.slowShare * dry + Self.floor) + (1 - Self.slowShare) * slow
      var sample = dry - slow
      level = max(max(sample.x.magnitude, sample.y.magnitude) + Self.floor, level * Self.release)
      if level > Self.threshold {
        sample *= Self.pressed(level) / level
        // The division is right to its last bit only.
        sample = SIMD2(max(-1, min(1, sample.x)), max(-1, min(1, sample.y)))
      }
      samples[frame: index] = sample
    }
    (self.level, self.slow) = (level, slow)
  }

  /// Rises as its argument does at the threshold, and then less and less, up to 1.
  private static func pressed(_ level: Float) -> Float {
    let excess = (level - threshold) / (1 - threshold)
    return threshold + (1 - threshold) * (excess / (1 + excess))
  }
}
