import Foundation
import RouterCore
import Testing

/// Tokens whose signatures were made by Python's `hmac` and `cryptography`, as a table. `now` is 1,900,000,000.
@Suite struct `A token` {
  private static let header = #"{"alg":"HS256","typ":"JWT"}"#
  private static let claims = #"{"exp":2000000000,"session":"a*","scope":"control"}"#
  private static let signature = "0rCDrUVWSfnMW8IQrrnG7Ff3t_psEodZ3XP0zCdsRsY"
  private static let secret = "a-secret-of-32-bytes,-for-tests."
  /// Of RFC 8037, appendix A.
  private static let publicKey = """
    -----BEGIN PUBLIC KEY-----
    MCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=
    -----END PUBLIC KEY-----

    """

  private static func token(_ header: String, _ claims: String, _ signature: String) -> String {
    func encoded(_ text: String) -> String {
      Data(text.utf8).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_")
        .replacing("=", with: "")
    }
    return "\(encoded(header)).\(encoded(claims)).\(signature)"
  }

  private func verifier(secret: Bool = true, publicKey: Bool = true) async throws -> TokenVerifier {
    var keys: [TokenKey] = []
    if secret {
      let file = try TemporaryFile(Self.secret + "\n", mode: 0o600)
      keys.append(try .secret(file: file.path))
    }
    if publicKey {
      let file = try TemporaryFile(Self.publicKey, mode: 0o644)
      keys.append(try .publicKey(file: file.path))
    }
    return try await TokenVerifier(keys)
  }

  private func grant(
    _ token: String, now: Int64 = 1_900_000_000, by verifier: TokenVerifier? = nil
  ) async throws -> Grant {
    var verifier = verifier
    if verifier == nil { verifier = try await self.verifier() }
    return try #require(verifier).grant(for: token, now: now * 1_000)
  }

  @Test func `signed with the secret grants what it says`() async throws {
    let grant = try await grant(Self.token(Self.header, Self.claims, Self.signature))
    #expect(grant.sessions.map(\.text) == ["a*"])
    #expect(grant.scope == .control)
    #expect(grant.expiresAtMilliseconds == 2_000_000_000_000)
    #expect(!grant.isAnonymous && grant.subject == nil)
  }

