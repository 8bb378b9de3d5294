import HTTPTypes

/// A client's own name for one intent: a command that is repeated with it is carried out once.
package struct IdempotencyKey: Hashable, Sendable {
  package static let lengthRange = 1...64
  static let header = HTTPField.Name("Idempotency-Key")!

  package let text: String

  package init(_ text: String) throws(RequestError) {
    let isPrintable = text.utf8.allSatisfy { (UInt8(ascii: "!")...UInt8(ascii: "~")).contains($0) }
    guard isPrintable, Self.lengthRange.contains(text.utf8.count) else {
      throw RequestError(
        .invalidCommand,
        "the idempotency key is not \(Self.lengthRange.lowerBound) to \(Self.lengthRange.upperBound) "
          + "printable ASCII characters without a space",
        hint: "use a UUID, a new one for each intent")
    }
    self.text = text
  }

  /// Reads the header of a request.
  init?(_ headers: HTTPFields) throws(RequestError) {
    guard let text = headers[Self.header] else { return nil }
    try self.init(text)
  }
}

extension IdempotencyKey: CustomStringConvertible {
  package var description: String { text.debugDescription }
}
