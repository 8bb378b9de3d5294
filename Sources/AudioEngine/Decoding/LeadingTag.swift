/// What stands before a source's sound, where libav's time grows with the square of what is in it: an ID3v2 tag's
/// frames, the comments of a FLAC file. What is too rich is given to libav as padding, and the sound behind it stays
/// where it is.
package struct LeadingTag {
  private static let flacHeaderByteCount: Int64 = 4
  /// A FLAC block of comments over this is left out: room for a song's words and fifty more, and for 16,000 comments,
  /// which libav reads in half a second without asking us.
  package static let maximumCommentByteCount = 128 << 10

  /// Private frames of a tag: libav reads thousands only when it has them all, and asks us no more. A shop or a
  /// player puts in a dozen.
  package static let maximumPrivateFrames = 256
  private static let privateName = Array("PRIV".utf8)

  /// Where an ID3v2 tag ends (ID3v2.4, section 3.1); 0 where there is none.
  private var tagEndOffset: Int64 = 0
  private var isCut = false
  private var privateFrames = 0
  /// The letters of `PRIV` that the bytes before end with.
  private var matched = 0
  /// Where a FLAC file's next block header begins (RFC 9639, section 8.1); nil after the last one, or where it
  /// is no FLAC file.
  private var blockOffset: Int64?
  private var commentOffsets: [Int64] = []

  package init() {}

  /// Looks at what goes to libav, and empties what is too rich.
  ///
  /// - Parameter isTooRich: whether the tag has taken too long.
  package mutating func pass(_ bytes: UnsafeMutableRawBufferPointer, at offset: Int64, isTooRich: Bool) {
    if offset == 0 { begin(UnsafeRawBufferPointer(bytes)) }
    isCut = isCut || isTooRich && offset < tagEndOffset
    if offset < tagEndOffset { countPrivateFrames(UnsafeRawBufferPointer(bytes)) }
    if isCut {
      let first = max(0, ID3Header.byteCount - Int(clamping: offset))
      let end = Int(max(0, min(Int64(bytes.count), tagEndOffset - offset)))
      for index in first..<max(first, end) { bytes[index] = 0 }
    }
    findComments(UnsafeRawBufferPointer(bytes), at: offset)
    for comment in commentOffsets where comment >= offset && comment < offset + Int64(bytes.count) {
      let padding: UInt8 = 1
      bytes[Int(comment - offset)] = bytes[Int(comment - offset)] & 0x80 | padding
    }
  }

  private mutating func begin(_ bytes: UnsafeRawBufferPointer) {
    (privateFrames, matched) = (0, 0)
    if let header = ID3Header(bytes) { tagEndOffset = Int64(ID3Header.byteCount + header.bodyByteCount) }
    if bytes.starts(with: "fLaC".utf8), blockOffset == nil, commentOffsets.isEmpty {
      blockOffset = Self.flacHeaderByteCount
    }
  }

  /// By their name alone: sizes can be written so that libav and another reader find different frames.
  private mutating func countPrivateFrames(_ bytes: UnsafeRawBufferPointer) {
    for byte in bytes {
      matched = byte == Self.privateName[matched] ? matched + 1 : byte == Self.privateName[0] ? 1 : 0
      guard matched == Self.privateName.count else { continue }
      matched = 0
      privateFrames += 1
    }
    if privateFrames > Self.maximumPrivateFrames { isCut = true }
  }

  /// Goes from block to block as far as there are bytes. A header that is cut by the end of a piece is the end of
  /// that.
  private mutating func findComments(_ bytes: UnsafeRawBufferPointer, at offset: Int64) {
    while let block = blockOffset, block >= offset,
      block + Self.flacHeaderByteCount <= offset + Int64(bytes.count)
    {
      let header = bytes[Int(block - offset)..<Int(block - offset + Self.flacHeaderByteCount)]
      let (type, isLast) = (header.first! & 0x7F, header.first! & 0x80 != 0)
      let byteCount = header.dropFirst().reduce(0) { $0 << 8 | Int($1) }
      if type == 4, byteCount > Self.maximumCommentByteCount { commentOffsets.append(block) }
      blockOffset = isLast ? nil : block + Self.flacHeaderByteCount + Int64(byteCount)
    }
  }
}
