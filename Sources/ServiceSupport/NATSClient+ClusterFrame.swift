import NATS
import NIOCore
import WireProtocol

extension NATSClient {
  /// Publishes a frame with the stream's bytes in it.
  ///
  /// - Returns: false where it was dropped.
  @discardableResult
  package func publish(_ frame: ClusterFrame, _ bytes: ByteBuffer = ByteBuffer(), to subject: String) -> Bool
  {
    var payload = ByteBufferAllocator().buffer(capacity: ClusterFrame.headerByteCount + bytes.readableBytes)
    payload.writeBytes(frame.header)
    payload.writeImmutableBuffer(bytes)
    return publish(payload, to: subject)
  }

  /// Answers a frame of an unknown attachment with `close`, except a `close` itself.
  package func closeAttachment(of payload: ByteBuffer, to subject: String) {
    guard let frame = ClusterFrame(header: payload.readableBytesView), frame.kind != .close else { return }
    publish(ClusterFrame(.close, attachment: frame.attachment, number: 0), to: subject)
  }
}
