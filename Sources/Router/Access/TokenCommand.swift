import ArgumentParser
import JWTKit

/// `Router token …`: makes tokens, and the keys they are made with (`docs/permissions.md`).
package struct TokenCommand: AsyncParsableCommand {
  package static let configuration = CommandConfiguration(
    commandName: "token", abstract: "Make tokens, and the keys they are made with.",
    subcommands: [Create.self, Secret.self, Keys.self])

  package init() {}

  struct Create: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Print a token.", discussion: "Nothing else is written to standard output.")

    @Option(
      help: ArgumentHelp(
        "A session that it is for; * stands for any characters. Repeatable.", valueName: "pattern"),
      transform: Self.pattern)
    var session: [SessionPattern]

    @Option(help: "listen, control (and listen), or admin (and both). Repeatable.")
    var scope: [Scope]

    @Option(
      help: ArgumentHelp("How long it can be used: 90s, 15m, 12h or 30d.", valueName: "duration"),
      transform: Self.seconds)
    var expires: Int64

    @Option(help: "Subject (sub): the client that the token identifies; limits are counted per subject.")
    var subject: String?

    @Option(
      help: ArgumentHelp(
        "How many times the usual limits of a client its holder has, 1 to 1000.", valueName: "number"))
    var limits: Int?

    @Option(help: ArgumentHelp("Sign with HS256 and the secret in this file.", valueName: "file"))
    var tokenSecretFile: String?

    @Option(
      help: ArgumentHelp("Sign with EdDSA and the Ed25519 private key in this file.", valueName: "file"))
    var tokenPrivateKeyFile: String?

    func validate() throws {
      guard (tokenSecretFile == nil) != (tokenPrivateKeyFile == nil) else {
        throw ValidationError("give one of --token-secret-file and --token-private-key-file")
      }
      guard session.count <= RouterLimits.maximumPatterns else {
        throw ValidationError("a token has at most \(RouterLimits.maximumPatterns) sessions")
      }
      if let limits, !RouterLimits.limitFactorRange.contains(limits) {
        throw ValidationError("--limits takes 1 to 1000, not \(limits)")
      }
    }

    func run() async throws {
      let key: TokenKey
      if let file = tokenSecretFile {
        key = try .secret(file: file)
      } else {
        key = try .privateKey(file: tokenPrivateKeyFile ?? "")
      }
      let now = Grant.nowMilliseconds / 1_000
      let claims = TokenClaims(
        subject: subject, expiresAt: Double(now + expires), issuedAt: Double(now),
        sessions: .init(session.map(\.text)), scopes: .init(scope.map(\.rawValue)),
        limits: limits.map(Double.init))
      let token = try await key.collection().sign(claims)
      guard token.utf8.count <= RouterLimits.maximumTokenByteCount else {
        throw ValidationError(
          "the token has \(token.utf8.count) bytes, and the Router takes \(RouterLimits.maximumTokenByteCount)"
        )
      }
      print(token)
    }

    private static func pattern(_ text: String) throws -> SessionPattern {
      guard let pattern = SessionPattern(text) else {
        throw ValidationError(
          "\(text.debugDescription) is no session pattern: 1 to \(RouterLimits.maximumPatternByteCount) "
            + "characters of A–Z a–z 0–9 . _ : - *")
      }
      return pattern
    }

    /// Ten years are the most: a key is to be changed before.
    private static func seconds(_ text: String) throws -> Int64 {
      let units: [Character: Int64] = ["s": 1, "m": 60, "h": 3_600, "d": 86_400]
      guard let unit = text.last.flatMap({ units[$0] }), let count = Int64(text.dropLast()),
        (1...3_650 * 86_400 / unit).contains(count)
      else { throw ValidationError("\(text.debugDescription) is no duration such as 15m, 12h or 30d") }
      return count * unit
    }
  }

  struct Secret: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Write a new HS256 secret into a new file that only you may read.")

    @Argument(help: "The file, for --token-secret-file.") var file: String

    func run() throws { try KeyFile.create(file, KeyFile.randomHex(byteCount: 32), mode: 0o600) }
  }

  struct Keys: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Write a new Ed25519 key pair into two new files, in PEM.")

    @Argument(help: "The private key, which only you may read, for `token create`.") var privateKeyFile:
      String
    @Argument(help: "The public key, for the Router's --token-public-key-file.") var publicKeyFile: String

    func run() throws {
      let key = try EdDSA.PrivateKey()
      try KeyFile.create(privateKeyFile, key.pemRepresentation, mode: 0o600)
      try KeyFile.create(publicKeyFile, key.publicKey.pemRepresentation, mode: 0o644)
    }
  }
}

extension Scope: ExpressibleByArgument {}
