import NIOCore

/// Counts its connection, and answers one too many with 503 before anything is read. The first handler of a pipeline:
/// it works on bytes, whatever comes behind it.
public final class ConnectionLimitHandler: ChannelInboundHandler {
  public typealias InboundIn = ByteBuffer
  public typealias OutboundOut = ByteBuffer

  private let counter: ConnectionCounter
  private let address: (any Channel) -> String?
  /// Whose the connection was counted as; nil while it is not counted.
  private var admitted: String??

  /// - Parameter address: whom a connection is counted for; nil for none.
  public init(
    counter: ConnectionCounter,
    address: @escaping (any Channel) -> String? = { $0.remoteAddress?.ipAddress }
  ) {
    self.counter = counter
    self.address = address
  }

  public func channelActive(context: ChannelHandlerContext) {
    let address = address(context.channel)
    guard let limitReached = counter.enter(address) else {
      admitted = .some(address)
      return context.fireChannelActive()
    }
    let body = LimitReport.json(
      "overloaded", limitReached.message, hint: "close some of them, or try again later")
    let head =
      "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nContent-Length: "
      + "\(body.utf8.count)\r\nRetry-After: 5\r\nConnection: close\r\n\r\n"
    context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: head + body)), promise: nil)
    context.close(promise: nil)
  }

  public func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    if admitted != nil { context.fireChannelRead(data) }
  }

  public func channelInactive(context: ChannelHandlerContext) {
    if let address = admitted {
      counter.leave(address)
      admitted = nil
    }
    context.fireChannelInactive()
  }
}
