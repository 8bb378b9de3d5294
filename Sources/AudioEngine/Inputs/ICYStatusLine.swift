import NIOCore

/// Reads `ICY 200 OK`, with which old SHOUTcast servers answer, as the status line of HTTP that it stands for.
final class ICYStatusLineHandler: ChannelInboundHandler, RemovableChannelHandler {
  typealias InboundIn = ByteBuffer
  typealias InboundOut = ByteBuffer

  private static let status: [UInt8] = Array("ICY ".utf8)
  private var beginning: ByteBuffer?

  /// Puts one before all handlers of a connection.
  static func add(to channel: any Channel) -> EventLoopFuture<Void> {
    channel.eventLoop.makeCompletedFuture {
      try channel.pipeline.syncOperations.addHandler(ICYStatusLineHandler(), position: .first)
    }
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    var bytes = unwrapInboundIn(data)
    if var beginning {
      beginning.writeBuffer(&bytes)
      bytes = beginning
      self.beginning = nil
    }
    let first = Array(bytes.readableBytesView.prefix(Self.status.count))
    guard first.count == Self.status.count || !Self.status.starts(with: first) else {
      beginning = bytes
      return
    }
    if first == Self.status {
      bytes.moveReaderIndex(forwardBy: Self.status.count)
      var line = context.channel.allocator.buffer(string: "HTTP/1.0 ")
      line.writeBuffer(&bytes)
      bytes = line
    }
    context.fireChannelRead(wrapInboundOut(bytes))
    // Only a connection's first answer: a station's has no end.
    context.pipeline.syncOperations.removeHandler(self, promise: nil)
  }

  func channelInactive(context: ChannelHandlerContext) {
    if let beginning { context.fireChannelRead(wrapInboundOut(beginning)) }
    beginning = nil
    context.fireChannelInactive()
  }
}
