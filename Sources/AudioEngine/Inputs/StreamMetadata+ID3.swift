import WireProtocol

extension StreamMetadata {
  private static let frameHeaderByteCount = 10
  /// Longer texts are cut.
  private static let maximumTextByteCount = 4_096

  /// Title and artist of an ID3 tag (ID3v2.3 and ID3v2.4), as live streams have it before packed audio and among the
  /// packets of MPEG-TS. Nil where it says neither, or is written in a way that streams do not use.
  package init?(id3 tag: some RandomAccessCollection<UInt8>) {
    // Neither unsynchronized nor with an extended header (ID3v2.4, section 3.1).
    guard let header = ID3Header(tag), (3...4).contains(header.majorVersion), header.flags & 0xC0 == 0 else {
      return nil
    }
    var rest = tag.dropFirst(ID3Header.byteCount).prefix(header.bodyByteCount)
    var texts: [String: String] = [:]
    while rest.count > Self.frameHeaderByteCount, rest.first != 0 {
      let frame = Array(rest.prefix(Self.frameHeaderByteCount))
      let size = frame[4...7]
      // Of eight bits a byte in ID3v2.3.
      let byteCount =
        header.majorVersion == 4 ? ID3Header.number(size) : size.reduce(0) { $0 << 8 | Int($1) }
      rest = rest.dropFirst(Self.frameHeaderByteCount)
      guard byteCount <= rest.count else { break }
      let name = String(decoding: frame[..<4], as: UTF8.self)
      if name == "TIT2" || name == "TPE1" {
        texts[name] = Self.text(Array(rest.prefix(min(byteCount, Self.maximumTextByteCount))))
      }
      rest = rest.dropFirst(byteCount)
    }
    guard !texts.isEmpty else { return nil }
    self = StreamMetadata(title: texts["TIT2"], artist: texts["TPE1"]).bounded()
  }

  /// The first text of a frame, behind the byte that says how it is written (ID3v2.4, section 4).
  private static func text(_ frame: [UInt8]) -> String? {
    guard let encoding = frame.first else { return nil }
    let bytes = frame.dropFirst()
    switch encoding {
    case 0, 3:
      return bytes.prefix { $0 != 0 }.withUnsafeBytes { TagText.decoded($0, isCut: false) }
    case 1, 2:
      let isLittle = encoding == 1 && bytes.starts(with: [0xFF, 0xFE])
      let units = stride(from: bytes.startIndex, to: bytes.endIndex - 1, by: 2).map { index in
        let (first, second) = (UInt16(bytes[index]), UInt16(bytes[index + 1]))
        return isLittle ? second << 8 | first : first << 8 | second
      }
      let byteOrderMark: UInt16 = 0xFEFF
      return String(decoding: units.drop { $0 == byteOrderMark }.prefix { $0 != 0 }, as: UTF16.self)
    default: return nil
    }
  }
}
