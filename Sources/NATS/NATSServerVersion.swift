/// A server's version: three numbers. What follows them, as of a pre-release, is left out.
package struct NATSServerVersion: Comparable, CustomStringConvertible {
  private let numbers: [Int]

  /// From which on the replicas of a stream stay equal. Before it, two of several conditional writes at a time may
  /// both succeed, and a server that was killed doubles messages once for each that was refused.
  package static let keepsReplicasEqual = NATSServerVersion(numbers: [2, 10, 26])

  private init(numbers: [Int]) { self.numbers = numbers }

  /// - Parameter text: as INFO has it, such as `2.10.26` or `2.12.0-RC.1`.
  package init?(_ text: String) {
    let parts = text.prefix { $0.isNumber || $0 == "." }.split(separator: ".").map { Int($0) }
    let numbers = parts.compactMap(\.self)
    guard parts.count == 3, numbers.count == 3 else { return nil }
    self.init(numbers: numbers)
  }

  package var description: String { numbers.map(String.init).joined(separator: ".") }

  package static func < (one: Self, other: Self) -> Bool {
    one.numbers.lexicographicallyPrecedes(other.numbers)
  }
}
