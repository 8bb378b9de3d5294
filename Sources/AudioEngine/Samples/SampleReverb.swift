/// A room: eight delay lines that feed one another, each duller with every turn.
struct SampleReverb {
  /// In samples, all prime, 30 to 90 ms: no two echoes coincide, so none is heard alone.
  private static let lengths = [1_447, 1_783, 2_089, 2_477, 2_903, 3_313, 3_761, 4_273]
  /// What is left after one turn; about 3 s to −60 dB.
  private static let feedback: Float = 0.89
  private static let damping: Float = 0.35

  private let level: Float
  private var lines = lengths.map { [Float](repeating: 0, count: $0) }
  private var positions = [Int](repeating: 0, count: lengths.count)
  private var lowPassed = [Float](repeating: 0, count: lengths.count)

  init(level: Float) {
    self.level = level
  }

  /// Adds the room to what is dry.
  mutating func apply(_ left: inout [Float], _ right: inout [Float]) {
    for index in left.indices {
      var total: Float = 0
      for line in lines.indices {
        let out = lines[line][positions[line]]
        lowPassed[line] += (1 - Self.damping) * (out - lowPassed[line])
        total += lowPassed[line]
      }
      // A Householder reflection keeps the energy and mixes every line into every other.
      let shared = total * 2 / Float(lines.count)
      var wet: (left: Float, right: Float) = (0, 0)
      for line in lines.indices {
        let isLeft = line % 2 == 0
        let sign: Float = line % 4 < 2 ? 1 : -1
        if isLeft { wet.left += sign * lowPassed[line] } else { wet.right += sign * lowPassed[line] }
        let input = isLeft ? left[index] : right[index]
        lines[line][positions[line]] = Self.feedback * (lowPassed[line] - shared) + 0.5 * input
        positions[line] = positions[line] + 1 == Self.lengths[line] ? 0 : positions[line] + 1
      }
      left[index] += level * wet.left
      right[index] += level * wet.right
    }
  }
}
