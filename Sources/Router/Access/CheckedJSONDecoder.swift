import JWTKit
import WireProtocol

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Reads a token's parts, which anybody may have written: its signature is checked after that.
struct CheckedJSONDecoder: JWTJSONDecoder {
  func decode<Value: Decodable>(_ type: Value.Type, from json: Data) throws -> Value {
    try CombiningMarks.check(json: Array(json))
    return try JSONDecoder.defaultForJWT.decode(type, from: json)
  }
}
