import WireProtocol

/// Whether a source of which nothing says how long it is comes at its own speed, as what is live does. A file that is
/// made or sent meanwhile comes faster.
package struct SourcePace {
  /// In which a server sends what it had in store.
  private static let settlingNanoseconds: UInt64 = 3_000_000_000
  private static let watchedNanoseconds: UInt64 = 9_000_000_000
  /// What network and encoder may make of a steady speed.
  private static let highestSpeed = 1.15

  private var windowNanoseconds: UInt64
  private var windowPacketCount = 0
  private var isSettling = true

  /// - Parameter now: when its first packet was begun.
  package init(now: UInt64) { windowNanoseconds = now }

  /// - Parameter packetCount: what it has given altogether.
  package mutating func isLive(packetCount: Int, now: UInt64) -> Bool {
    let elapsed = now - windowNanoseconds
    guard elapsed >= (isSettling ? Self.settlingNanoseconds : Self.watchedNanoseconds) else { return false }
    let sound =
      UInt64(packetCount - windowPacketCount) * UInt64(WireLimits.packetDurationMilliseconds) * 1_000_000
    let isSteady = !isSettling && Double(sound) <= Self.highestSpeed * Double(elapsed)
    (windowNanoseconds, windowPacketCount, isSettling) = (now, packetCount, false)
    return isSteady
  }
}
