/// A gain that goes to what it is set to within 20 ms, without a click.
struct GainRamp {
  private static let sampleCount = 960

  private var start: Float
  private(set) var target: Float
  /// Samples since it was set; `sampleCount` where it has arrived.
  private var age = sampleCount

  init(_ gain: Float) {
    start = gain
    target = gain
  }

  private func value(_ age: Int) -> Float {
    age >= Self.sampleCount ? target : start + (target - start) * (Float(age) / Float(Self.sampleCount))
  }

  mutating func set(_ gain: Float) {
    guard gain != target else { return }
    start = value(age)
    target = gain
    age = 0
  }

  /// Whether the samples are left as they are.
  var isNeutral: Bool { target == 1 && age >= Self.sampleCount }

  /// In place, from the present on; `advance` comes after all that have this gain.
  func apply(to samples: Samples, count: Int) {
    guard !isNeutral else { return }
    for index in 0..<count {
      let gain = value(age + index)
      samples[frame: index] *= gain
    }
  }

  mutating func advance(_ count: Int) { age = min(Self.sampleCount, age + count) }
}
