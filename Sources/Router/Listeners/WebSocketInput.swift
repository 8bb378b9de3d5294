import Collections
import NIOCore
import NIOWebSocket

/// What has come over a WebSocket and waits.
struct WebSocketInput {
  var texts: Deque<ByteBuffer> = []
  /// What was read and is decoded once its client has turns again.
  var undecoded: ByteBuffer?
  /// Bytes of `texts`, with the overhead of each.
  var textsByteCount = 0
  /// Bytes of everything that waits here, an incomplete message included.
  var byteCount = 0
  /// What has come since the last frame.
  var unfinishedByteCount = 0
  /// The fragments that have come of a message.
  var fragmentsByteCount = 0
  /// Frames of what is being decoded.
  var frameCount = 0
  /// The last ping, which is answered for all before it (RFC 6455, 5.5.3).
  var ping: WebSocketFrame?
  /// Since it was closed by us.
  var afterCloseByteCount = 0
  /// When the token comes that is reserved for the first of them.
  var turnTokenNanoseconds: UInt64?
  var isReading = true
  /// Whether `ClientBudgets` looks after it.
  var isHeld = false
}
