import NIOCore

extension Outbox {
  /// Writes one publication.
  ///
  /// - Returns: whether the loop has to be told.
  func publish(
    _ payload: ByteBuffer, to subject: String, reply: String?, headers: String?, _ priority: Priority,
    absence: @autoclosure () -> String
  ) throws(NATSError) -> Bool {
    let payloadByteCount = payload.readableBytes + (headers?.utf8.count ?? 0)
    let byteCount =
      payloadByteCount + subject.utf8.count + (reply?.utf8.count ?? 0) + Frames.publicationOverhead
    let written = write(priority, byteCount: byteCount, payloadByteCount: payloadByteCount) {
      Frames.writePublication(payload, to: subject, reply: reply, headers: headers, into: &$0)
    }
    switch written {
    case .accepted(_, let mustFlush): return mustFlush
    case .full: throw .overloaded("too much waits to be sent")
    case .notConnected: throw .notConnected(absence())
    case .tooLarge(let limit): throw .payloadTooLarge(byteCount: payloadByteCount, limit: limit)
    }
  }
}
