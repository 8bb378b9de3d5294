import NIOCore
import ServiceSupport
import WireProtocol

/// Sessions that were claimed and are not used: clients request them and never use them. Their number is limited, for each
/// client and in all.
package struct UnusedClaims {
  private var clients: [SessionID: ClientID] = [:]
  private var since: [SessionID: NIODeadline] = [:]
  private var counts: [ClientID: Int] = [:]

  package init() {}

  package var count: Int { since.count }

  package func count(of client: ClientID) -> Int { counts[client] ?? 0 }

  package func hasRoom(for client: ClientID) -> Bool {
    count < RouterLimits.maximumUnusedHomes && count(of: client) < RouterLimits.unusedHomesPerClient
  }

  /// A client has requested a session without a home. It counts once `markUnused` is called.
  package mutating func claimed(_ id: SessionID, by client: ClientID) {
    remove(id)
    clients[id] = client
  }

  /// - Returns: since when the session has been unused.
  package mutating func markUnused(_ id: SessionID, now: NIODeadline) -> NIODeadline {
    if let since = since[id] { return since }
    since[id] = now
    if let client = clients[id] { counts[client, default: 0] += 1 }
    return now
  }

  /// The session is in use. If it becomes unused again, it counts for the same client.
  package mutating func markUsed(_ id: SessionID) {
    guard since.removeValue(forKey: id) != nil, let client = clients[id] else { return }
    counts.countDown(client)
  }

  /// The session is no longer this Router's.
  package mutating func remove(_ id: SessionID) {
    markUsed(id)
    clients[id] = nil
  }
}
