import Synchronization

/// What all timelines of a store hold together: one count, kept as segments come and go, instead of a sum over
/// thousands of timelines for every second of sound.
package final class TimelineMemory: Sendable {
  private let segmentCount = Atomic<Int>(0)

  package init() {}

  var byteCount: Int { segmentCount.load(ordering: .relaxed) * PacketSegment.byteCount }

  func add(segments count: Int) { segmentCount.add(count, ordering: .relaxed) }
}
