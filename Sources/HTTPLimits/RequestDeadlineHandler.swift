import HTTPTypes
import NIOCore
import NIOHTTPTypes

/// Closes a connection whose client is too slow with a request: one that drips a body has 408 and is closed, one that
/// sends no head is closed. Stands behind `HTTP1ToHTTPServerCodec`; one for each connection.
public final class RequestDeadlineHandler: ChannelDuplexHandler, RemovableChannelHandler {
  public typealias InboundIn = HTTPRequestPart
  public typealias InboundOut = HTTPRequestPart
  public typealias OutboundIn = HTTPResponsePart
  public typealias OutboundOut = HTTPResponsePart

  private let pace: RequestPace
  private var progress: RequestProgress?
  private var timer: (task: Scheduled<Void>, nanoseconds: UInt64)?

  public init(pace: RequestPace = RequestPace()) { self.pace = pace }

  public func handlerAdded(context: ChannelHandlerContext) {
    if context.channel.isActive { begin(context) }
  }

  public func handlerRemoved(context: ChannelHandlerContext) { stop() }

  public func channelActive(context: ChannelHandlerContext) {
    begin(context)
    context.fireChannelActive()
  }

  public func channelInactive(context: ChannelHandlerContext) {
    stop()
    context.fireChannelInactive()
  }

  public func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    // What comes behind a 408 answers nothing any more.
    guard progress?.state != .expired else { return }
    switch unwrapInboundIn(data) {
    case .head: progress?.head(now: Self.now(context))
    case .body(let bytes): progress?.body(byteCount: bytes.readableBytes)
    case .end: progress?.end(now: Self.now(context))
    }
    schedule(context)
    context.fireChannelRead(data)
  }

  public func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    guard progress?.state != .expired else {
      promise?.fail(ChannelError.ioOnClosedChannel)
      return
    }
    switch unwrapOutboundIn(data) {
    // 100 and 103 come before the answer.
    case .head(let head): if head.status.kind != .informational { progress?.beginAnswer() }
    case .body: break
    case .end: progress?.endAnswer(now: Self.now(context))
    }
    schedule(context)
    context.write(data, promise: promise)
  }

  // MARK: Time

  private func begin(_ context: ChannelHandlerContext) {
    guard progress == nil else { return }
    progress = RequestProgress(pace, now: Self.now(context))
    schedule(context)
  }

  /// A timer is not moved with every piece that puts the deadline off: when it fires it looks at the deadline.
  private func schedule(_ context: ChannelHandlerContext) {
    guard let deadline = progress?.deadlineNanoseconds else { return }
    if let timer {
      guard deadline < timer.nanoseconds else { return }
      timer.task.cancel()
    }
    let bound = NIOLoopBound((handler: self, context: context), eventLoop: context.eventLoop)
    let task = context.eventLoop.scheduleTask(deadline: .uptimeNanoseconds(deadline)) {
      let (handler, context) = bound.value
      handler.timer = nil
      handler.checkDeadline(context)
    }
    timer = (task, deadline)
  }

  private func checkDeadline(_ context: ChannelHandlerContext) {
    guard let deadline = progress?.deadlineNanoseconds else { return }
    guard Self.now(context) >= deadline else { return schedule(context) }
    let hasBegunAnswer = progress?.hasBegunAnswer ?? true
    if case .receivingBody(let byteCount)? = progress?.expire(), !hasBegunAnswer {
      answerTimeout(byteCount, context)
    }
    context.close(promise: nil)
  }

  private func answerTimeout(_ byteCount: Int, _ context: ChannelHandlerContext) {
    let text = LimitReport.json(
      "invalid_command",
      "the request's body came too slowly: \(byteCount) bytes within \(pace.bodySeconds) s and one more for every "
        + "\(pace.bodyBytesPerSecond) bytes", hint: "send it faster")
    let body = ByteBuffer(string: text)
    var head = HTTPResponse(status: .requestTimeout)
    head.headerFields[.contentType] = "application/json"
    head.headerFields[.contentLength] = String(body.readableBytes)
    head.headerFields[.connection] = "close"
    context.write(wrapOutboundOut(.head(head)), promise: nil)
    context.write(wrapOutboundOut(.body(body)), promise: nil)
    context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
  }

  private func stop() {
    timer?.task.cancel()
    timer = nil
    progress = nil
  }

  private static func now(_ context: ChannelHandlerContext) -> UInt64 {
    context.eventLoop.now.uptimeNanoseconds
  }
}
