#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Who we are, from a `.creds` file: a token signed by an account (JWT), and the seed that proves that it is ours. A file
/// with the seed alone proves a key that the server's configuration names (`nkey`).
package struct NATSCredentials: Sendable {
  package let token: String?
  package let key: NKey

  /// Reads a file. Blocks.
  package init(path: String) throws(NATSError) {
    guard let data = try? Data(contentsOf: URL(filePath: path)) else {
      throw .invalid("the NATS credentials \(path) cannot be read")
    }
    do {
      try self.init(text: String(decoding: data.prefix(64 * 1024), as: UTF8.self))
    } catch { throw .invalid("\(path): \(error)") }
  }

  /// Reads a file's text.
  package init(text: String) throws(NATSError) {
    // Everything between the lines of dashes is explanation or one of the two values, and only these have no space.
    let values = text.split(whereSeparator: \.isNewline)
      .map(\.trimmed)
      .filter { !$0.isEmpty && !$0.contains("-----") && !$0.contains(" ") && !$0.hasPrefix("#") }
    guard let seed = values.first(where: { $0.hasPrefix("S") && !$0.contains(".") }) else {
      throw .invalid("it contains no NATS seed")
    }
    key = try NKey(seed: seed)
    token = values.first { $0.contains(".") }
    guard key.kind == .user else { throw .invalid("its NATS seed is not a user seed") }
  }
}
