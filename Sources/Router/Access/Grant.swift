import Glibc
import WireProtocol

/// Who somebody is and what they may do, until when: what a token or a ticket says, or everything.
package struct Grant: Sendable, Hashable {
  /// The token's `sub`, for people to read.
  package var subject: String?
  package var sessions: [SessionPattern]
  /// The largest; nil for who may do nothing.
  package var scope: Scope?
  /// Milliseconds since 1970, of the wall clock; nil for never.
  package var expiresAtMilliseconds: Int64?
  /// Whom what is done with it is accounted to.
  package var client = ClientID(subject: nil, address: nil)
  /// How many times the usual limits of a client these are: the token's `limits`, or ten for `admin`.
  package var limitFactor = 1
  /// Whether nothing was shown: neither token nor ticket.
  package var isAnonymous = false

  package init(
    subject: String? = nil, sessions: [SessionPattern], scope: Scope?, expiresAtMilliseconds: Int64? = nil
  ) {
    self.subject = subject
    self.sessions = sessions
    self.scope = scope
    self.expiresAtMilliseconds = expiresAtMilliseconds
  }

  /// What everyone has where no tokens are asked for.
  package static let everything = {
    var grant = Grant(sessions: [.all], scope: .admin)
    grant.isAnonymous = true
    return grant
  }()

  /// A grant for one client.
  ///
  /// - Parameter address: an IP address; nil where it is not known.
  package static func everything(from address: String?) -> Grant {
    var grant = everything
    grant.client = ClientID(subject: nil, address: address)
    return grant
  }

  /// What a request has until it is known whose it is.
  package static let nothing = Grant(sessions: [], scope: nil)

  /// What a WebSocket is closed with when its token expires, besides 4401.
  package static let expiredReason = "the token has expired: connect again with a new one"

  package func isExpired(now: Int64 = Self.nowMilliseconds) -> Bool {
    expiresAtMilliseconds.map { $0 <= now } ?? false
  }

  package func matches(_ session: SessionID) -> Bool {
    sessions.contains { $0.matches(session) }
  }

  /// Refuses what the grant does not allow.
  ///
  /// - Parameter session: the one concerned, if one is.
  /// - Throws: `forbidden`, or `unauthorized` where the grant is over.
  package func require(
    _ scope: Scope, _ session: SessionID? = nil, now: Int64 = Self.nowMilliseconds
  ) throws(RequestError) {
    guard !isExpired(now: now) else {
      throw RequestError(.unauthorized, "the token has expired", hint: "use a new one")
    }
    guard let own = self.scope, own >= scope else {
      throw RequestError(
        .forbidden,
        "this needs the scope \(scope.rawValue), and the token has \(self.scope?.rawValue ?? "none")",
        hint: "use a token with that scope")
    }
    guard let session, !matches(session) else { return }
    let names = sessions.prefix(5).map(\.text).joined(separator: ", ")
    throw RequestError(
      .forbidden,
      "the token is for the session \(names)\(sessions.count > 5 ? ", …" : ""), not for \(session)",
      hint: "use a token for that session")
  }

  /// The wall clock, which tokens go by, in milliseconds since 1970.
  package static var nowMilliseconds: Int64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Int64(time.tv_sec) * 1_000 + Int64(time.tv_nsec) / 1_000_000
  }
}
