import Synchronization
import WireProtocol

/// What a live source has said that it plays, each entry from its packet on. Written by the producer, read by the pacer.
package final class TimelineMetadata: Sendable {
  package struct Entry: Sendable {
    /// Counts up from 1.
    package var number: Int
    package var packetIndex: Int
    package var metadata: StreamMetadata
  }

  /// The last ones: a session is a few seconds behind its source.
  private static let maximumCount = 64
  private static let packetsApart = 50

  private let entries = Mutex<[Entry]>([])
  private let count = Atomic<Int>(0)

  func append(_ metadata: StreamMetadata, at packetIndex: Int) {
    entries.withLock { entries in
      guard entries.last?.metadata != metadata else { return }
      var entry = Entry(
        number: (entries.last?.number ?? 0) + 1, packetIndex: packetIndex, metadata: metadata)
      // Of those that come one upon the other, the last holds: else a flood of them would push out what is heard next.
      if let last = entries.last, packetIndex < last.packetIndex + Self.packetsApart {
        entry.packetIndex = last.packetIndex
        entries.removeLast()
      }
      entries.append(entry)
      if entries.count > Self.maximumCount { entries.removeFirst() }
      count.store(entry.number, ordering: .releasing)
    }
  }

  /// The last entry that holds for a packet, where it comes after the entry `number`. Takes the lock only where there is
  /// an entry after that one.
  func last(upTo packetIndex: Int, after number: Int) -> Entry? {
    guard count.load(ordering: .acquiring) > number else { return nil }
    return entries.withLock { entries in
      entries.last { $0.packetIndex <= packetIndex && $0.number > number }
    }
  }
}
