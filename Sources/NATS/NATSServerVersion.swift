/// A server's version: three numbers. A pre-release suffix is ignored.
package struct NATSServerVersion: Comparable, CustomStringConvertible {
  private let numbers: [Int]

  /// The first version that keeps a stream's replicas consistent. In earlier ones two concurrent conditional writes may both
  /// succeed, and the replica of a server that was killed may contain a duplicate for each rejected write.
  package static let minimumForReplicas = NATSServerVersion(numbers: [2, 10, 26])

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
