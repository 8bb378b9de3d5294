import NIOCore

/// A piece's sound as the message that all clients of an encoding get. Anyone who has not taken all of it holds the
/// whole.
struct StreamPiece: Sendable {
  /// No other piece's.
  let id: Int
  let frame: ByteBuffer

  var byteCount: Int { frame.readableBytes }
}
