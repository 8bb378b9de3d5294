import WireProtocol

/// Where each packet belongs, by counting: the wire gives an anchor where the count begins, and every
/// packet is 20 ms after the one before it.
package struct PacketCounter: Equatable {
  /// One packet's place.
  package struct Place: Equatable, Sendable {
    /// Counts the session's packets, lost ones included; wraps.
    package var sequence: UInt32
    /// `CLOCK_MONOTONIC`.
    package var dueNanoseconds: UInt64
    /// In the track.
    package var positionMilliseconds: UInt32

    package init(sequence: UInt32, dueNanoseconds: UInt64, positionMilliseconds: UInt32) {
      self.sequence = sequence
      self.dueNanoseconds = dueNanoseconds
      self.positionMilliseconds = positionMilliseconds
    }
  }

  /// The place of the next packet.
  package private(set) var next = Place(sequence: 0, dueNanoseconds: 0, positionMilliseconds: 0)

  package init() {}

  init(at next: Place) { self.next = next }

  /// Takes the next packet's place and time from the engine; the sequence goes on.
  package mutating func anchor(positionMilliseconds: Int, dueNanoseconds: UInt64?) {
    next.positionMilliseconds = UInt32(clamping: positionMilliseconds)
    if let dueNanoseconds { next.dueNanoseconds = dueNanoseconds }
  }

  /// The place of the packet that has come.
  package mutating func take() -> Place {
    defer { skip(1) }
    return next
  }

  /// Leaves out packets that this router has lost.
  package mutating func skip(_ count: Int) {
    let packets = UInt64(clamping: count)
    next.sequence &+= UInt32(truncatingIfNeeded: packets)
    next.dueNanoseconds &+= packets &* WireLimits.packetDurationNanoseconds
    next.positionMilliseconds &+=
      UInt32(truncatingIfNeeded: packets &* UInt64(WireLimits.packetDurationMilliseconds))
  }
}
