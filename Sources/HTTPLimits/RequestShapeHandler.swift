import NIOCore
import NIOHTTP1

/// Refuses a request whose head or body is not shaped as it may be, or that is no HTTP, with the error object of
/// every endpoint, and closes. (NIO's `HTTPServerProtocolErrorHandler` does so without a body.) Hands the parts of a
/// body on that came at once as one, since each costs what lies behind as much as a large one. Right behind NIO's
/// HTTP decoder; one for each connection.
public final class RequestShapeHandler: ChannelDuplexHandler, RemovableChannelHandler {
  public typealias InboundIn = HTTPServerRequestPart
  public typealias InboundOut = HTTPServerRequestPart
  public typealias OutboundIn = HTTPServerResponsePart
  public typealias OutboundOut = HTTPServerResponsePart

  private let shape: RequestShape
  /// A head has come that announces a body, and not yet all of that.
  public private(set) var isReceivingBody = false
  /// In the middle of an answer another one would be taken for a part of it.
  private var isAnswering = false
  private var isRefused = false
  /// What has come of a body and was not handed on.
  private var body: ByteBuffer?
  private var bodyByteCount = 0
  private var chunkCount = 0

  public init(shape: RequestShape = RequestShape()) { self.shape = shape }

  public func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard !isRefused else { return }
    switch unwrapInboundIn(data) {
    case .head(let head):
      if let rejection = shape.rejection(of: head) { return refuse(rejection, context) }
      isReceivingBody = head.announcesBody
      bodyByteCount = 0
      chunkCount = 0
      context.fireChannelRead(data)
    case .body(let part): take(part, context)
    case .end:
      handOn(context)
      isReceivingBody = false
      context.fireChannelRead(data)
    }
  }

  public func channelReadComplete(context: ChannelHandlerContext) {
    handOn(context)
    context.fireChannelReadComplete()
  }

  public func channelInactive(context: ChannelHandlerContext) {
    handOn(context)
    context.fireChannelInactive()
  }

  public func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    handOn(context)
    if isRefused, case ChannelEvent.inputClosed = event { context.close(promise: nil) }
    context.fireUserInboundEventTriggered(event)
  }

  public func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    guard !isRefused else {
      promise?.fail(ChannelError.ioOnClosedChannel)
      return
    }
    switch unwrapOutboundIn(data) {
    case .head(let head): isAnswering = head.status.code >= 200
    case .body: break
    case .end: isAnswering = false
    }
    context.write(data, promise: promise)
  }

  public func errorCaught(context: ChannelHandlerContext, error: any Error) {
    // The decoder complains of each read behind what it could not read.
    guard !isRefused else { return }
    guard let error = error as? HTTPParserError else { return context.fireErrorCaught(error) }
    refuse(shape.rejection(of: error), context)
  }

  private func take(_ part: ByteBuffer, _ context: ChannelHandlerContext) {
    bodyByteCount += part.readableBytes
    guard var joined = body else {
      body = part
      return
    }
    chunkCount += 1
    if let rejection = shape.rejection(chunks: chunkCount, byteCount: bodyByteCount) {
      return refuse(rejection, context)
    }
    // So that it is the only one, and is not copied each time.
    body = nil
    joined.writeImmutableBuffer(part)
    body = joined
  }

  private func handOn(_ context: ChannelHandlerContext) {
    guard let part = body else { return }
    body = nil
    context.fireChannelRead(wrapInboundOut(.body(part)))
  }

  private func refuse(_ rejection: RequestShape.Rejection, _ context: ChannelHandlerContext) {
    isRefused = true
    body = nil
    guard !isAnswering else { return context.close(promise: nil) }
    let text = LimitReport.json("invalid_command", rejection.message, hint: rejection.hint)
    let body = ByteBuffer(string: text)
    let head = HTTPResponseHead(
      version: .http1_1, status: rejection.status,
      headers: [
        "connection": "close", "content-type": "application/json", "content-length": "\(body.readableBytes)",
      ])
    context.write(wrapOutboundOut(.head(head)), promise: nil)
    context.write(wrapOutboundOut(.body(.byteBuffer(body))), promise: nil)
    let written = context.writeAndFlush(wrapOutboundOut(.end(nil)))
    written.assumeIsolated().whenComplete { _ in context.close(mode: .output, promise: nil) }
    context.eventLoop.assumeIsolated().scheduleTask(in: .seconds(shape.drainSeconds)) {
      context.close(promise: nil)
    }
  }
}

extension HTTPRequestHead {
  /// RFC 9112, section 6.
  fileprivate var announcesBody: Bool {
    headers.contains(name: "Transfer-Encoding") || headers.first(name: "Content-Length") ?? "0" != "0"
  }
}
