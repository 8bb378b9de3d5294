#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A part of a local file's cover, as the engine gives it to a router.
public struct ArtworkPiece: Codable, Sendable, Equatable {
  public var url: String
  public var contentType: String
  /// Size of the whole picture, in bytes.
  public var byteCount: Int
  /// Identifies the whole picture: another value is another picture.
  public var entityTag: String
  /// Where `data` begins.
  public var offset: Int
  /// At most `WireLimits.maximumArtworkPieceByteCount`; in JSON as base64.
  public var data: Data

  public init(
    url: String, contentType: String, byteCount: Int, entityTag: String, offset: Int, data: Data
  ) {
    self.url = url
    self.contentType = contentType
    self.byteCount = byteCount
    self.entityTag = entityTag
    self.offset = offset
    self.data = data
  }

  enum CodingKeys: String, CodingKey {
    case url, offset, data
    case contentType = "content_type"
    case byteCount = "bytes"
    case entityTag = "etag"
  }
}

/// `GET /artwork`, which both servers have.
public enum ArtworkEndpoint {
  /// Where both serve the cover of a local file.
  public static func path(ofMediaURL url: String) -> String {
    "/artwork?url=" + String(decoding: url.utf8.flatMap(percentEncoded), as: UTF8.self)
  }

  /// A picture's headers. It is a stranger's file: shown as what it was found to be, and as nothing else.
  public static func headers(contentType: String, entityTag: String) -> [(name: String, value: String)] {
    [
      ("Content-Type", contentType), ("ETag", entityTag), ("Cache-Control", "private, max-age=60"),
      ("X-Content-Type-Options", "nosniff"), ("Content-Security-Policy", "default-src 'none'; sandbox"),
    ]
  }

  /// All but what a query's value may hold as it is (RFC 3986, section 3.4), without `+` and `&`.
  private static func percentEncoded(_ byte: UInt8) -> [UInt8] {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
      UInt8(ascii: "~"), UInt8(ascii: "/"), UInt8(ascii: ":"):
      [byte]
    default:
      [UInt8(ascii: "%"), hexadecimal(byte >> 4), hexadecimal(byte & 15)]
    }
  }

  private static func hexadecimal(_ digit: UInt8) -> UInt8 {
    digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "A") + digit - 10
  }
}
