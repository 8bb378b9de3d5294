import Crypto

/// What GitHub signs its deliveries with.
package struct WebhookSecret: Sendable {
  private static let prefix = "sha256="

  private let key: SymmetricKey

  /// - Parameter source: where the text is from, for the one who has to fix it. The text itself is never shown.
  package init(_ text: String, from source: String) throws(KeyFile.Problem) {
    let count = text.utf8.count
    guard count >= RouterLimits.minimumWebhookSecretByteCount else {
      throw KeyFile.Problem(
        "\(source) has \(count) bytes, and a webhook's secret needs "
          + "\(RouterLimits.minimumWebhookSecretByteCount): openssl rand -hex 32")
    }
    guard text.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
      throw KeyFile.Problem("\(source) is not one line of printable characters")
    }
    key = SymmetricKey(data: Array(text.utf8))
  }

  /// Reads a file that nobody else may read.
  package init(file: String) throws(KeyFile.Problem) {
    try self.init(KeyFile.read(file, isSecret: true), from: file)
  }

  /// One that is known nowhere else.
  package init() {
    key = SymmetricKey(size: .bits256)
  }

  /// As in `X-Hub-Signature-256`.
  package func signature(of body: [UInt8]) -> String {
    let code = HMAC<SHA256>.authenticationCode(for: body, using: key)
    return Self.prefix + code.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }

  /// Whether those bytes were signed so. Takes as long for a wrong signature as for the right one.
  package func isValid(_ signature: String, of body: [UInt8]) -> Bool {
    guard let code = Self.bytes(of: signature) else { return false }
    return HMAC<SHA256>.isValidAuthenticationCode(code, authenticating: body, using: key)
  }

  /// The 32 bytes of a signature; nil for what is none.
  private static func bytes(of signature: String) -> [UInt8]? {
    let digits = Array(signature.utf8.dropFirst(prefix.utf8.count))
    guard signature.hasPrefix(prefix), digits.count == 2 * SHA256.byteCount else { return nil }
    var bytes: [UInt8] = []
    for pair in stride(from: 0, to: digits.count, by: 2) {
      let characters = [Character(Unicode.Scalar(digits[pair])), Character(Unicode.Scalar(digits[pair + 1]))]
      guard let high = characters[0].hexDigitValue, let low = characters[1].hexDigitValue else { return nil }
      bytes.append(UInt8(high << 4 | low))
    }
    return bytes
  }
}
