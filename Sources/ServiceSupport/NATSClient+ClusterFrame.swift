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

  /// Tells the sender of a frame that its attachment has ended. A frame that says so itself has no answer.
  package func refuse(_ payload: ByteBuffer, to subject: String) {
    guard let frame = ClusterFrame(header: payload.readableBytesView), frame.kind != .close else { return }
    publish(ClusterFrame(.close, attachment: frame.attachment, number: 0), to: subject)
  }
}
