import NIOHTTP1
import WireProtocol

/// How large a request's head may be, and how finely cut its body. Pure, so that it is tested without a connection.
public struct RequestShape: Sendable, Equatable {
  /// A name with its value: a browser's cookies of all that is at `localhost`, or a token.
  public var fieldByteCount: Int
  /// All of a head's, with the target, and of what comes behind a chunked body.
  public var headByteCount: Int
  public var fieldCount: Int
  /// A search has 8 KiB (`ResolveRequest`).
  public var targetByteCount: Int
  /// Chunks that come together with others, and how many bytes of the body give one more.
  public var chunkCount: Int
  public var bytesPerChunk: Int
  /// What comes behind an error is taken for so long and thrown away, since a client that is cut off does not read
  /// it.
  public var drainSeconds: Int64

  /// The defaults: browsers, nginx and GitHub send some 2 KB in twenty fields, and bodies in chunks of kilobytes.
  public init(
    fieldByteCount: Int = 16_384, headByteCount: Int = 32_768, fieldCount: Int = 100,
    targetByteCount: Int = 12_288, chunkCount: Int = 1_000, bytesPerChunk: Int = 256, drainSeconds: Int64 = 1
  ) {
    precondition(bytesPerChunk > 0)
    self.fieldByteCount = fieldByteCount
    self.headByteCount = headByteCount
    self.fieldCount = fieldCount
    self.targetByteCount = targetByteCount
    self.chunkCount = chunkCount
    self.bytesPerChunk = bytesPerChunk
    self.drainSeconds = drainSeconds
  }

  /// What NIO's decoder holds at the most.
  public var decoderLimits: NIOHTTPDecoderLimitConfiguration {
    var limits = NIOHTTPDecoderLimitConfiguration()
    limits.maxHeaderFieldSize = fieldByteCount
    limits.maxHeaderListSize = headByteCount
    limits.maxHeaderFieldCount = fieldCount
    return limits
  }

  /// Why a request is refused, and the response that says so.
  package struct Rejection: Error, Equatable {
    package var status: HTTPResponseStatus
    package var message: String
    package var hint: String
  }

  /// - Returns: nil for a head that is taken.
  package func rejection(of head: HTTPRequestHead) -> Rejection? {
    guard head.uri.utf8.count <= targetByteCount else {
      return Rejection(
        status: .uriTooLong, message: "the address has over \(targetByteCount) bytes",
        hint: "ask for less at once")
    }
    let target = head.uri.utf8.contains(UInt8(ascii: "%")) ? PercentEncoding.decoded(head.uri) : head.uri
    guard CombiningMarks.areFew(in: target), head.headers.allSatisfy({ CombiningMarks.areFew(in: $0.value) })
    else {
      return Rejection(
        status: .badRequest,
        message: "the request's head has over \(WireLimits.maximumCombiningMarks) combining marks in a row",
        hint: "no language has so many on a letter")
    }
    return nil
  }

  package func rejection(of error: HTTPParserError) -> Rejection {
    guard error == .headerOverflow else {
      return Rejection(
        status: .badRequest, message: "the request is no HTTP/1.1: \(error)",
        hint: "send requests as RFC 9112 has them")
    }
    return Rejection(
      status: .requestHeaderFieldsTooLarge,
      message: "the request's head has over \(headByteCount) bytes, \(fieldByteCount) in one field or "
        + "\(fieldCount) fields", hint: "send fewer or shorter fields")
  }

  /// - Parameters:
  ///   - chunks: that came together with others.
  ///   - byteCount: of the body so far.
  package func rejection(chunks: Int, byteCount: Int) -> Rejection? {
    guard chunks > chunkCount + byteCount / bytesPerChunk else { return nil }
    return Rejection(
      status: .badRequest, message: "the body's \(byteCount) bytes came in \(chunks) chunks",
      hint: "send larger ones")
  }
}
