/// Decoding errors in words that name the field and what to do.
extension ErrorReport {
  static func field(_ name: String, _ what: String) -> ErrorReport {
    ErrorReport(
      .invalidCommand, "the field \(name) \(what)", hint: "docs/wire-protocol.md lists the fields",
      stage: .command)
  }

  /// What was wrong with a command's JSON.
  public init(decoding error: any Error) {
    switch error {
    case let report as ErrorReport: self = report
    case DecodingError.keyNotFound(let key, _): self = .field(key.stringValue, "is missing")
    case DecodingError.typeMismatch(_, let context) where context.codingPath.isEmpty,
      DecodingError.valueNotFound(_, let context) where context.codingPath.isEmpty:
      self = .notAnObject
    case DecodingError.typeMismatch(let type, let context):
      self = .field(context.codingPath.name, "is not \(Self.word(for: type))")
    case DecodingError.valueNotFound(_, let context): self = .field(context.codingPath.name, "is null")
    case DecodingError.dataCorrupted(let context) where !context.codingPath.isEmpty:
      self = .field(context.codingPath.name, "cannot be read")
    default: self = .notAnObject
    }
  }

  private static let notAnObject = ErrorReport(
    .invalidJSON, "the command is not a JSON object",
    hint: "send one object in braces, its names and text in double quotes", stage: .command)

  private static func word(for type: any Any.Type) -> String {
    switch type {
    case is String.Type: "a string"
    case is Bool.Type: "true or false"
    case is any Numeric.Type: "a number"
    default: "of the right kind"
    }
  }
}

extension [any CodingKey] {
  fileprivate var name: String { map(\.stringValue).joined(separator: ".") }
}
