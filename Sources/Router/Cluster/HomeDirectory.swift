import WireProtocol

/// Knows which Router is the home of which session, and decides which sessions this Router takes over and when. A value
/// without a clock: times are monotonic milliseconds.
package struct HomeDirectory: Sendable {
  package struct Home: Sendable, Equatable {
    package var router: String
    /// The revision of the claim.
    package var epoch: UInt64

    package init(router: String, epoch: UInt64) {
      self.router = router
      self.epoch = epoch
    }
  }

  /// The effect of a write to the bucket.
  package enum Change: Sendable, Equatable {
    /// It was known already.
    case nothing
    /// The session has another home, or none.
    case changed
    /// As `changed`, and it was this Router's.
    case lost
  }

  /// How much later than its predecessor in a session's order the next Router takes the session over.
  package static let rankMilliseconds = 1_000
  /// How long a Router that has not announced itself yet is waited for.
  package static let unheardMilliseconds = 3_000

  package let router: String
  private var homes: [SessionID: Home] = [:]
  private var sessions: [String: Set<SessionID>] = [:]
  /// The other Routers that are connected.
  private var live: Set<String> = []
  /// Routers that have sessions and are not connected: from when their sessions may be taken over.
  private var absentSince: [String: Int] = [:]
  /// The last write that the watch has reported.
  private var watchedRevision: UInt64 = 0

  /// - Parameter router: this one.
  package init(router: String) { self.router = router }

  package func home(of id: SessionID) -> Home? { homes[id] }

  /// The watch reports everything from the start.
  package mutating func watchBegins() { watchedRevision = 0 }

  /// Homes that a watch from the start did not report, although it has passed their revisions.
  package func missingFromWatch(_ told: Set<SessionID>) -> [SessionID: Home] {
    homes.filter { !told.contains($0.key) && $0.value.epoch <= watchedRevision }
  }

  /// The epoch of a session that is this Router's.
  package func ownEpoch(of id: SessionID) -> UInt64? {
    homes[id].flatMap { $0.router == router ? $0.epoch : nil }
  }

  package var ownSessions: Set<SessionID> { sessions[router] ?? [] }

  package func isHome(_ router: String) -> Bool { sessions[router] != nil }

  package func isLive(_ router: String) -> Bool { live.contains(router) }

  // MARK: Reports of the bucket

  /// Takes a write that the watch reports. Writes come in order.
  ///
  /// - Parameter owner: nil where the key was deleted.
  package mutating func watched(_ id: SessionID, owner: String?, revision: UInt64, now: Int) -> Change {
    // A watch reports revisions in order: a lower one belongs to another bucket, which has replaced the former one.
    let isOfAnotherBucket = revision < watchedRevision
    watchedRevision = revision
    guard isOfAnotherBucket || revision > homes[id]?.epoch ?? 0 else { return .nothing }
    return set(id, owner.map { Home(router: $0, epoch: revision) }, now: now)
  }

  /// Takes a value that this Router has written, or read from the leader. It may be older than the watch's last report.
  package mutating func answered(_ id: SessionID, owner: String, revision: UInt64, now: Int) -> Change {
    guard revision > watchedRevision, revision > homes[id]?.epoch ?? 0 else { return .nothing }
    return set(id, Home(router: owner, epoch: revision), now: now)
  }

  /// The leader has no value: the known home is gone, although no watch has reported it.
  package mutating func recordMissing(_ id: SessionID, since home: Home, now: Int) -> Change {
    homes[id] == home ? set(id, nil, now: now) : .nothing
  }

  private mutating func set(_ id: SessionID, _ home: Home?, now: Int) -> Change {
    let old = homes[id]
    guard old != home else { return .nothing }
    homes[id] = home
    if let old, old.router != home?.router {
      sessions[old.router]?.remove(id)
      if sessions[old.router]?.isEmpty == true {
        sessions[old.router] = nil
        absentSince[old.router] = nil
      }
    }
    if let home {
      sessions[home.router, default: []].insert(id)
      if home.router != router, !live.contains(home.router), absentSince[home.router] == nil {
        absentSince[home.router] = now + Self.unheardMilliseconds
      }
    }
    return old?.router == router && home?.router != router ? .lost : .changed
  }

  // MARK: Membership

  package mutating func joined(_ router: String) {
    live.insert(router)
    absentSince[router] = nil
  }

  /// A Router is gone, or is stopping.
  package mutating func left(_ router: String, now: Int) {
    live.remove(router)
    if sessions[router] != nil { absentSince[router] = now }
  }

  // MARK: Takeover

  /// Sessions that this Router is to take over now, and their former homes.
  package func due(now: Int) -> [(id: SessionID, home: Home)] {
    var due: [(id: SessionID, home: Home)] = []
    for (absent, since) in absentSince where since <= now {
      for id in sessions[absent] ?? [] {
        guard let home = homes[id], now >= since + rank(of: id) * Self.rankMilliseconds else { continue }
        due.append((id, home))
      }
    }
    return due
  }

  /// How many of the connected Routers come before this one in a session's order.
  package func rank(of id: SessionID) -> Int {
    let own = Self.score(router, id)
    return live.count { Self.score($0, id) > own }
  }

  /// Rendezvous hashing: each Router computes the same scores, and the highest of the connected Routers' is first. FNV-1a,
  /// mixed, since its high bits hardly differ between short texts.
  private static func score(_ router: String, _ id: SessionID) -> UInt64 {
    var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    for byte in "\(router) \(id)".utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
    var mixed = SplitMix64(state: hash)
    return mixed.next()
  }
}
