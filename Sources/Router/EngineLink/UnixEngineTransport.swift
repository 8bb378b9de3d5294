import NIOCore
import NIOPosix
import ServiceSupport

/// Connects to the engine on this machine over its Unix socket. Confined to the loop.
final class UnixEngineTransport: EngineTransport {
  private let path: String
  private let socketBufferByteCount: Int
  private let eventLoop: any EventLoop

  init(path: String, socketBufferByteCount: Int, eventLoop: any EventLoop) {
    self.path = path
    self.socketBufferByteCount = socketBufferByteCount
    self.eventLoop = eventLoop
  }

  var place: String { "the engine at \(path)" }

  func connect(_ link: EngineLink) {
    let link = NIOLoopBound(link, eventLoop: eventLoop)
    ClientBootstrap(group: eventLoop)
      .channelOption(
        .writeBufferWaterMark,
        value: .init(
          low: RouterLimits.engineOutboundByteCount / 2, high: RouterLimits.engineOutboundByteCount)
      )
      .channelOption(.socketOption(.so_sndbuf), value: SocketOptionValue(socketBufferByteCount))
      .channelOption(.socketOption(.so_rcvbuf), value: SocketOptionValue(socketBufferByteCount))
      .channelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          let connection = UnixEngineConnection(channel: channel)
          try channel.pipeline.syncOperations.addHandler(
            EngineLinkHandler(link: link.value, connection: connection))
        }
      }
      .connect(unixDomainSocketPath: path)
      .assumeIsolated()
      .whenFailure { [place] error in
        link.value.failedToConnect("cannot reach \(place): \(Self.describe(error))")
      }
  }

  private static func describe(_ error: any Error) -> String {
    guard let error = error as? IOError else { return "\(error)" }
    return errorText(error.errnoCode)
  }
}

private final class UnixEngineConnection: EngineConnection {
  private let channel: any Channel

  init(channel: any Channel) { self.channel = channel }

  var isWritable: Bool { channel.isWritable }

  func write(_ bytes: ByteBuffer) { channel.writeAndFlush(bytes, promise: nil) }
  func close() { channel.close(promise: nil) }
}

/// Gives the stream what the socket brings.
private final class EngineLinkHandler: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer

  private let link: EngineLink
  private let connection: UnixEngineConnection
  private let stream: EngineStream

  init(link: EngineLink, connection: UnixEngineConnection) {
    self.link = link
    self.connection = connection
    stream = EngineStream(link: link)
  }

  func channelActive(context: ChannelHandlerContext) {
    link.opened(connection)
    context.fireChannelActive()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    if let failure = stream.take(unwrapInboundIn(data)) { link.failed(failure, on: connection) }
  }

  func channelInactive(context: ChannelHandlerContext) {
    link.closed("the engine closed the connection", on: connection)
    context.fireChannelInactive()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    link.closed("the connection to the engine broke: \(error)", on: connection)
  }
}
