import HTTPTypes
import NIOHTTP1

/// What requests carry that another Router forwards: a secret that Routers alone know, and the client's address. Nobody
/// else's word is taken for either.
struct Relay: Sendable {
  static let secretField = HTTPField.Name("X-Antiphon-Relay")!
  static let clientField = HTTPField.Name("X-Antiphon-Client")!

  private static let secretByteCount = 32

  /// Of this start of this Router.
  let secret = KeyFile.randomHex(byteCount: secretByteCount)

  /// The address of the client for which another Router asks; nil where it is none of them.
  func client(of headers: HTTPFields) -> String? {
    isOurs(headers[Self.secretField]) ? headers[Self.clientField] : nil
  }

  func client(of headers: HTTPHeaders) -> String? {
    isOurs(headers.first(name: Self.secretField.rawName))
      ? headers.first(name: Self.clientField.rawName) : nil
  }

  /// Takes as long whatever is shown.
  private func isOurs(_ shown: String?) -> Bool {
    guard let shown, shown.utf8.count == secret.utf8.count else { return false }
    return zip(shown.utf8, secret.utf8).reduce(UInt8(0)) { $0 | ($1.0 ^ $1.1) } == 0
  }
}
