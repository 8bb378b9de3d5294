import WireProtocol

/// An answer as it goes over the wire, put into words once for any number of requesters: each gets it with its own
/// `request_id` before the rest.
package struct AnswerLine: Sendable {
  /// Everything behind the opening brace, with the newline.
  private let rest: [UInt8]

  /// - Parameter event: without a `request_id`.
  package init(_ event: EngineEvent) { rest = Array(event.encodedLine().dropFirst()) }

  package var byteCount: Int { rest.count + 1 }

  /// Appends the line to what is sent.
  ///
  /// - Parameter sessionID: of the command that is answered, where the event itself does not name it.
  package func write(to bytes: inout [UInt8], sessionID: SessionID? = nil, requestID: String?) {
    bytes.append(UInt8(ascii: "{"))
    if let sessionID {
      // Nothing in a session ID has to be escaped.
      bytes.append(contentsOf: "\"session_id\":\"\(sessionID)\",".utf8)
    }
    if let requestID {
      bytes.append(contentsOf: "\"request_id\":\"".utf8)
      Self.write(escaped: requestID, to: &bytes)
      bytes.append(contentsOf: "\",".utf8)
    }
    bytes.append(contentsOf: rest)
  }

  /// A JSON string's inside (RFC 8259, section 7).
  private static func write(escaped text: String, to bytes: inout [UInt8]) {
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "\""), UInt8(ascii: "\\"): bytes += [UInt8(ascii: "\\"), byte]
      case 0..<0x20: bytes.append(contentsOf: "\\u00\(byte < 16 ? "0" : "")\(String(byte, radix: 16))".utf8)
      default: bytes.append(byte)
      }
    }
  }
}
