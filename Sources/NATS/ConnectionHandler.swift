import NIOCore

/// Reads a server's bytes on the loop.
final class ConnectionHandler: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer

  private var parser: NATSParser
  private let connection: Connection

  init(connection: Connection) {
    self.connection = connection
    parser = NATSParser(limits: connection.configuration.limits)
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    parser.append(unwrapInboundIn(data))
    do {
      while let event = try parser.next() { try connection.received(event, on: context.channel) }
    } catch let error as NATSProtocolError {
      connection.lost(error.description, channel: context.channel)
    } catch {
      connection.lost("\(error)", channel: context.channel)
    }
  }

  func channelInactive(context: ChannelHandlerContext) {
    connection.lost("the server closed the connection", channel: context.channel)
    context.fireChannelInactive()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    connection.lost("the connection broke: \(error)", channel: context.channel)
  }
}
