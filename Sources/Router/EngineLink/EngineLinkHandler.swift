import NIOCore
import WireProtocol

/// Reads the engine's stream on the data plane's loop: packets go straight to the sessions, events to the
/// link.
final class EngineLinkHandler: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer

  private var decoder = MessageDecoder()
  private let link: EngineLink
  private let store: SessionStore

  init(link: EngineLink, store: SessionStore) {
    self.link = link
    self.store = store
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    decoder.append(unwrapInboundIn(data).readableBytesView)
    do {
      while let message = try decoder.next() {
        switch message {
        case .audio(let sessionID, let audio):
          guard link.isEstablished else {
            return fail(context, "a packet came before hello")
          }
          store.route(sessionID, audio)
        case .event(let json):
          if let failure = link.received(event: json) { return fail(context, failure) }
        }
      }
    } catch {
      fail(context, error.description)
    }
  }

  /// One flush for all packets of one read: a system call a listener, not one a packet.
  func channelReadComplete(context: ChannelHandlerContext) {
    store.flush()
    context.fireChannelReadComplete()
  }

  func channelInactive(context: ChannelHandlerContext) {
    link.closed("the engine closed the connection", on: context.channel)
    context.fireChannelInactive()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    link.closed("the connection to the engine broke: \(error)", on: context.channel)
  }

  private func fail(_ context: ChannelHandlerContext, _ what: String) {
    store.flush()
    link.failed(what, on: context.channel)
  }
}
