import Crypto

/// Chance that is the same on every machine: Sebastiano Vigna's SplitMix64, begun with the first eight bytes
/// (big-endian) of a name's SHA-256.
struct SeededGenerator {
  private var state: UInt64

  init(_ name: String) {
    state = SHA256.hash(data: Array(name.utf8)).prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
  }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var word = state
    word = (word ^ (word >> 30)) &* 0xBF58_476D_1CE4_E5B9
    word = (word ^ (word >> 27)) &* 0x94D0_49BB_1331_11EB
    return word ^ (word >> 31)
  }

  /// Uniform in 0 ..< `bound`, as the upper word of the product.
  mutating func below(_ bound: Int) -> Int {
    Int(next().multipliedFullWidth(by: UInt64(bound)).high)
  }

  mutating func within(_ range: ClosedRange<Int>) -> Int {
    range.lowerBound + below(range.count)
  }

  mutating func pick<Element>(_ choices: [Element]) -> Element {
    choices[below(choices.count)]
  }

  /// True in so many of a hundred cases.
  mutating func chance(_ percent: Int) -> Bool {
    below(100) < percent
  }

  /// A score's seed (`ScoreLimits.seedRange`).
  mutating func scoreSeed() -> Int {
    Int(next() >> 11)
  }
}
