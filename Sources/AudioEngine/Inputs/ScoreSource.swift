import Synchronization
import WireProtocol

/// A score as a track's source.
package struct ScoreSource: Hashable, Codable, Sendable {
  package let score: Score
  /// A number for each endless score, since pieces that join it are heard by its own session alone: no two are equal.
  private let performance: Int?

  package init(_ score: Score) {
    self.score = score
    performance = score.length == nil ? Self.count.add(1, ordering: .relaxed).newValue : nil
  }

  /// Whether it plays until it is stopped.
  var isEndless: Bool { score.length == nil }

  private static let count = Atomic<Int>(0)
}

extension ScoreSource: CustomStringConvertible {
  package var description: String { "the score \((score.title ?? "").debugDescription)" }
}
