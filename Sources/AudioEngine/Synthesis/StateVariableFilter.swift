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
    let (own, crossed, input) = (own, crossed, input)
    var (first, second) = (first.x, second.x)
    for index in 0..<count {
      let error = samples[index] - second
      let next = (second + crossed * first) + input * error
      samples[index] = 0.5 * (second + next)
      first = own * first + crossed * error
      second = next
    }
    (self.first.x, self.second.x) = (first, second)
  }

  /// One channel, in place: what is above the cut-off.
  mutating func highPass(_ samples: UnsafeMutablePointer<Float>, count: Int, damping: Float) {
    let (own, crossed, input) = (own, crossed, input)
    var (first, second) = (first.x, second.x)
    for index in 0..<count {
      let error = samples[index] - second
      let next = (second + crossed * first) + input * error
      let nextFirst = own * first + crossed * error
      samples[index] -= 0.5 * ((second + next) + damping * (first + nextFirst))
      first = nextFirst
      second = next
    }
    (self.first.x, self.second.x) = (first, second)
  }
}
