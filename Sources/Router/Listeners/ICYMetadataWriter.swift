import NIOCore

/// Puts what plays between the bytes of a stream, for players that ask for it: after each interval one byte, and sixteen
/// times as many bytes of text as it says (the SHOUTcast protocol).
package struct ICYMetadataWriter {
  /// Bytes of the stream between two blocks: about a second.
  package static let interval = 16_000
  private static let maximumTextByteCount = 255 * 16

  private var left = Self.interval
  private var lastText: String?

  package init() {}

  /// - Parameter title: of what plays now; a block says it where it is another than the last one said.
  package mutating func write(_ bytes: ByteBuffer, title: String?) -> ByteBuffer {
    var rest = bytes
    var written = ByteBuffer()
    while let piece = rest.readSlice(length: min(left, rest.readableBytes)), piece.readableBytes > 0 {
      written.writeImmutableBuffer(piece)
      left -= piece.readableBytes
      guard left == 0 else { continue }
      left = Self.interval
      writeBlock(title, to: &written)
    }
    return written
  }

  private mutating func writeBlock(_ title: String?, to bytes: inout ByteBuffer) {
    let text = title ?? ""
    guard text != lastText else {
      _ = bytes.writeInteger(UInt8(0))
      return
    }
    lastText = text
    let block = Array("StreamTitle='\(text)';".utf8)
    guard block.count <= Self.maximumTextByteCount else {
      _ = bytes.writeInteger(UInt8(0))
      return
    }
    let count = (block.count + 15) / 16
    bytes.writeInteger(UInt8(count))
    bytes.writeBytes(block)
    bytes.writeRepeatingByte(0, count: count * 16 - block.count)
  }
}
