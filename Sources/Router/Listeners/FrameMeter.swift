import NIOCore
import NIOWebSocket

/// Counts the frames of a WebSocket before they become messages: a fragment costs the loop as much as a whole text.
final class FrameMeter: ChannelInboundHandler {
  typealias InboundIn = WebSocketFrame
  typealias InboundOut = WebSocketFrame

  private let listener: WebSocketListener

  init(_ listener: WebSocketListener) {
    self.listener = listener
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    listener.count(unwrapInboundIn(data))
    context.fireChannelRead(data)
  }
}
