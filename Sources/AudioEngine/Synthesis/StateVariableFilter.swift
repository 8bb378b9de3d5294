/// A low-pass of the second order that stays stable however fast it is moved: the trapezoidal state-variable
/// filter (Andrew Simper, "Solving the continuous SVF equations using trapezoidal integration", 2013).
struct StateVariableFilter {
  /// Keeps the states from growing so small that a processor computes them slowly.
  private static let floor: Float = 1e-18

  private var a1: Float = 0
  private var a2: Float = 0
  private var a3: Float = 0
  private var damping: Float = 0
  private var (first, second): (SIMD2<Float>, SIMD2<Float>) = (.zero, .zero)

  /// - Parameters:
  ///   - hertz: 20 to 20,000; what is beyond is taken as that.
  ///   - resonance: 0.5, none, to 4; the factor by which the cut-off itself is raised.
  mutating func set(hertz: Double, resonance: Double) {
    let turns = max(20, min(20_000, hertz)) / 96_000
    let tangent = PortableMath.sine(turns: turns) / PortableMath.cosine(turns: turns)
    let first = 1 / (1 + tangent * (tangent + 1 / resonance))
    damping = Float(1 / resonance)
    a1 = Float(first)
    a2 = Float(tangent * first)
    a3 = Float(tangent * tangent * first)
  }

  /// In place.
  mutating func lowPass(_ left: UnsafeMutablePointer<Float>, _ right: UnsafeMutablePointer<Float>, count: Int)
  {
    var (first, second) = (first, second)
    for index in 0..<count {
      let input = SIMD2(left[index], right[index]) + Self.floor - second
      let band = a1 * first + a2 * input
      let low = second + (a2 * first + a3 * input)
      first = band + band - first
      second = low + low - second
      left[index] = low.x
      right[index] = low.y
    }
    (self.first, self.second) = (first, second)
  }

  /// One channel, in place.
  mutating func lowPass(_ samples: UnsafeMutablePointer<Float>, count: Int) {
    var (first, second) = (first.x, second.x)
    for index in 0..<count {
      let input = samples[index] + Self.floor - second
      let band = a1 * first + a2 * input
      let low = second + (a2 * first + a3 * input)
      first = band + band - first
      second = low + low - second
      samples[index] = low
    }
    (self.first.x, self.second.x) = (first, second)
  }

  /// One channel, in place: what is above the cut-off.
  mutating func highPass(_ samples: UnsafeMutablePointer<Float>, count: Int) {
    var (first, second) = (first.x, second.x)
    for index in 0..<count {
      let dry = samples[index]
      let input = dry + Self.floor - second
      let band = a1 * first + a2 * input
      let low = second + (a2 * first + a3 * input)
      first = band + band - first
      second = low + low - second
      samples[index] = dry - damping * band - low
    }
    (self.first.x, self.second.x) = (first, second)
  }
}
