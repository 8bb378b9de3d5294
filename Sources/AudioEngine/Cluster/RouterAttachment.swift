import CLinux
import Glibc
import Logging
import NATS
import NIOCore
import NIOPosix
import ServiceSupport
import WireProtocol

/// One router that is attached through NATS. The engine writes to a socket, as it does for a router on this machine; this
/// object reads the other end and publishes it. While the NATS client is full it does not read, and the router's outbox drops
/// the oldest audio. Confined to the client's loop.
final class RouterAttachment {
  /// Bytes that may wait in the client before reading pauses.
  private static let outboundByteCount = 256 * 1024
  /// Interval at which a full client is checked for room.
  private static let backpressurePollMilliseconds: Int64 = 2
  /// Bytes of commands that the engine has not read. Above it the router is detached.
  private static let commandByteCount = 4 << 20

  private let client: NATSClient
  private let subject: String
  private let router: String
  private let logger: Logger
  private var frames: ClusterAttachment
  private var channel: (any Channel)?
  private var heardAt = NIODeadline.now()
  private var isEnded = false
  /// Called once, when the attachment ends.
  var onEnd: () -> Void = {}

  init(_ request: AttachmentRequest, engine: String, client: NATSClient, logger: Logger) {
    self.client = client
    self.logger = logger
    router = request.router
    subject = ClusterSubject.toRouter(request.router, from: engine)
    frames = ClusterAttachment(number: request.attachment)
  }

  /// Creates the socket pair.
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
        case .failure(let error): context.value.end("socket error: \(error)")
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

  /// Takes a message of the router.
  func received(_ payload: ByteBuffer) {
    guard let frame = ClusterFrame(header: payload.readableBytesView) else {
      return end("malformed frame")
    }
    switch frames.take(frame) {
    case .foreign: return
    case .gap: return end("messages from it were lost")
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
    guard send(.data, bytes) else { return end("the NATS client did not accept a message for it") }
  }

  private func send(_ kind: ClusterFrame.Kind, _ bytes: ByteBuffer = ByteBuffer()) -> Bool {
    client.publish(frames.next(kind), bytes, to: subject)
  }

  /// Continues to read once the client has room.
  fileprivate func resumeReading() {
    guard let channel, !isEnded else { return }
    guard client.outboundByteCount >= Self.outboundByteCount else { return channel.read() }
    client.eventLoop.assumeIsolated().scheduleTask(in: .milliseconds(Self.backpressurePollMilliseconds)) {
      [weak self] in
      self?.resumeReading()
    }
  }

  /// Called once a second: sends a keep-alive, and ends the attachment where the router sends none.
  func runHousekeeping() {
    guard .now() - heardAt < .milliseconds(ClusterTiming.attachmentLeaseMilliseconds) else {
      return end("no message from it for \(ClusterTiming.attachmentLeaseMilliseconds / 1_000) s")
    }
    if !send(.idle) { end("the NATS client did not accept a message for it") }
  }

  /// - Parameter reason: nil where the router has ended the attachment or replaced it.
  func end(_ reason: String?) {
    guard !isEnded else { return }
    isEnded = true
    if let reason { logger.warning("detaching router \(router): \(reason)") }
    _ = send(.close)
    channel?.close(promise: nil)
    onEnd()
  }
}

/// Passes the engine's bytes to the attachment, one read at a time.
private final class AttachmentReader: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer

  private let attachment: RouterAttachment

  init(attachment: RouterAttachment) { self.attachment = attachment }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    attachment.publish(unwrapInboundIn(data))
  }

  func channelReadComplete(context: ChannelHandlerContext) { attachment.resumeReading() }

  func channelInactive(context: ChannelHandlerContext) {
    attachment.end("the engine closed its connection")
    context.fireChannelInactive()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    attachment.end("socket error: \(error)")
  }
}
