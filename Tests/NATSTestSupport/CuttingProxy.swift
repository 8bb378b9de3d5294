import NIOCore
import NIOPosix
import Synchronization

/// Stands between a client and its NATS server, and cuts their connection at a given publication: what a process's death or
/// a broken cable does, at a place that the test chooses. The client may connect again.
package final class CuttingProxy: Sendable {
  package enum Cut: Sendable {
    /// The server does not get the publication.
    case before(publication: Int)
    /// The server gets it, and the client no answer.
    case behind(publication: Int)
  }

  private let serverPort: Int
  private let cut = Mutex<(Cut?, count: Int)>((nil, 0))
  private let listener = Mutex<(any Channel)?>(nil)

  package var url: String { "nats://127.0.0.1:\(listener.withLock { $0?.localAddress?.port } ?? 0)" }

  package init(to server: NATSServerProcess) async throws {
    serverPort = server.port
    let loop = MultiThreadedEventLoopGroup.singleton.next()
    let channel = try await ServerBootstrap(group: loop)
      // Nothing is read before there is somebody to give it to.
      .childChannelOption(.autoRead, value: false)
      .childChannelInitializer { [self] client in
        ClientBootstrap(group: client.eventLoop)
          .channelInitializer { server in
            server.eventLoop.makeCompletedFuture {
              try server.pipeline.syncOperations.addHandler(Answers(to: client))
            }
          }
          .connect(host: "127.0.0.1", port: serverPort)
          .flatMapThrowing { [self] server in
            try client.pipeline.syncOperations.addHandler(Publications(to: server, through: self))
          }
          .flatMap { client.setOption(.autoRead, value: true) }
      }
      .bind(host: "127.0.0.1", port: 0).get()
    listener.withLock { $0 = channel }
  }

  /// Cuts the connection at a publication from now on, once; the first has the number 0.
  package func arm(_ cut: Cut?) { self.cut.withLock { $0 = (cut, 0) } }

  package func end() { listener.withLock { $0?.close(promise: nil) } }

  /// - Returns: whether the server gets the next publication, and whether the connection stays.
  fileprivate func passes() -> (passes: Bool, stays: Bool) {
    cut.withLock { state in
      let number = state.count
      state.count += 1
      switch state.0 {
      case .before(number):
        state.0 = nil
        return (false, false)
      case .behind(number):
        state.0 = nil
        return (true, false)
      default: return (true, true)
      }
    }
  }
}

/// From the server to the client.
private final class Answers: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  private let client: any Channel

  init(to client: any Channel) { self.client = client }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    client.writeAndFlush(unwrapInboundIn(data), promise: nil)
  }

  func channelInactive(context: ChannelHandlerContext) { client.close(promise: nil) }
}

/// From the client to the server, frame by frame.
private final class Publications: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  private let server: any Channel
  private let proxy: CuttingProxy
  private var buffer = ByteBuffer()
  private var isCut = false

  init(to server: any Channel, through proxy: CuttingProxy) {
    self.server = server
    self.proxy = proxy
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    var bytes = unwrapInboundIn(data)
    buffer.writeBuffer(&bytes)
    while !isCut, let end = buffer.readableBytesView.firstIndex(of: UInt8(ascii: "\n")) {
      let lineByteCount = end + 1 - buffer.readerIndex
      let line = buffer.getString(at: buffer.readerIndex, length: lineByteCount - 2) ?? ""
      let words = line.split(separator: " ")
      let isPublication = words.first == "PUB" || words.first == "HPUB"
      let payloadByteCount = isPublication ? (words.last.flatMap { Int($0) } ?? 0) + 2 : 0
      guard buffer.readableBytes >= lineByteCount + payloadByteCount else { return }
      guard let frame = buffer.readSlice(length: lineByteCount + payloadByteCount) else { return }
      let (passes, stays) = isPublication ? proxy.passes() : (true, true)
      isCut = !stays
      if isCut { context.close(promise: nil) }
      guard passes else { return server.close(promise: nil) }
      let written = server.writeAndFlush(frame)
      if isCut { written.whenComplete { [server] _ in server.close(promise: nil) } }
    }
  }

  func channelInactive(context: ChannelHandlerContext) {
    if !isCut { server.close(promise: nil) }
  }
}
