import WireProtocol

/// Who may come in: what a token or a ticket grants, and what nobody's does.
package struct AccessControl: Sendable {
  /// What a client has shown.
  package struct Credentials: Sendable {
    /// The header `Authorization`.
    package var authorization: String?
    /// `ticket` of the query, at the endpoints that take tickets.
    package var ticket: String?
    /// Where the connection comes from: an IP address.
    package var address: String?

    package init(authorization: String? = nil, ticket: String? = nil, address: String? = nil) {
      self.authorization = authorization
      self.ticket = ticket
      self.address = address
    }
  }

  package let tickets = TicketStore()
  /// nil where there are no keys, and so no tokens.
  private let verifier: TokenVerifier?
  private let isAnonymousAllowed: Bool
  /// Times each client's own limits.
  private let limitFactor: Int

  /// - Parameters:
  ///   - keys: what tokens are verified with; without any, everyone may do everything.
  ///   - isAnonymousAllowed: whether who shows no token may do everything although there are keys.
  ///   - limitFactor: how many times the usual limits everybody's are.
  package init(keys: [TokenKey], isAnonymousAllowed: Bool, limitFactor: Int = 1) async throws {
    self.limitFactor = limitFactor
    verifier = keys.isEmpty ? nil : try await TokenVerifier(keys)
    self.isAnonymousAllowed = isAnonymousAllowed || keys.isEmpty
  }

  /// What is asked of those who come, for the log.
  package var description: String {
    guard let verifier else { return "everyone who reaches it may listen and command" }
    let others = isAnonymousAllowed ? ", and lets in who has none" : ""
    return "asks for tokens signed with \(verifier.algorithmNames)\(others)"
  }

  /// What somebody may do.
  ///
  /// - Parameter takingTicket: false to look at a ticket without using it.
  /// - Throws: `unauthorized`.
  package func grant(
    for credentials: Credentials, takingTicket: Bool = true, now: Int64 = Grant.nowMilliseconds
  ) throws(RequestError) -> Grant {
    if let ticket = credentials.ticket { return try tickets.grant(of: ticket, taking: takingTicket) }
    var grant = try clientGrant(for: credentials, now: now)
    grant.limitFactor = min(grant.limitFactor * limitFactor, RouterLimits.limitFactorRange.upperBound)
    return grant
  }

  /// The client, where it may do something with a session; its ticket is looked at and not used.
  func client(of credentials: Credentials, allowed scope: Scope, _ session: SessionID) -> ClientID? {
    guard let grant = try? grant(for: credentials, takingTicket: false),
      (try? grant.require(scope, session)) != nil
    else { return nil }
    return grant.client
  }

  private func clientGrant(for credentials: Credentials, now: Int64) throws(RequestError) -> Grant {
    // Without keys a token cannot be judged, and there is nothing that it could add.
    guard let verifier else { return .everything(from: credentials.address) }
    guard let token = try Self.token(in: credentials.authorization, isNeeded: !isAnonymousAllowed) else {
      return .everything(from: credentials.address)
    }
    var grant = try verifier.grant(for: token, now: now)
    grant.client = ClientID(subject: grant.subject, address: credentials.address)
    return grant
  }

  /// The token of `Authorization: Bearer TOKEN` (RFC 6750, 2.1).
  private static func token(in header: String?, isNeeded: Bool) throws(RequestError) -> Substring? {
    let words = (header ?? "").split(separator: " ", maxSplits: 1)
    if words.count == 2, words[0].lowercased() == "bearer" { return words[1] }
    guard isNeeded else { return nil }
    throw RequestError(
      .unauthorized, header == nil ? "a token is needed" : "the header Authorization has no Bearer token",
      hint: "send Authorization: Bearer TOKEN; docs/permissions.md tells how to get one")
  }
}
