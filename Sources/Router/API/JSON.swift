#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// JSON as every door writes it. Control plane only.
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

  /// As SQLite keeps it.
  static func text(_ value: some Encodable) -> String {
    String(decoding: encode(value), as: UTF8.self)
  }

  /// - Returns: nil for what is not there or cannot be read.
  static func value<Value: Decodable>(_ text: String?) -> Value? {
    text.flatMap { try? decode(Value.self, from: Array($0.utf8)) }
  }
}
