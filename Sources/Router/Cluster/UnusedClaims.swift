import NIOCore
import ServiceSupport
import WireProtocol

/// Sessions that were claimed and are not used: what clients ask for and never make. There may be so many of one client's, and
/// so many in all.
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

  /// A client has asked for a session that nobody had. It counts where it is found to be unused.
  package mutating func claimed(_ id: SessionID, by client: ClientID) {
    remove(id)
    clients[id] = client
  }

  /// - Returns: since when it has been so.
  package mutating func isUnused(_ id: SessionID, now: NIODeadline) -> NIODeadline {
    if let since = since[id] { return since }
    since[id] = now
    if let client = clients[id] { counts[client, default: 0] += 1 }
    return now
  }

  /// It is used; it is that client's where it no longer is.
  package mutating func isUsed(_ id: SessionID) {
    guard since.removeValue(forKey: id) != nil, let client = clients[id] else { return }
    counts.countDown(client)
  }

  /// It is not this Router's.
  package mutating func remove(_ id: SessionID) {
    isUsed(id)
    clients[id] = nil
  }
}
