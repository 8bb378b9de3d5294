import WireProtocol

/// Takes a session's last packets, which an engine sends again, out of that engine's stream. Confined to the data
/// plane's loop.
final class BurstCollector {
  /// What is collected.
  private struct IncomingBurst {
    var sessionID: SessionID
    var packetsLeft: Int
    var place: PacketCounter.Place
    var sound = SoundBurst()
    var end: (SoundBurst?) -> Void
  }

  private var incoming: IncomingBurst?

  @inline(__always)
  var isCollecting: Bool { incoming != nil }

  /// Collects the next packets, which are a session's last ones again.
  ///
  /// - Parameters:
  ///   - first: place and time of the first of them.
  ///   - next: the number of the session's next packet.
  ///   - end: called when all are there, before the session's next packet; with nil where they do not come.
  func collect(
    of id: SessionID, from first: EngineEvent.Anchor, count: Int, before next: UInt32,
    _ end: @escaping (SoundBurst?) -> Void
  ) {
    guard count > 0 else { return end(nil) }
    let place = PacketCounter.Place(
      sequence: next &- UInt32(truncatingIfNeeded: count), dueNanoseconds: first.dueNanoseconds,
      positionMilliseconds: UInt32(clamping: first.positionMilliseconds))
    incoming = IncomingBurst(sessionID: id, packetsLeft: count, place: place, end: end)
  }

  /// What was collected is of an engine that has gone.
  func drop() {
    let burst = incoming
    incoming = nil
    burst?.end(nil)
  }

  /// Takes a packet while a burst is collected.
  ///
  /// - Parameter packet: header and audio.
  /// - Returns: false where it is not what the burst has said that comes.
  func take(_ id: SessionID, _ packet: UnsafeMutableRawBufferPointer) -> Bool {
    guard var burst = incoming, burst.sessionID == id else { return false }
    // One holder, so that its bytes are not copied.
    incoming = nil
    var counter = PacketCounter(at: burst.place)
    burst.sound.append(counter.take(), packet[WireLimits.packetHeaderByteCount...])
    burst.place = counter.next
    burst.packetsLeft -= 1
    if burst.packetsLeft > 0 {
      incoming = burst
    } else {
      burst.end(burst.sound)
    }
    return true
  }
}
