/// A filter of the second order that stays stable however fast it is moved: the trapezoidal state-variable filter
/// (Andrew Simper, "Solving the continuous SVF equations using trapezoidal integration", 2013).
///
/// Simper's a₁, a₂ and a₃ are put into the equations of the next states, of which the low-pass is the mean of the
/// second before and after, and the band-pass that of the first.
struct StateVariableFilter {
  /// Keeps the states from growing so small that a processor computes them slowly.
  private static let floor: Float = 1e-18

  /// Simper's 2a₁ − 1, 2a₂ and 2a₃.
  private(set) var (own, crossed, input): (Float, Float, Float) = (0, 0, 0)
  /// Left and right.
  var (first, second): (SIMD2<Float>, SIMD2<Float>) = (.zero, .zero)

  /// - Parameters:
  ///   - hertz: 20 to 20,000; what is beyond is taken as that.
  ///   - damping: 2, which raises nothing, to 0.25; the cut-off itself is raised by its reciprocal.
  mutating func set(hertz: Float, damping: Float) {
    let turns = max(20, min(20_000, hertz)) * (1 / 48_000)
    // Simper's g is the tangent of half the angle; its squares become sines and cosines of the whole.
    let sines = PortableMath.sine(SIMD4(turns, 0.5 * turns, 0, 0))
    let lessCosine = 2 * sines.y * sines.y
    let share = 1 / (1 + 0.5 * damping * sines.x)
    own = (2 - lessCosine) * share - 1
    crossed = sines.x * share
    input = lessCosine * share
    first += Self.floor
  }

  /// One channel, in place.
  mutating func lowPass(_ samples: UnsafeMutablePointer<Float>, count: Int) {
    var filter = self
    for index in 0..<count { samples[index] = filter.below(samples[index]) }
    self = filter
  }

  /// One channel, in place: what is above the cut-off of `highPass` and below that of `lowPass`. Together, since each
  /// sample waits for the one before it.
  static func bandPass(
    _ highPass: inout StateVariableFilter, _ lowPass: inout StateVariableFilter,
    _ samples: UnsafeMutablePointer<Float>, count: Int, damping: Float
  ) {
    var (high, low) = (highPass, lowPass)
    for index in 0..<count {
      samples[index] = low.below(high.above(samples[index], damping: damping))
    }
    (highPass, lowPass) = (high, low)
  }

  @inline(__always)
  private mutating func below(_ sample: Float) -> Float {
    let error = sample - second.x
    let next = (second.x + crossed * first.x) + input * error
    defer {
      first.x = own * first.x + crossed * error
      second.x = next
    }
    return 0.5 * (second.x + next)
  }

  @inline(__always)
  private mutating func above(_ sample: Float, damping: Float) -> Float {
    let before = first.x
    let low = below(sample)
    return sample - (low + 0.5 * damping * (before + first.x))
  }
}
