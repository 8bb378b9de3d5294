/// A low-pass of the second order that stays stable however fast it is moved: the trapezoidal state-variable
/// filter (Andrew Simper, "Solving the continuous SVF equations using trapezoidal integration", 2013).
struct StateVariableFilter {
  /// Keeps the states from growing so small that a processor computes them slowly.
  private static let floor: Float = 1e-18

  /// What each state gives to each, and the input to both.
  private var ownFirst: Float = 0
  private var crossed: Float = 0
  private var ownSecond: Float = 0
  private var inputFirst: Float = 0
  private var inputSecond: Float = 0
  /// What is heard of the states and the input.
  private var lowOfFirst: Float = 0
  private var lowOfSecond: Float = 0
  private var bandOfFirst: Float = 0
  private var bandOfSecond: Float = 0
  private var damping: Float = 0
  private var (first, second): (SIMD2<Float>, SIMD2<Float>) = (.zero, .zero)

  /// - Parameters:
  ///   - hertz: 20 to 20,000; what is beyond is taken as that.
  ///   - resonance: 0.5, none, to 4; the factor by which the cut-off itself is raised.
  mutating func set(hertz: Double, resonance: Double) {
    let turns = max(20, min(20_000, hertz)) / 96_000
    let tangent = PortableMath.sine(turns: turns) / PortableMath.cosine(turns: turns)
    // Simper's a1, a2, a3, put into the equations of the next states.
    let a1 = 1 / (1 + tangent * (tangent + 1 / resonance))
    let a2 = tangent * a1
    let a3 = tangent * a2
    ownFirst = Float(2 * a1 - 1)
    crossed = Float(2 * a2)
    ownSecond = Float(1 - 2 * a3)
    inputFirst = Float(2 * a2)
    inputSecond = Float(2 * a3)
    lowOfFirst = Float(a2)
    lowOfSecond = Float(1 - a3)
    bandOfFirst = Float(a1)
    bandOfSecond = Float(-a2)
    damping = Float(1 / resonance)
  }

  /// Left and right, in place.
  mutating func lowPass(_ samples: Samples, count: Int) {
    let (ownFirst, crossed, ownSecond) = (ownFirst, crossed, ownSecond)
    let (inputFirst, inputSecond) = (inputFirst, inputSecond)
    let (lowOfFirst, lowOfSecond, lowOfInput) = (lowOfFirst, lowOfSecond, 0.5 * inputSecond)
    var (first, second) = (first, second)
    for index in 0..<count {
      let input = samples[frame: index] + Self.floor
      samples[frame: index] = (lowOfSecond * second + lowOfInput * input) + lowOfFirst * first
      let nextFirst = (inputFirst * input - crossed * second) + ownFirst * first
      second = (inputSecond * input + crossed * first) + ownSecond * second
      first = nextFirst
    }
    (self.first, self.second) = (first, second)
  }

  /// One channel, in place.
  mutating func lowPass(_ samples: UnsafeMutablePointer<Float>, count: Int) {
    var (first, second) = (first.x, second.x)
    for index in 0..<count {
      let input = samples[index] + Self.floor
      samples[index] = (lowOfSecond * second + 0.5 * inputSecond * input) + lowOfFirst * first
      let nextFirst = (inputFirst * input - crossed * second) + ownFirst * first
      second = (inputSecond * input + crossed * first) + ownSecond * second
      first = nextFirst
    }
    (self.first.x, self.second.x) = (first, second)
  }

  /// One channel, in place: what is above the cut-off.
  mutating func highPass(_ samples: UnsafeMutablePointer<Float>, count: Int) {
    var (first, second) = (first.x, second.x)
    for index in 0..<count {
      let input = samples[index] + Self.floor
      let low = (lowOfSecond * second + 0.5 * inputSecond * input) + lowOfFirst * first
      let band = (bandOfFirst * first + lowOfFirst * input) + bandOfSecond * second
      samples[index] = input - damping * band - low
      let nextFirst = (inputFirst * input - crossed * second) + ownFirst * first
      second = (inputSecond * input + crossed * first) + ownSecond * second
      first = nextFirst
    }
    (self.first.x, self.second.x) = (first, second)
  }
}

// MARK: - Four at once

extension StateVariableFilter {
  typealias Four = (StateVariableFilter, StateVariableFilter, StateVariableFilter, StateVariableFilter)

  /// What `lowPass` does, for four at once: each waits for its own last sample, so that one alone leaves the
  /// processor idle.
  ///
  /// - Parameter samples: of the first; the others' lie `distance` values apart.
  static func lowPass(_ filters: inout Four, _ samples: Samples, distance: Int, count: Int) {
    let (ownFirst, crossed, ownSecond) = (
      lanes(filters) { $0.ownFirst }, lanes(filters) { $0.crossed }, lanes(filters) { $0.ownSecond }
    )
    let (inputFirst, inputSecond) = (lanes(filters) { $0.inputFirst }, lanes(filters) { $0.inputSecond })
    let (lowOfFirst, lowOfSecond) = (lanes(filters) { $0.lowOfFirst }, lanes(filters) { $0.lowOfSecond })
    let lowOfInput = 0.5 * inputSecond
    let (a, b, c, d) = (
      samples, samples.moved(distance), samples.moved(2 * distance), samples.moved(3 * distance)
    )
    var first = vector(filters.0.first, filters.1.first, filters.2.first, filters.3.first)
    var second = vector(filters.0.second, filters.1.second, filters.2.second, filters.3.second)
    for index in 0..<count {
      let input = vector(a[frame: index], b[frame: index], c[frame: index], d[frame: index]) + Self.floor
      let low = (lowOfSecond * second + lowOfInput * input) + lowOfFirst * first
      a[frame: index] = low.lowHalf.lowHalf
      b[frame: index] = low.lowHalf.highHalf
      c[frame: index] = low.highHalf.lowHalf
      d[frame: index] = low.highHalf.highHalf
      let nextFirst = (inputFirst * input - crossed * second) + ownFirst * first
      second = (inputSecond * input + crossed * first) + ownSecond * second
      first = nextFirst
    }
    (filters.0.first, filters.1.first) = (first.lowHalf.lowHalf, first.lowHalf.highHalf)
    (filters.2.first, filters.3.first) = (first.highHalf.lowHalf, first.highHalf.highHalf)
    (filters.0.second, filters.1.second) = (second.lowHalf.lowHalf, second.lowHalf.highHalf)
    (filters.2.second, filters.3.second) = (second.highHalf.lowHalf, second.highHalf.highHalf)
  }

  @inline(__always)
  private static func lanes(_ filters: Four, _ value: (StateVariableFilter) -> Float) -> SIMD8<Float> {
    let (a, b, c, d) = (value(filters.0), value(filters.1), value(filters.2), value(filters.3))
    return SIMD8(a, a, b, b, c, c, d, d)
  }

  @inline(__always)
  private static func vector(
    _ a: SIMD2<Float>, _ b: SIMD2<Float>, _ c: SIMD2<Float>, _ d: SIMD2<Float>
  ) -> SIMD8<Float> {
    SIMD8(lowHalf: SIMD4(lowHalf: a, highHalf: b), highHalf: SIMD4(lowHalf: c, highHalf: d))
  }
}
