import ServiceSupport
import WireProtocol

/// For whom each bed plays: a client who listens to many repositories has so many of them play and no more.
package struct BedShares {
  private var owners: [SessionID: ClientID] = [:]
  private var counts: [ClientID: Int] = [:]

  package init() {}

  /// Begins a session's bed for the first of those who listen to it that may have another.
  ///
  /// - Returns: that client; nil where none of them may.
  package mutating func begin(_ session: SessionID, for listeners: some Sequence<Grant>) -> ClientID? {
    end(session)
    for grant in listeners {
      guard counts[grant.client] ?? 0 < Self.limit(for: grant) else { continue }
      owners[session] = grant.client
      counts[grant.client, default: 0] += 1
      return grant.client
    }
    return nil
  }

  package mutating func end(_ session: SessionID) {
    guard let owner = owners.removeValue(forKey: session) else { return }
    counts.countDown(owner)
  }

  package static func limit(for grant: Grant) -> Int {
    RouterLimits.bedsPerClient * max(1, grant.limitFactor)
  }
}
