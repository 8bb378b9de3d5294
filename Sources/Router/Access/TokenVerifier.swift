import JWTKit
import WireProtocol

/// Reads tokens: JSON Web Tokens (RFC 7519) signed by the Router's key, HS256 or EdDSA with Ed25519. Which
/// algorithm is used is decided by the keys there are, never by the token alone: a public key is no HMAC
/// secret here, and `none` is no algorithm.
package struct TokenVerifier: Sendable {
  /// By the `alg` of a token.
  private let algorithms: [String: any JWTAlgorithm]
  private let parser = DefaultJWTParser(jsonDecoder: CheckedJSONDecoder())
  private static let audience = "antiphon"

  package init(_ keys: [TokenKey]) async throws {
    var algorithms: [String: any JWTAlgorithm] = [:]
    for key in keys {
      let algorithm = try await key.collection().getKey()
      algorithms[algorithm.name] = algorithm
    }
    self.algorithms = algorithms
  }

  /// The names of the algorithms, for people.
  package var algorithmNames: String { algorithms.keys.sorted().joined(separator: " or ") }

  /// What a token grants.
  ///
  /// - Parameter now: milliseconds since 1970.
  /// - Throws: `unauthorized`, saying what is wrong with the token and never repeating it.
  package func grant(
    for token: some StringProtocol, now: Int64 = Grant.nowMilliseconds
  ) throws(RequestError) -> Grant {
    let bytes = Array(token.utf8)
    guard bytes.count <= RouterLimits.maximumTokenByteCount else {
      throw Self.requestError(
        "has \(bytes.count) bytes, at most \(RouterLimits.maximumTokenByteCount) are allowed")
    }
    try checkSignature(bytes)
    let claims: TokenClaims
    do {
      claims = try parser.parse(bytes, as: TokenClaims.self).payload
    } catch {
      throw Self.requestError(
        "has claims that cannot be read",
        hint: "exp and limits are numbers; session and scope are text or lists of text")
    }
    return try Self.grant(claims, now: now)
  }

  /// Before any claim is looked at.
  private func checkSignature(_ token: [UInt8]) throws(RequestError) {
    guard let parsed = try? parser.parse(token, as: AnyClaims.self),
      let end = token.lastIndex(of: UInt8(ascii: "."))
    else { throw Self.requestError("is no JSON Web Token", hint: "send it whole, as it was given") }
    let name = parsed.header.alg ?? ""
    guard let algorithm = algorithms[name] else {
      throw Self.requestError(
        "is signed with \(name.quoted), this Router takes \(algorithmNames)")
    }
    // An extension that must be understood (RFC 7515, 4.1.11), and we understand none.
    guard parsed.header.fields["crit"] == nil else { throw Self.requestError("has critical extensions") }
    guard (try? algorithm.verify(parsed.signature, signs: token[..<end])) == true else {
      throw Self.requestError(
        "has a signature that is not by this Router's key", hint: "use a token that was made with that key")
    }
  }

  private static func grant(_ claims: TokenClaims, now: Int64) throws(RequestError) -> Grant {
    let expiry = try expiry(claims, now: now)
    if let begin = claims.notBefore, begin * 1_000 > Double(now) {
      throw requestError("is not valid yet", hint: "wait until its nbf, or set the clock")
    }
    if let audience = claims.audience, !audience.list.contains(Self.audience) {
      throw requestError("is meant for others: its aud is not \(Self.audience)")
    }
    let words = claims.scopes.map {
      $0.isOneText ? $0.list[0].split(separator: " ").map(String.init) : $0.list
    }
    guard let scope = words?.compactMap(Scope.init).max() else {
      throw requestError("has no scope of listen, control or admin")
    }
    let names = claims.sessions?.list ?? []
    guard (1...RouterLimits.maximumPatterns).contains(names.count) else {
      throw requestError("names \(names.count) sessions, not 1 to \(RouterLimits.maximumPatterns)")
    }
    let patterns = names.compactMap(SessionPattern.init)
    guard patterns.count == names.count else {
      throw requestError(
        "names a session that is no pattern",
        hint: "patterns have 1 to \(RouterLimits.maximumPatternByteCount) characters of A–Z a–z 0–9 . _ : - *"
      )
    }
    var grant = Grant(
      subject: claims.subject.map { String($0.prefix(RouterLimits.maximumSubjectCount)) },
      sessions: patterns, scope: scope, expiresAtMilliseconds: expiry)
    grant.limitFactor = try limitFactor(claims, scope)
    return grant
  }

  private static func limitFactor(_ claims: TokenClaims, _ scope: Scope) throws(RequestError) -> Int {
    let usual = scope == .admin ? RouterLimits.adminLimitFactor : 1
    guard let claimed = claims.limits else { return usual }
    let range = RouterLimits.limitFactorRange
    guard let factor = Int(exactly: claimed), range.contains(factor) else {
      throw requestError(
        "has limits that are no whole number from \(range.lowerBound) to \(range.upperBound)")
    }
    return max(usual, factor)
  }

  private static func expiry(_ claims: TokenClaims, now: Int64) throws(RequestError) -> Int64 {
    guard let seconds = claims.expiresAt else {
      throw requestError("never expires, and has to: it has no exp")
    }
    // Past the year 9999, which is as good as never.
    guard (0...253_402_300_799).contains(seconds) else { throw requestError("has an exp that is no time") }
    let milliseconds = Int64(seconds * 1_000)
    guard milliseconds > now else {
      throw requestError("expired \((now - milliseconds) / 1_000) s ago", hint: "use a new one")
    }
    return milliseconds
  }

  private static func requestError(_ what: String, hint: String? = nil) -> RequestError {
    RequestError(.unauthorized, "the token \(what)", hint: hint ?? "get another one, see docs/permissions.md")
  }

  /// Any object: what a token says before its signature was checked.
  private struct AnyClaims: JWTPayload {
    func verify(using algorithm: some JWTAlgorithm) async throws {}
  }
}
