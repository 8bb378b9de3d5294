import NIOCore

/// A text message as it is written: a frame's beginning, and where its last field is shared with other messages, that
/// field's bytes and the closing brace. Nothing comes between them.
package struct TextMessage {
  private static let closingBrace = ByteBuffer(string: "}")

  private let beginning: ByteBuffer
  private let shared: ByteBuffer?
  /// What it adds to what waits for its client: of shared bytes its part.
  package let accountedByteCount: Int

  /// - Parameters:
  ///   - frame: a whole frame.
  ///   - sharers: how many listeners get the same bytes.
  package init(_ frame: ByteBuffer, sharedBy sharers: Int = 1) {
    beginning = frame
    shared = nil
    accountedByteCount = frame.readableBytes / max(1, sharers)
  }

  /// An object with one more field.
  ///
  /// - Parameters:
  ///   - object: JSON of the other fields, of which there is one at the least.
  ///   - value: JSON.
  ///   - sharers: how many listeners get the same value.
  package init(_ object: [UInt8], adding name: String, _ value: ByteBuffer, sharedBy sharers: Int) {
    let fields = object.dropLast() + Array(#","\#(name)":"#.utf8)
    beginning = WebSocketFrames.beginning(
      ofText: fields,
      payloadByteCount: fields.count + value.readableBytes + Self.closingBrace.readableBytes)
    shared = value
    accountedByteCount = beginning.readableBytes + value.readableBytes / max(1, sharers)
  }

  package var byteCount: Int {
    beginning.readableBytes + (shared.map { $0.readableBytes + Self.closingBrace.readableBytes } ?? 0)
  }

  /// What is written, in order.
  package func forEachPart(_ body: (ByteBuffer) -> Void) {
    body(beginning)
    guard let shared else { return }
    body(shared)
    body(Self.closingBrace)
  }
}
