import CLinux
import Glibc
import Logging
import NATS
import NIOCore
import NIOPosix
import ServiceSupport
import WireProtocol

/// One router that is attached through NATS. What the engine writes to it goes into a socket, as it does for a router on
/// this machine; here that socket is read and published. While NATS takes nothing, nothing is read, and the router's
/// outbox leaves out what is old. Confined to the client's loop.
final class RouterAttachment {
  /// Bytes that may wait in the client before the socket is read on.
  private static let outboundByteCount = 256 * 1024
  /// Until it is looked again whether the client has room.
  private static let roomMilliseconds: Int64 = 2
  /// Bytes of commands that the engine has not read. Past it the router is let go.
  private static let commandByteCount = 4 << 20

  private let client: NATSClient
  private let subject: String
  private let router: String
  private let logger: Logger
  private var frames: ClusterAttachment
  private var channel: (any Channel)?
  private var heardAt = NIODeadline.now()
  private var isEnded = false
  /// Told once that the attachment is over.
  var onEnd: () -> Void = {}

  init(_ request: AttachmentRequest, engine: String, client: NATSClient, logger: Logger) {
    self.client = client
    self.logger = logger
    router = request.router
    subject = ClusterSubject.toRouter(request.router, from: engine)
    frames = ClusterAttachment(number: request.attachment)
  }

  /// Makes the socket.
  ///
  /// - Parameter admit: takes over the engine's end.
  func start(admit: (Int32) -> Void) throws {
    let ends = try Self.socketPair()
    let context = NIOLoopBound(self, eventLoop: client.eventLoop)
    ClientBootstrap(group: client.eventLoop)
      .channelOption(.autoRead, value: false)
      .channelOption(
        .recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: ClusterFrame.maximumByteCount)
      )
      .channelOption(
        .writeBufferWaterMark, value: .init(low: Self.commandByteCount / 2, high: Self.commandByteCount)
      )
      .channelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHandler(AttachmentReader(attachment: context.value))
        }
      }
      .withConnectedSocket(ends.bridge)
      .whenComplete { result in
        switch result {
        case .success(let channel): context.value.opened(channel)
        case .failure(let error): context.value.end("its socket: \(error)")
        }
      }
    admit(ends.engine)
  }

  private static func socketPair() throws(ErrorReport) -> (engine: Int32, bridge: Int32) {
    var ends: [Int32] = [-1, -1]
    guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0, &ends) == 0
    else {
      throw ErrorReport(.internal, "no socket for a router: \(errorText(errno))", stage: .send)
    }
    return (ends[0], ends[1])
  }

  private func opened(_ channel: any Channel) {
    guard !isEnded else { return channel.close(promise: nil) }
    self.channel = channel
    channel.read()
  }

  // MARK: From the router

  /// Takes one of its messages.
  func received(_ payload: ByteBuffer) {
    guard let frame = ClusterFrame(header: payload.readableBytesView) else {
      return end("it sent what is no frame")
    }
    switch frames.take(frame) {
    case .foreign: return
    case .gap: return end("messages of it were lost")
    case .inOrder: break
    }
    heardAt = .now()
    switch frame.kind {
    case .idle: break
    case .close: end(nil)
    case .data:
      guard let channel, channel.isWritable else { return end("the engine does not read its commands") }
      var bytes = payload
      bytes.moveReaderIndex(forwardBy: ClusterFrame.headerByteCount)
      channel.writeAndFlush(bytes, promise: nil)
    }
  }

  // MARK: To the router

  /// Publishes what the engine has written.
  fileprivate func publish(_ bytes: ByteBuffer) {
    guard !isEnded else { return }
    guard send(.data, bytes) else { return end("NATS took no message for it") }
  }

  private func send(_ kind: ClusterFrame.Kind, _ bytes: ByteBuffer = ByteBuffer()) -> Bool {
    client.publish(frames.next(kind), bytes, to: subject)
  }

  /// Reads on once the client has room.
  fileprivate func readOn() {
    guard let channel, !isEnded else { return }
    guard client.outboundByteCount >= Self.outboundByteCount else { return channel.read() }
    client.eventLoop.assumeIsolated().scheduleTask(in: .milliseconds(Self.roomMilliseconds)) { [weak self] in
      self?.readOn()
    }
  }

  /// Once a second: shows that we are there, and ends where the router is not.
  func runHousekeeping() {
    guard .now() - heardAt < .milliseconds(ClusterTiming.attachmentLeaseMilliseconds) else {
      return end("nothing came of it for \(ClusterTiming.attachmentLeaseMilliseconds / 1_000) s")
    }
    if !send(.idle) { end("NATS took no message for it") }
  }

  /// - Parameter reason: nil where the router has asked for it, or has gone on to another attachment.
  func end(_ reason: String?) {
    guard !isEnded else { return }
    isEnded = true
    if let reason { logger.warning("the router \(router) is let go: \(reason)") }
    _ = send(.close)
    channel?.close(promise: nil)
    onEnd()
  }
}

/// Gives the attachment what the engine has written, as much at a time as it asks for.
private final class AttachmentReader: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer

  private let attachment: RouterAttachment

  init(attachment: RouterAttachment) { self.attachment = attachment }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    attachment.publish(unwrapInboundIn(data))
  }

  func channelReadComplete(context: ChannelHandlerContext) { attachment.readOn() }

  func channelInactive(context: ChannelHandlerContext) {
    attachment.end("the engine closed its connection")
    context.fireChannelInactive()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    attachment.end("its socket: \(error)")
  }
}
