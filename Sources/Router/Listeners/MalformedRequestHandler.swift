import NIOCore
import NIOHTTP1
import WireProtocol

/// Tells a client whose bytes are no HTTP so, with the error object of every door, and closes. (NIO's
/// `HTTPServerProtocolErrorHandler` does so without a body.)
final class MalformedRequestHandler: ChannelDuplexHandler, RemovableChannelHandler {
  typealias InboundIn = HTTPServerRequestPart
  typealias InboundOut = HTTPServerRequestPart
  typealias OutboundIn = HTTPServerResponsePart
  typealias OutboundOut = HTTPServerResponsePart

  /// In the middle of an answer another one would be taken for a part of it.
  private var isAnswering = false

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    switch unwrapOutboundIn(data) {
    case .head(let head): isAnswering = head.status.code >= 200
    case .body: break
    case .end: isAnswering = false
    }
    context.write(data, promise: promise)
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    guard let error = error as? HTTPParserError else { return context.fireErrorCaught(error) }
    guard !isAnswering else { return context.close(promise: nil) }
    isAnswering = true
    let report = ErrorReport(
      .invalidCommand, "the request is no HTTP/1.1: \(error)", hint: "send requests as RFC 9112 has them",
      stage: .command)
    let body = ByteBuffer(bytes: JSON.encode(report))
    let head = HTTPResponseHead(
      version: .http1_1, status: .badRequest,
      headers: [
        "connection": "close", "content-type": "application/json", "content-length": "\(body.readableBytes)",
      ])
    context.write(wrapOutboundOut(.head(head)), promise: nil)
    context.write(wrapOutboundOut(.body(.byteBuffer(body))), promise: nil)
    let written = context.writeAndFlush(wrapOutboundOut(.end(nil)))
    written.assumeIsolated().whenComplete { _ in context.close(promise: nil) }
  }
}
