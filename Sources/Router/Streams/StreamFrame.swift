import NIOCore

/// One message as it goes to the socket: an event of an event stream (HTML standard, "Server-sent events") in a chunk
/// of its own (RFC 9112, 7.1). Made once for all who get it.
enum StreamFrame {
  /// - Parameters:
  ///   - id: what the client sends as `Last-Event-ID` when it comes back.
  ///   - json: one object, in parts; without line breaks.
  ///   - retryMilliseconds: when the client is to come back, where it is told.
  static func make(id: Int, json: [ByteBuffer], retryMilliseconds: Int? = nil) -> ByteBuffer {
    var frame = begin(
      id: id, jsonByteCount: json.reduce(0) { $0 + $1.readableBytes }, retryMilliseconds: retryMilliseconds)
    for part in json { frame.writeImmutableBuffer(part) }
    end(&frame)
    return frame
  }

  /// A message up to its object, with room for that one: `end` follows it.
  static func begin(id: Int, jsonByteCount: Int, retryMilliseconds: Int? = nil) -> ByteBuffer {
    let retry = retryMilliseconds.map { "retry: \($0)\n" } ?? ""
    let head = "\(retry)id: \(id)\ndata: "
    let byteCount = head.utf8.count + jsonByteCount + endOfEvent.utf8.count
    var frame = ByteBuffer()
    frame.reserveCapacity(byteCount + 32)
    frame.writeString("\(String(byteCount, radix: 16))\r\n\(head)")
    return frame
  }

  static func end(_ frame: inout ByteBuffer) {
    frame.writeString("\(endOfEvent)\r\n")
  }

  private static let endOfEvent = "\n\n"

  static func make(id: Int, _ message: some Encodable, retryMilliseconds: Int? = nil) -> ByteBuffer {
    make(id: id, json: [ByteBuffer(bytes: JSON.encode(message))], retryMilliseconds: retryMilliseconds)
  }
}
