import ServiceSupport
import WireProtocol

/// A picture that may be shown: known by its first bytes, whatever a file says of it.
package struct Picture: Sendable, Equatable {
  /// Larger ones are refused: a cover of 3,000 × 3,000 pixels as JPEG has room.
  static let maximumByteCount = 4 << 20

  package let bytes: [UInt8]
  package let kind: Kind
  /// Identifies the bytes: another value is another picture.
  package let entityTag: String

  /// What browsers show and what can carry no script.
  package enum Kind: String, Sendable, CaseIterable {
    case jpeg = "image/jpeg"
    case png = "image/png"
    case webp = "image/webp"
    case gif = "image/gif"

    /// By the signature; nil for anything else.
    package init?(signature bytes: UnsafeRawBufferPointer) {
      switch true {
      case bytes.starts(with: [0xFF, 0xD8, 0xFF]): self = .jpeg
      case bytes.starts(with: [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]): self = .png
      case bytes.starts(with: "GIF87a".utf8), bytes.starts(with: "GIF89a".utf8): self = .gif
      case bytes.starts(with: "RIFF".utf8) && bytes.dropFirst(8).starts(with: "WEBP".utf8): self = .webp
      default: return nil
      }
    }
  }

  /// - Throws: `source_too_large`, or `not_a_picture`.
  package init(_ bytes: [UInt8], of name: String) throws(ErrorReport) {
    self = try bytes.withUnsafeBytes { bytes in
      Result { () throws(ErrorReport) in try Picture(bytes, of: name) }
    }.get()
  }

  /// - Throws: `source_too_large`, or `not_a_picture`.
  package init(_ bytes: UnsafeRawBufferPointer, of name: String) throws(ErrorReport) {
    guard bytes.count <= Self.maximumByteCount else { throw Self.tooLarge(bytes.count, name) }
    guard let kind = Kind(signature: bytes) else {
      throw ErrorReport(
        .notAPicture, "the cover of \(name) is no JPEG, PNG, WebP or GIF", hint: "give it one of these",
        stage: .probe)
    }
    self.bytes = Array(bytes)
    self.kind = kind
    entityTag = ContentHash.entityTag(bytes)
  }

  static func tooLarge(_ byteCount: Int, _ name: String) -> ErrorReport {
    ErrorReport(
      .sourceTooLarge, "the cover of \(name) has \(byteCount) bytes, over \(maximumByteCount)",
      hint: "make it smaller", stage: .probe)
  }
}
