/// The header of an ID3v2 tag (ID3v2.4, section 3.1).
struct ID3Header {
  static let byteCount = 10

  let majorVersion: UInt8
  let flags: UInt8
  /// What follows the header, without a footer.
  let bodyByteCount: Int

  var hasFooter: Bool { flags & 0x10 != 0 }

  /// Reads the beginning of a tag; nil where it is none, or too short.
  init?(_ bytes: some Collection<UInt8>) {
    let header = Array(bytes.prefix(Self.byteCount))
    guard header.count == Self.byteCount, header.starts(with: "ID3".utf8) else { return nil }
    majorVersion = header[3]
    flags = header[5]
    bodyByteCount = Self.number(header[6...9])
  }

  /// Of seven bits a byte.
  static func number(_ bytes: some Collection<UInt8>) -> Int { bytes.reduce(0) { $0 << 7 | Int($1 & 0x7F) } }
}
