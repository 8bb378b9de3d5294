import JWTKit

/// What a token says (RFC 7519, and `scope` as RFC 8693 has it). Other claims are of no interest here.
struct TokenClaims: JWTPayload {
  var subject: String?
  /// Seconds since 1970, as all times of a token. Its absence is refused, not undecodable.
  var expiresAt: Double?
  var notBefore: Double?
  var issuedAt: Double?
  /// Whom it is meant for: us, where that is said (RFC 7519, 4.1.3).
  var audience: Words?
  var sessions: Words?
  var scopes: Words?
  /// How many times the usual limits the client's are.
  var limits: Double?

  enum CodingKeys: String, CodingKey {
    case subject = "sub"
    case expiresAt = "exp"
    case notBefore = "nbf"
    case issuedAt = "iat"
    case audience = "aud"
    case sessions = "session"
    case scopes = "scope"
    case limits
  }

  /// One text or a list of them.
  struct Words: Codable, Sendable {
    var list: [String]
    /// The one text was no list: `scope` puts spaces between its words.
    var isOneText = false

    init(_ list: [String]) {
      self.list = list
    }

    init(from decoder: any Decoder) throws {
      let container = try decoder.singleValueContainer()
      if let text = try? container.decode(String.self) {
        list = [text]
        isOneText = true
      } else {
        list = try container.decode([String].self)
      }
    }

    func encode(to encoder: any Encoder) throws {
      var container = encoder.singleValueContainer()
      try container.encode(list)
    }
  }

  /// Nothing: `TokenVerifier` checks the claims, with words that say what is wrong.
  func verify(using algorithm: some JWTAlgorithm) async throws {}
}
