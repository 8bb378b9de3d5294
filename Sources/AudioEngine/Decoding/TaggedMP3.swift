/// MP3 files with a large tag before their sound, as every one with a cover is. libavformat tries all formats
/// on twice as many bytes again and again until it sees past the tag: tens of milliseconds, and it may take
/// what is in the tag for something else.
enum TaggedMP3 {
  /// Tags one after the other that are looked past.
  private static let maximumTags = 4

  /// Whether a file begins with an ID3v2 tag, and an MPEG audio frame follows it.
  static func isOne(_ file: FileInput) -> Bool {
    var offset: Int64 = 0
    for _ in 0..<maximumTags {
      let bytes = file.peek(at: offset, byteCount: ID3Header.byteCount)
      guard bytes.count == ID3Header.byteCount else { return false }
      guard let header = ID3Header(bytes) else { return offset > 0 && isFrame(bytes) }
      // A footer is as long as the header.
      offset += Int64((header.hasFooter ? 2 : 1) * ID3Header.byteCount + header.bodyByteCount)
    }
    return false
  }

  /// An MPEG audio frame's header (ISO 11172-3, section 2.4.1.3): nothing in it is reserved, and the layer is one of
  /// three; ADTS has none.
  private static func isFrame(_ bytes: [UInt8]) -> Bool {
    let (version, layer) = (bytes[1] >> 3 & 3, bytes[1] >> 1 & 3)
    let (bitRate, sampleRate) = (bytes[2] >> 4, bytes[2] >> 2 & 3)
    return bytes[0] == 0xFF && bytes[1] & 0xE0 == 0xE0 && version != 1 && layer != 0 && bitRate != 15
      && sampleRate != 3
  }
}
