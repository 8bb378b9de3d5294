import Crypto
import WireProtocol

/// Chance that is the same on every machine: SplitMix64, begun with the first eight bytes (big-endian) of a name's
/// SHA-256.
struct SeededGenerator {
  private var random: SplitMix64

  init(_ name: String) {
    random = SplitMix64(
      state: SHA256.hash(data: Array(name.utf8)).prefix(8).reduce(0) { $0 << 8 | UInt64($1) })
  }

  mutating func next() -> UInt64 { random.next() }

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
