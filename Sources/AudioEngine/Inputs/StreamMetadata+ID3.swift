import WireProtocol

extension StreamMetadata {
  private static let headerByteCount = 10
  /// Longer texts are cut.
  private static let maximumTextByteCount = 4_096

  /// Title and artist of an ID3 tag (ID3v2.3 and ID3v2.4), as live streams have it before packed audio and among the
  /// packets of MPEG-TS. Nil where it says neither, or is written in a way that streams do not use.
  package init?(id3 tag: some RandomAccessCollection<UInt8>) {
    let header = Array(tag.prefix(Self.headerByteCount))
    // Neither unsynchronized nor with an extended header (ID3v2.4, section 3.1).
    guard header.count == Self.headerByteCount, header.starts(with: "ID3".utf8), (3...4).contains(header[3]),
      header[5] & 0xC0 == 0
    else { return nil }
    // Sizes of 7 bits a byte, but for frames of ID3v2.3.
    let frameSizeBits = header[3] == 4 ? 7 : 8
    var rest = tag.dropFirst(Self.headerByteCount).prefix(Self.number(header[6...9], bits: 7))
    var texts: [String: String] = [:]
    while rest.count > Self.headerByteCount, rest.first != 0 {
      let frame = Array(rest.prefix(Self.headerByteCount))
      let byteCount = Self.number(frame[4...7], bits: frameSizeBits)
      rest = rest.dropFirst(Self.headerByteCount)
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

  private static func number(_ bytes: ArraySlice<UInt8>, bits: Int) -> Int {
    bytes.reduce(0) { $0 << bits | Int($1) & (1 << bits - 1) }
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