  @Test(arguments: [
    (#"{"exp":2000000000,"session":"a*","scope":"control"}"#, signature, 1),
    (
      #"{"exp":2000000000,"session":"a*","scope":"control","limits":50}"#,
      "syoyZ1-sFFGzugkS2Z8x2nH-J5NcWSxWK4wnbuqwoXw", 50
    ),
    (
      #"{"exp":2000000000,"session":"a*","scope":"admin"}"#, "0QELDeiwOIILuDul-ryYYY-oxkRi3T4fI9PwNOnDD-0", 10
    ),
    (
      #"{"exp":2000000000,"session":"a*","scope":"admin","limits":5}"#,
      "DNYMkL1ENBDd8jdC6BuN6u6QsuGkoIWjCg-owtByTuw", 10
    ),
  ])
  func `says how many times the usual limits it has`(
    _ claims: String, _ signature: String, _ factor: Int
  ) async throws {
    #expect(try await grant(Self.token(Self.header, claims, signature)).limitFactor == factor)
  }

  @Test func `signed with the private key grants what it says`() async throws {
    let signature =
      "ih_jh2S7AV92-Or2kPoGVkJ2utVBMrVS79jf-0UF97mfdvK6fTxAcdQhvlQJL3lzbttIC1C7pHuttjYQ_GuLCA"
    let token = Self.token(#"{"alg":"EdDSA","typ":"JWT"}"#, Self.claims, signature)
    let keys = try await verifier(secret: false)
    #expect(try await grant(token, by: keys).scope == .control)
    let other = try await verifier(publicKey: false)
    await #expect(throws: RequestError.self) { try await grant(token, by: other) }
  }

  @Test(arguments: [
    (
      #"{"exp":2000000000.5,"session":["a","b*"],"scope":["listen","admin"],"sub":"Ann","nbf":1,"#
        + #""aud":["x","antiphon"]}"#,
      "3bE9IOBeNUcbjZksQ6jFGATCvm7OgLIwaoaP90UIeNE", ["a", "b*"], Scope.admin, 2_000_000_000_500
    ),
    (
      #"{"exp":2000000000,"session":"*","scope":"openid control listen"}"#,
      "wwHGURvC9RcSc-AnsV5ZsLj_g3Wc_uctXNCD9umh3pg", ["*"], .control, 2_000_000_000_000
    ),
  ])
  func `may say it in every way`(
    _ claims: String, _ signature: String, _ sessions: [String], _ scope: Scope, _ expiry: Int64
  ) async throws {
    let grant = try await grant(Self.token(Self.header, claims, signature))
    #expect(grant.sessions.map(\.text) == sessions)
    #expect(grant.scope == scope)
    #expect(grant.expiresAtMilliseconds == expiry)
  }

  @Test(arguments: [
    (#"{"session":"a","scope":"listen"}"#, "OjbvXN1F1noJoIyEudKyUA_5F6eOGQR8cVfV7qwPc9A", "no exp"),
    (
      #"{"exp":"2000000000","session":"a","scope":"listen"}"#,
      "TOhENJcsI489r1U7ORgQXNUn8UHMhdDmFkW9yjplRdA", "cannot be read"
    ),
    (#"{"exp":-1,"session":"a","scope":"listen"}"#, "KEFBxULpDkqNsGPqyXPXztq3PO5b1UaXCm3iIv7OB0o", "no time"),
    (
      #"{"exp":1e300,"session":"a","scope":"listen"}"#, "Wfy52KIHfN7O_h-EOGyAK-UQ7KELmuGjxwyRu9urYDM",
      "no time"
    ),
    (
      #"{"exp":1000,"session":"a","scope":"listen"}"#, "PsF4YdcCnNhEovQKkbauh2CdBsouQlnKlO1L7i6hOcQ",
      "expired 1899999000 s ago"
    ),
    (
      #"{"exp":2000000000,"nbf":1999999999,"session":"a","scope":"listen"}"#,
      "LaC6MichZ5lvy9_nqPkTTn9ORGGLq4Os_Ho_wECDOs0", "not valid yet"
    ),
    (
      #"{"aud":"x","exp":2000000000,"session":"a","scope":"listen"}"#,
      "Z0H6ahzKw-aATx61Sl7UeW-kDlmofW6xwbmew4vt6vU", "meant for others"
    ),
    (
      #"{"exp":2000000000,"session":"a"}"#, "OhKXvDYN1IEdt680tu5yIF7TZFBilXHn8-DJJq4M3g4", "no scope"
    ),
    (
      #"{"exp":2000000000,"session":"a","scope":"Control"}"#,
      "aA3lcv0vKzRK94SKy_kl1n0nvP_06qQ11lyU4w_yl-s", "no scope"
    ),
    (
      #"{"exp":2000000000,"session":"a","scope":7}"#, "e1LE71if4a0VZ4u2Dpmn5g2SdbAnfAkxIyHA95BlohE",
      "cannot be read"
    ),
    (#"{"exp":2000000000,"scope":"listen"}"#, "YnxIee-J74urF6uDyQZgKZOrbhliqcCvWPfrNAEBrhA", "names 0"),
    (
      #"{"exp":2000000000,"session":[],"scope":"listen"}"#, "wkfORa3p9XUjn6D42WNe2HUIqrUEitOgtY5HOVrRyws",
      "names 0"
    ),
    (
      #"{"exp":2000000000,"session":["a","a/b"],"scope":"listen"}"#,
      "dnIXhErTVWjV2HR9nS_dIM7g_x_lR7gsKoHA7i2QeiA", "no pattern"
    ),
    (
      #"{"exp":2000000000,"session":"","scope":"listen"}"#, "zgRBd7HDFYEwwVodTba-uHxkCrN1RsRJ1PsfRoluplg",
      "no pattern"
    ),
    (
      #"{"exp":2000000000,"session":"a*","scope":"control","limits":0}"#,
      "adjKAcEI08_wD2pUWEtyKDMjzf41UcTjpab8PeD-pKs", "no whole number from 1 to 1000"
    ),
    (
      #"{"exp":2000000000,"session":"a*","scope":"control","limits":1001}"#,
      "RqO5nA5cWBQuvmEzLYFFuiwym9yDMvn0tpXpxQwp9S8", "no whole number"
    ),
    (
      #"{"exp":2000000000,"session":"a*","scope":"control","limits":1.5}"#,
      "7Fwhs9ZixC15UqAe7qY3cwyU7Um81OQEQ8GaCBDR_FI", "no whole number"
    ),
    ("[1]", "W376ReKwm4UETujP1fEyBAitkfEt_4dqMjRxzz6bd1k", "cannot be read"),
  ])
  func `with claims that do not do is refused`(
    _ claims: String, _ signature: String, _ words: String
  ) async throws {
    let requestError = await #expect(throws: RequestError.self) {
      try await grant(Self.token(Self.header, claims, signature))
    }
    #expect(requestError?.report.code == .unauthorized && requestError?.status == 401)
    #expect(requestError?.report.message.contains(words) == true, "\(requestError?.report.message ?? "")")
    #expect(requestError?.report.hint != nil)
  }

  @Test(arguments: [
    // None, and what an attacker would try instead.
    (#"{"alg":"none"}"#, "", "\"none\""), (#"{"alg":"none"}"#, signature, "\"none\""),
    (#"{"typ":"JWT"}"#, "JoEag41WvGRyh1MIy3h41TLGOWVUiYlYlF4yfoAhP4s", "signed with \"\""),
    // The right secret and an algorithm that was not asked for.
    (
      #"{"alg":"HS512"}"#,
      "I0HYVEhvod9M_hAaZ_M7yFh6Rid21R9Gbps7H7cN0Ih1Gpcm6rRk9LfA88PcAKamzxmsUddYU6zzfjyyGGbNXw", "HS512"
    ),
    // Another secret, none, half of it, the public key as a secret (with its last line break and without).
    (header, "jfKNnOYKbR9L-pPRQ0H5JhKmjEW1rGl--BAWB4bnV54", "signature"), (header, "", "signature"),
    (header, "0rCDrUVWSfnMW8IQrrnG7A", "signature"), (header, "!!!", "signature"),
    (header, "hMvlgEQYfUHawqmhr98nTlAQ3C3HtYRDNVevXJrS5aM", "signature"),
    (header, "CFj2zm2uviysVuxLhuWIMZunntDA6qIn3_1dBOzXqDU", "signature"),
    // A secret's signature under the other algorithm.
    (#"{"alg":"EdDSA","typ":"JWT"}"#, "JZVLnx228X6F7KNCpdwEQILs-9NILmOhZXGlpLdNqH0", "signature"),
    (
      #"{"alg":"HS256","crit":["b64"],"b64":false}"#, "gSamSARkHZmME2uMfOn4zNJ_4yTf8SZSxoOCLmOSf9g",
      "critical"
    ),
  ])
  func `with another signature is refused`(
    _ header: String, _ signature: String, _ words: String
  ) async throws {
    let requestError = await #expect(throws: RequestError.self) {
      try await grant(Self.token(header, Self.claims, signature))
    }
    #expect(requestError?.report.code == .unauthorized)
    #expect(requestError?.report.message.contains(words) == true, "\(requestError?.report.message ?? "")")
  }

  @Test func `signed with the public key as a secret is refused where there is no secret`() async throws {
    let keys = try await verifier(secret: false)
    for signature in [
      "hMvlgEQYfUHawqmhr98nTlAQ3C3HtYRDNVevXJrS5aM", "CFj2zm2uviysVuxLhuWIMZunntDA6qIn3_1dBOzXqDU",
      Self.signature,
    ] {
      let requestError = await #expect(throws: RequestError.self) {
        try await grant(Self.token(Self.header, Self.claims, signature), by: keys)
      }
      #expect(requestError?.report.message.contains("takes EdDSA") == true)
    }
  }

  @Test func `that is none is refused without a crash`() async throws {
    let valid = Self.token(Self.header, Self.claims, Self.signature)
    let changed = Self.token(Self.header, Self.claims.replacing("control", with: "admin"), Self.signature)
    let keys = try await verifier()
    for token in [
      "", ".", "..", "...", "a", "a.b", "a.b.c", "a.b.c.d", valid + ".", valid + "A", "A" + valid, changed,
      "é",
      String(valid.dropLast(3)), String(repeating: "a", count: 4_097), String(repeating: ".", count: 4_000),
      Self.token(String(repeating: "[", count: 2_000), Self.claims, Self.signature),
    ] {
      let requestError = await #expect(throws: RequestError.self) { try await grant(token, by: keys) }
      #expect(requestError?.report.code == .unauthorized)
      #expect(token.isEmpty || token.count < 4 || requestError?.report.description.contains(token) == false)
    }
  }

  @Test func `is over at its last second`() async throws {
    let valid = Self.token(Self.header, Self.claims, Self.signature)
    #expect(try await grant(valid, now: 1_999_999_999).scope == .control)
    await #expect(throws: RequestError.self) { try await grant(valid, now: 2_000_000_000) }
  }
}

/// A file that is removed with this.
final class TemporaryFile: Sendable {
  let path = FileManager.default.temporaryDirectory.appending(path: "antiphon-\(UUID().uuidString)").path

  init(_ text: String, mode: Int) throws {
    try Data(text.utf8).write(to: URL(filePath: path))
    try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }
}
