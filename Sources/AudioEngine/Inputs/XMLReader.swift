import WireProtocol

/// Reads XML 1.0 piece by piece: elements, their attributes and characters. Comments and processing instructions are left
/// out; a document type and entities other than the five are refused.
struct XMLReader {
  enum Piece {
    case start(name: String, attributes: [String: String], isEmpty: Bool)
    case end(name: String)
    case characters([UInt8])
  }

  private static let maximumAttributeCount = 64
  private static let entities: [String: String] = [
    "lt": "<", "gt": ">", "amp": "&", "quot": "\"", "apos": "'",
  ]
  /// Of `&#x10FFFF;`, without the ends.
  private static let maximumReferenceByteCount = 8

  private var rest: ArraySlice<UInt8>

  init(_ bytes: [UInt8]) { rest = bytes[...] }

  static func isSpace(_ byte: UInt8) -> Bool {
    byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D
  }

  /// Of letters beyond ASCII all bytes are taken.
  static func isNameByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), 0x80...:
      true
    default: "_:.-".utf8.contains(byte)
    }
  }

  static func localName(_ name: ArraySlice<UInt8>) -> String {
    String(decoding: name.split(separator: UInt8(ascii: ":")).last ?? [], as: UTF8.self)
  }

  static func broken(_ what: String) -> ErrorReport {
    ErrorReport(
      .sourceCorrupt, "the XML cannot be read: \(what)", hint: SegmentListing.hint, stage: .probe)
  }

  /// - Throws: `source_corrupt`, also at the end of the text: who reads stops where the root ends.
  mutating func next() throws(ErrorReport) -> Piece {
    while true {
      guard let first = rest.first else { throw Self.broken("it ends too soon") }
      guard first == UInt8(ascii: "<") else {
        let text = rest.prefix { $0 != UInt8(ascii: "<") }
        rest = rest[text.endIndex...]
        return .characters(try Self.decoded(text))
      }
      if take("<!--") {
        _ = try takeAll(before: "-->")
      } else if take("<?") {
        _ = try takeAll(before: "?>")
      } else if take("<![CDATA[") {
        return .characters(Array(try takeAll(before: "]]>")))
      } else if take("<!") {
        throw Self.broken("it declares a document type, which is not read")
      } else if take("</") {
        let name = Self.localName(try takeName())
        skipSpace()
        guard take(">") else { throw Self.broken("the end of \(name.quoted) is none") }
        return .end(name: name)
      } else {
        return try takeStart()
      }
    }
  }

  private mutating func takeStart() throws(ErrorReport) -> Piece {
    rest.removeFirst()
    let name = Self.localName(try takeName())
    var attributes: [String: String] = [:]
    while true {
      skipSpace()
      if take("/>") { return .start(name: name, attributes: attributes, isEmpty: true) }
      if take(">") { return .start(name: name, attributes: attributes, isEmpty: false) }
      guard attributes.count < Self.maximumAttributeCount else {
        throw Self.broken("\(name.quoted) has over \(Self.maximumAttributeCount) attributes")
      }
      let attribute = String(decoding: try takeName(), as: UTF8.self)
      skipSpace()
      let hasValue = take("=")
      skipSpace()
      guard hasValue, let quote = rest.first, "\"'".utf8.contains(quote) else {
        throw Self.broken("the attribute \(attribute.quoted) has no value")
      }
      rest.removeFirst()
      let value = try takeAll(before: quote == UInt8(ascii: "'") ? "'" : "\"")
      attributes[attribute] = String(decoding: try Self.decoded(value), as: UTF8.self)
    }
  }

  private mutating func takeName() throws(ErrorReport) -> ArraySlice<UInt8> {
    let name = rest.prefix(while: Self.isNameByte)
    guard !name.isEmpty else { throw Self.broken("a name is missing") }
    rest = rest[name.endIndex...]
    return name
  }

  private mutating func skipSpace() { rest = rest.drop(while: Self.isSpace) }

  private mutating func take(_ text: StaticString) -> Bool {
    let isThere = text.withUTF8Buffer { rest.starts(with: $0) }
    if isThere { rest = rest.dropFirst(text.utf8CodeUnitCount) }
    return isThere
  }

  /// What stands before a mark, which is taken too.
  private mutating func takeAll(before mark: StaticString) throws(ErrorReport) -> ArraySlice<UInt8> {
    let begin = rest
    while !rest.isEmpty {
      let end = rest.startIndex
      if take(mark) { return begin[..<end] }
      rest.removeFirst()
    }
    throw Self.broken("a \(mark) is missing")
  }

  /// Characters with what stands for characters: `&amp;`, `&#38;`.
  private static func decoded(_ text: ArraySlice<UInt8>) throws(ErrorReport) -> [UInt8] {
    var decoded: [UInt8] = []
    var rest = text
    while let mark = rest.firstIndex(of: UInt8(ascii: "&")) {
      decoded += rest[..<mark]
      let name = rest[(mark + 1)...].prefix(maximumReferenceByteCount).prefix { $0 != UInt8(ascii: ";") }
      let reference = String(decoding: name, as: UTF8.self)
      guard rest[name.endIndex...].first == UInt8(ascii: ";"), let character = character(reference) else {
        throw broken("it has the entity \(reference.quoted), which is not read")
      }
      decoded += character.utf8
      rest = rest[(name.endIndex + 1)...]
    }
    return decoded + rest
  }

  private static func character(_ reference: String) -> String? {
    guard reference.hasPrefix("#") else { return entities[reference] }
    let digits = reference.dropFirst()
    let value = digits.hasPrefix("x") ? UInt32(digits.dropFirst(), radix: 16) : UInt32(digits)
    return value.flatMap(Unicode.Scalar.init).map { String($0) }
  }
}
