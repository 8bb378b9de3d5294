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
