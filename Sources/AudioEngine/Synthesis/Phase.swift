/// Where something periodic is in its turn.
struct Phase {
  /// In 2⁻³² of a turn.
  private(set) var value: UInt32 = 0
  /// The advance of the phase in one sample.
  var step: UInt32 = 0

  mutating func advance(_ count: Int) { value &+= UInt32(truncatingIfNeeded: count) &* step }

  /// Goes on by `count` samples, their phases four at a time.
  @inline(__always)
  mutating func forEachFour(_ count: Int, _ body: (_ index: Int, _ phases: SIMD4<UInt32>) -> Void) {
    var phases = SIMD4(value, value &+ step, value &+ 2 &* step, value &+ 3 &* step)
    let steps = SIMD4(repeating: 4 &* step)
    for index in stride(from: 0, to: count, by: 4) {
      body(index, phases)
      phases &+= steps
    }
    advance(count)
  }
}
