import NIOCore

/// A message of a subscription. Shares its memory with the bytes that were read with it: what is kept for long is better
/// copied.
public struct NATSMessage: Sendable {
  /// The bytes of a message's line and of what follows it.
  private let frame: ByteBuffer
  package let layout: Layout

  /// Where things stand in a message, in bytes from its beginning.
  package struct Layout: Sendable, Equatable {
    package var subscription: UInt64
    var subject: Range<Int>
    var reply: Range<Int>?
    var lineByteCount: Int
    var headerByteCount: Int
    /// Headers and payload.
    var totalByteCount: Int

    /// Line, headers, payload and the end of line behind it.
    var frameByteCount: Int { lineByteCount + totalByteCount + 2 }
  }

  init(frame: ByteBuffer, layout: Layout) {
    self.frame = frame
    self.layout = layout
  }

  public var subject: String { text(layout.subject) }
  /// The subject as it stands, for those who look at it often.
  public var subjectBytes: ByteBufferView { bytes(layout.subject) }
  /// Where an answer goes.
  public var reply: String? { layout.reply.map(text) }
  public var payload: ByteBuffer {
    slice(at: layout.lineByteCount + layout.headerByteCount, layout.totalByteCount - layout.headerByteCount)
  }
  public var hasHeaders: Bool { layout.headerByteCount > 0 }
  /// Reads the headers, each time anew.
  public var headers: NATSHeaders {
    guard hasHeaders else { return [:] }
    return NATSHeaders(text(layout.lineByteCount..<layout.lineByteCount + layout.headerByteCount))
  }

  /// The bytes of line, headers and payload.
  var byteCount: Int { frame.readableBytes }

  private func slice(at offset: Int, _ count: Int) -> ByteBuffer {
    // The parser has seen that the frame holds what the layout says.
    frame.getSlice(at: frame.readerIndex + offset, length: count) ?? ByteBuffer()
  }

  private func bytes(_ range: Range<Int>) -> ByteBufferView {
    slice(at: range.lowerBound, range.count).readableBytesView
  }

  private func text(_ range: Range<Int>) -> String {
    frame.getString(at: frame.readerIndex + range.lowerBound, length: range.count) ?? ""
  }
}
