import DequeModule
import NIOCore
import WireProtocol

/// Delete markers of released sessions in the bucket. They are purged after every Router has had time to see them; a Router
/// that was disconnected for longer reads the bucket again.
package struct DeleteMarkers {
  package struct Marker: Sendable, Equatable {
    package var id: SessionID
    package var revision: UInt64

    package init(id: SessionID, revision: UInt64) {
      self.id = id
      self.revision = revision
    }
  }

  /// How long a marker stays, and after how long a disconnection the bucket is read again.
  package static let lifetime = TimeAmount.minutes(10)
  package static let absence = TimeAmount.minutes(5)
  /// Markers that are purged at a time.
  package static let batchCount = 200

  private var markers: Deque<(marker: Marker, since: NIODeadline)> = []

  package init() {}

  package mutating func add(_ marker: Marker, now: NIODeadline) { markers.append((marker, now)) }

  /// Removes and returns the next markers that are due to be purged.
  package mutating func due(now: NIODeadline) -> [Marker] {
    let due = markers.prefix(Self.batchCount).prefix { now - $0.since >= Self.lifetime }.map(\.marker)
    markers.removeFirst(due.count)
    return due
  }
}
