/// A `Content-Range` (RFC 9110, section 14.4).
package struct ContentRange: Sendable, Equatable {
  /// The first byte's offset; nil where the server has no such part (`bytes */1234`).
  package var first: Int64?
  /// The whole's length; nil where the server does not know it.
  package var total: Int64?

  /// - Returns: nil for what is no range of bytes, or contradicts itself.
  package init?(_ text: String) {
    let words = text.split(separator: " ")
    guard words.count == 2, words[0].lowercased() == "bytes" else { return nil }
    let parts = words[1].split(separator: "/", omittingEmptySubsequences: false)
    guard parts.count == 2 else { return nil }
    if parts[1] != "*" {
      guard let total = Self.number(parts[1]) else { return nil }
      self.total = total
    }
    guard parts[0] != "*" else { return }
    let ends = parts[0].split(separator: "-", omittingEmptySubsequences: false)
    guard ends.count == 2, let first = Self.number(ends[0]), let last = Self.number(ends[1]), first <= last,
      last < total ?? .max
    else { return nil }
    self.first = first
  }

  private static func number(_ text: Substring) -> Int64? {
    text.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) } ? Int64(text) : nil
  }
}

/// What a server says that a source is. By this a transfer taken up again is known to be of the same bytes.
package struct WebEntity: Sendable, Equatable {
  package var byteCount: Int64?
  /// A strong one: a weak one does not promise equal bytes (RFC 9110, section 8.8.1).
  package var etag: String?
  package var lastModified: String?

  package init(byteCount: Int64?, etag: String? = nil, lastModified: String? = nil) {
    self.byteCount = byteCount
    self.etag = etag.flatMap { $0.hasPrefix("W/") ? nil : $0 }
    self.lastModified = lastModified
  }

  /// For `If-Range`: the server sends the whole thing where it has become another.
  package var validator: String? { etag ?? lastModified }

  /// Whether a later answer says something else of the source than the first did.
  package func isContradicted(by later: WebEntity) -> Bool {
    func differ<Value: Equatable>(_ one: Value?, _ other: Value?) -> Bool {
      one != nil && other != nil && one != other
    }
    return differ(byteCount, later.byteCount) || differ(etag, later.etag)
      || differ(lastModified, later.lastModified)
  }

  /// Whether a whole body may be taken for the same bytes: something says so, and nothing the contrary.
  package func isConfirmed(by later: WebEntity) -> Bool {
    let isKnown =
      byteCount != nil && later.byteCount != nil || etag != nil && later.etag != nil
      || lastModified != nil && later.lastModified != nil
    return isKnown && !isContradicted(by: later)
  }
}
