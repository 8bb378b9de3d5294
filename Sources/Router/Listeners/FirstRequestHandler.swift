import NIOCore
import NIOHTTP1

/// Sees a connection through to its first request, before NIO's upgrade handler: one that sends nothing is
/// closed after a while, and at once when the Router stops; and one whose upgrade is refused becomes a plain
/// request, which the routes answer with the reason. (NIO's handler itself loses the head of a request that
/// it does not upgrade, `Upgrade: h2c` for example.)
final class FirstRequestHandler: ChannelInboundHandler, RemovableChannelHandler {
  typealias InboundIn = HTTPServerRequestPart
  typealias InboundOut = HTTPServerRequestPart

  private let admits: (HTTPRequestHead) -> Bool
  private var deadline: Scheduled<Void>?

  /// - Parameter admits: whether a request for a WebSocket may be one.
  init(admits: @escaping (HTTPRequestHead) -> Bool) {
    self.admits = admits
  }

  func handlerAdded(context: ChannelHandlerContext) {
    deadline = context.eventLoop.assumeIsolated().scheduleTask(
      in: .seconds(RouterLimits.firstRequestSeconds)
    ) { context.close(promise: nil) }
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    deadline?.cancel()
  }

  func channelInactive(context: ChannelHandlerContext) {
    deadline?.cancel()
    context.fireChannelInactive()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard case .head(var head) = unwrapInboundIn(data), head.headers.contains(name: "Upgrade"),
      !(isWebSocket(head) && admits(head))
    else { return context.fireChannelRead(data) }
    head.headers.remove(name: "Upgrade")
    context.fireChannelRead(wrapInboundOut(.head(head)))
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if event is ChannelShouldQuiesceEvent {
      context.close(promise: nil)
    } else {
      context.fireUserInboundEventTriggered(event)
    }
  }

  /// RFC 6455, 4.2.1.
  private func isWebSocket(_ head: HTTPRequestHead) -> Bool {
    func tokens(_ name: String) -> [String] {
      head.headers[canonicalForm: name].map { $0.lowercased() }
    }
    return head.method == .GET && tokens("Upgrade").contains("websocket")
      && tokens("Connection").contains("upgrade") && tokens("Sec-WebSocket-Version") == ["13"]
      && tokens("Sec-WebSocket-Key").count == 1
  }
}
