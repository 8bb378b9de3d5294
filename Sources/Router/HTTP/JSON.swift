import WireProtocol

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// JSON as every endpoint writes it. Control plane only.
enum JSON {
  static func encode(_ value: some Encodable) -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    // Encoding values made of strings and finite numbers cannot fail.
    return (try? encoder.encode(value)).map(Array.init) ?? []
  }

  static func decode<Value: Decodable>(_ type: Value.Type, from json: [UInt8]) throws -> Value {
    try JSONDecoder().decode(type, from: Data(json))
  }

  /// What somebody else has written: checked before anything of it is compared.
  static func decode<Value: Decodable>(_ type: Value.Type, fromOutside json: [UInt8]) throws -> Value {
    try CombiningMarks.check(json: json)
    return try decode(type, from: json)
  }

  /// As SQLite keeps it: with the version of its shape.
  static func text(_ value: some Encodable) -> String {
    String(decoding: versionedBytes(value), as: UTF8.self)
  }

  static func versionedBytes(_ value: some Encodable) -> [UInt8] { encode(VersionedEncoding(value: value)) }

  /// - Returns: nil for what is not there or cannot be read.
  static func value<Value: Decodable>(_ text: String?) -> Value? {
    text.flatMap { try? decode(Versioned<Value>.self, from: Array($0.utf8)).value }
  }

  /// Many at once, which takes a fifth of the time.
  ///
  /// - Returns: one for each; nil for those that cannot be read.
  static func values<Value: Decodable>(_ texts: [String]) -> [Value?] {
    let list = Array("[\(texts.joined(separator: ","))]".utf8)
    if let values = try? decode([Versioned<Value>].self, from: list), values.count == texts.count {
      return values.map(\.value)
    }
    return texts.map { value($0) }
  }
}

/// The version of the JSON that is kept. It is raised when a reader of before would misread what is written now;
/// `Versioned` then decodes each version of before by what it was. New fields are optional or have a default, and
/// need none.
enum SchemaVersion {
  static let current = 1

  enum Key: String, CodingKey {
    case version = "v"
  }
}

/// Writes a value with its version beside its fields.
private struct VersionedEncoding<Value: Encodable>: Encodable {
  var value: Value

  func encode(to encoder: any Encoder) throws {
    try value.encode(to: encoder)
    var fields = encoder.container(keyedBy: SchemaVersion.Key.self)
    try fields.encode(SchemaVersion.current, forKey: .version)
  }
}

/// Reads a value of any version up to this one's. What was written before there were versions is of the first.
struct Versioned<Value: Decodable>: Decodable {
  var value: Value

  init(from decoder: any Decoder) throws {
    let fields = try decoder.container(keyedBy: SchemaVersion.Key.self)
    switch try fields.decodeIfPresent(Int.self, forKey: .version) ?? 1 {
    case 1: value = try Value(from: decoder)
    case let version:
      throw DecodingError.dataCorruptedError(
        forKey: .version, in: fields, debugDescription: "the version \(version) is none of this Router's")
    }
  }
}
