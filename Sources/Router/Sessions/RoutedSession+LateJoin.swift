import NIOCore
import WireProtocol

/// A burst that was built, and for whom it is.
struct CachedBurst {
  var packetCount: Int
  var subprotocol: Subprotocol
  var burst: (frames: ByteBuffer, messageCount: Int)?
}

/// What those are given who join.
extension RoutedSession {
  /// The packets of the last `milliseconds`, where they are what the session sounds like now.
  func recentPackets(milliseconds: Int) -> (ring: LateJoinRing, packetCount: Int)? {
    guard state == .streaming, milliseconds > 0 else { return nil }
    return (ring, milliseconds / WireLimits.packetDurationMilliseconds)
  }

  /// These as what a WebSocket is sent.
  func burst(
    milliseconds: Int, subprotocol: Subprotocol
  ) -> (frames: ByteBuffer, messageCount: Int)? {
    guard let (ring, packetCount) = recentPackets(milliseconds: milliseconds) else { return nil }
    if let cachedBurst, cachedBurst.packetCount == packetCount, cachedBurst.subprotocol == subprotocol {
      return cachedBurst.burst
    }
    let burst = WebSocketFrames.burst(ring, packetCount: packetCount, subprotocol: subprotocol)
    cachedBurst = CachedBurst(packetCount: packetCount, subprotocol: subprotocol, burst: burst)
    return burst
  }

  /// Of a session whose packets have stopped nothing is kept twice. Called once a second.
  func forgetBurst() { cachedBurst = nil }

  var lateJoinByteCount: Int { ring.byteCount }

  /// What it would keep of its last seconds.
  var lateJoinWish: LateJoinShares.Wish {
    LateJoinShares.Wish(client: creator, byteCount: ring.wishedByteCount, isHeard: listenerCount > 0)
  }

  func limitLateJoin(_ byteCount: Int) {
    ring.limit = byteCount
    accounts.update(self)
  }

  func forgetSound() {
    ring.removeAll()
    cachedBurst = nil
    accounts.update(self)
  }
}
