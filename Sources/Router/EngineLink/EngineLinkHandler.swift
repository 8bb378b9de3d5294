import NIOCore
import WireProtocol

/// Reads the engine's stream on the data plane's loop: packets go straight to the sessions, events to the
/// link.
final class EngineLinkHandler: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer

  private var decoder = MessageDecoder()
  private let link: EngineLink
  private let packets: PacketPath

  init(link: EngineLink, packets: PacketPath) {
    self.link = link
    self.packets = packets
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    decoder.append(unwrapInboundIn(data).readableBytesView)
    packets.begin()
    do {
      while let message = try decoder.nextPlace() {
        switch message {
        case .audio(let sessionID, let packet):
          guard link.isEstablished else {
            return fail(context, "a packet came before hello")
          }
          guard decoder.withPacket(at: packet, { packets.take(sessionID, $0) }) else {
            return fail(context, "a packet of \(sessionID) came in another session's burst")
          }
        case .event(let json):
          guard !packets.isCollectingBurst else { return fail(context, "an event came in a burst") }
          if let failure = link.received(event: decoder.event(at: json)) { return fail(context, failure) }
        }
      }
    } catch {
      fail(context, error.description)
    }
  }

  func channelInactive(context: ChannelHandlerContext) {
    link.closed("the engine closed the connection", on: context.channel)
    context.fireChannelInactive()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    link.closed("the connection to the engine broke: \(error)", on: context.channel)
  }

  private func fail(_ context: ChannelHandlerContext, _ what: String) {
    link.failed(what, on: context.channel)
  }
}
