import NIOCore

/// What we say to a server.
enum Frames {
  /// - Throws: what is wrong with a subject: a server would close the connection, or take what follows for commands.
  static func check(
    subject: String, limits: NATSLimits, allowsWildcards: Bool
  ) throws(NATSError) {
    var lengthOfToken = 0
    var isSound = true
    for byte in subject.utf8 {
      switch byte {
      case UInt8(ascii: "."):
        isSound = isSound && lengthOfToken > 0
        lengthOfToken = 0
      case UInt8(ascii: "*"), UInt8(ascii: ">"):
        isSound = isSound && allowsWildcards
        lengthOfToken += 1
      case 0...0x20, 0x7F: isSound = false
      default: lengthOfToken += 1
      }
    }
    guard isSound, lengthOfToken > 0, subject.utf8.count <= limits.subjectByteCount else {
      throw .invalid("invalid NATS subject: \(subject.prefix(200))")
    }
  }

  /// The most bytes that a publication has besides subject, reply, headers and payload.
  static let publicationOverhead = 40

  static func writePublication(
    _ payload: ByteBuffer, to subject: String, reply: String?, headers: String?, into buffer: inout ByteBuffer
  ) {
    buffer.writeStaticString(headers == nil ? "PUB " : "HPUB ")
    buffer.writeString(subject)
    buffer.writeStaticString(" ")
    if let reply {
      buffer.writeString(reply)
      buffer.writeStaticString(" ")
    }
    let headerByteCount = headers?.utf8.count ?? 0
    if headers != nil {
      buffer.writeDecimal(headerByteCount)
      buffer.writeStaticString(" ")
    }
    buffer.writeDecimal(headerByteCount + payload.readableBytes)
    buffer.writeStaticString("\r\n")
    if let headers { buffer.writeString(headers) }
    buffer.writeImmutableBuffer(payload)
    buffer.writeStaticString("\r\n")
  }

  static func subscription(_ subject: String, queue: String?, id: UInt64) -> String {
    "SUB \(subject) \(queue.map { "\($0) " } ?? "")\(id)\r\n"
  }

  static func end(ofSubscription id: UInt64) -> String { "UNSUB \(id)\r\n" }

  static let ping = "PING\r\n"
  static let pong = "PONG\r\n"
}

extension ByteBuffer {
  /// Writes digits without memory of their own.
  fileprivate mutating func writeDecimal(_ number: Int) {
    var divisor = 1
    while number / divisor >= 10 { divisor *= 10 }
    while divisor > 0 {
      writeInteger(UInt8(ascii: "0") + UInt8(number / divisor % 10))
      divisor /= 10
    }
  }
}
