import JWTKit

/// What tokens are signed or verified with, read from a file.
package enum TokenKey: Sendable {
  /// HS256: signs and verifies.
  case secret(String)
  /// EdDSA with Ed25519: verifies.
  case publicKey(EdDSA.PublicKey)
  /// EdDSA with Ed25519: signs.
  case privateKey(EdDSA.PrivateKey)

  /// Reads an HS256 secret: one line of text.
  package static func secret(file: String) throws(KeyFile.Problem) -> TokenKey {
    let text = try KeyFile.read(file, isSecret: true)
    guard !text.hasPrefix("-----BEGIN") else {
      // A public key as a secret would let everyone who has it make tokens.
      throw KeyFile.Problem("\(file) is a key in PEM, not a secret: use --token-public-key-file")
    }
    guard text.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
      throw KeyFile.Problem(
        "\(file) is not one line of printable characters without spaces; Router token secret FILE makes one")
    }
    let least = RouterLimits.minimumSecretByteCount
    guard text.utf8.count >= least else {
      throw KeyFile.Problem(
        "the secret in \(file) has \(text.utf8.count) bytes, \(least) are the least; Router token secret FILE "
          + "makes one")
    }
    return .secret(text)
  }

  /// Reads an Ed25519 public key in PEM (`openssl pkey -pubout`).
  package static func publicKey(file: String) throws(KeyFile.Problem) -> TokenKey {
    let text = try KeyFile.read(file, isSecret: false)
    guard !text.contains("PRIVATE KEY") else {
      throw KeyFile.Problem(
        "\(file) is a private key, and the Router needs the public one: "
          + "openssl pkey -in \(file) -pubout -out \(file).pub")
    }
    guard let key = try? EdDSA.PublicKey(pem: text) else {
      throw KeyFile.Problem("\(file) is no Ed25519 public key in PEM; Router token keys makes a pair")
    }
    return .publicKey(key)
  }

  /// Reads an Ed25519 private key in PEM (PKCS #8, `openssl genpkey -algorithm ed25519`).
  package static func privateKey(file: String) throws(KeyFile.Problem) -> TokenKey {
    let text = try KeyFile.read(file, isSecret: true)
    guard let key = try? EdDSA.PrivateKey(pem: text) else {
      throw KeyFile.Problem("\(file) is no Ed25519 private key in PEM; Router token keys makes a pair")
    }
    return .privateKey(key)
  }

  /// The key alone, as jwt-kit keeps keys.
  func collection() async -> JWTKeyCollection {
    let keys = JWTKeyCollection()
    switch self {
    case .secret(let text): await keys.add(hmac: HMACKey(from: text), digestAlgorithm: .sha256)
    case .publicKey(let key): await keys.add(eddsa: key)
    case .privateKey(let key): await keys.add(eddsa: key)
    }
    return keys
  }
}
