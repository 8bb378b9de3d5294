/// Where a chord's notes are put, so that each voice moves as little as it can.
struct Voicing {
  let scale: Scale
  /// The tonic's MIDI pitch, in any octave.
  let tonic: Int
  /// The lowest note that a chord may begin on; it reaches at most an octave and a fifth higher.
  let lowest: Int
  private var previous: [Int] = []

  init(scale: Scale, tonic: Int, lowest: Int) {
    self.scale = scale
    self.tonic = tonic
    self.lowest = lowest
  }

  /// MIDI pitches from low to high, in close position: the inversion that is nearest to the chord before.
  mutating func pitches(of chord: Chord) -> [Int] {
    var best: [Int] = []
    var bestCost = Int.max
    for inversion in chord.degrees.indices {
      let pitches = position(of: chord, inversion)
      let cost = previous.isEmpty ? pitches[0] - lowest : movement(to: pitches)
      if cost < bestCost { (best, bestCost) = (pitches, cost) }
    }
    previous = best
    return best
  }

  private func position(of chord: Chord, _ inversion: Int) -> [Int] {
    // In the order in which the scale rises, so that added notes find their places.
    let rising = chord.degrees.sorted()
    var pitches: [Int] = []
    for index in rising.indices {
      let degree = rising[(index + inversion) % rising.count]
      let floor = pitches.last.map { $0 + 1 } ?? lowest
      let pitch = tonic + scale.semitones[degree]
      pitches.append(floor + (pitch - floor).quotientAndRemainder(floorDividingBy: 12).remainder)
    }
    return pitches
  }

  private func movement(to pitches: [Int]) -> Int {
    // The highest is heard most.
    let inner = zip(previous, pitches).reduce(0) { $0 + abs($1.0 - $1.1) }
    return inner + abs(previous.last! - pitches.last!)
  }
}
