import DequeModule
import NIOCore
import WireProtocol

/// Marks that sessions without a home leave in the bucket. They are taken away when every Router has had the time to hear of
/// them: one that was cut off for longer reads the bucket anew.
package struct DeletionMarks {
  package struct Mark: Sendable, Equatable {
    package var id: SessionID
    package var revision: UInt64

    package init(id: SessionID, revision: UInt64) {
      self.id = id
      self.revision = revision
    }
  }

  /// How long a mark stays, and after how long an absence the bucket is read anew.
  package static let lifetime = TimeAmount.minutes(10)
  package static let absence = TimeAmount.minutes(5)
  /// Marks that are taken away at a time.
  package static let batchCount = 200

  private var marks: Deque<(mark: Mark, since: NIODeadline)> = []

  package init() {}

  package mutating func add(_ mark: Mark, now: NIODeadline) { marks.append((mark, now)) }

  /// The next that are to go, which are known no longer.
  package mutating func due(now: NIODeadline) -> [Mark] {
    let due = marks.prefix(Self.batchCount).prefix { now - $0.since >= Self.lifetime }.map(\.mark)
    marks.removeFirst(due.count)
    return due
  }
}
