import NIOCore
import NIOPosix
import WireProtocol

/// An engine as the Router sees one: a Unix socket that speaks the wire protocol, byte for byte.
final class FakeEngine: Sendable {
  /// What routers have sent, in order.
  let commands: AsyncStream<EngineCommand>
  private let server: any Channel
  private let connections: NIOLoopBoundBox<[any Channel]>

  /// - Parameter hello: the first bytes on every connection.
  init(path: String, hello: [UInt8]) async throws {
    let loop = MultiThreadedEventLoopGroup.singleton.next()
    let (commands, continuation) = AsyncStream.makeStream(of: EngineCommand.self)
    let connections = NIOLoopBoundBox<[any Channel]>.makeBoxSendingValue([], eventLoop: loop)
    server = try await ServerBootstrap(group: loop)
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHandler(CommandHandler(continuation))
          connections.value.append(channel)
          channel.writeAndFlush(ByteBuffer(bytes: hello), promise: nil)
        }
      }
      .bind(unixDomainSocketPath: path, cleanupExistingSocketFile: true).get()
    self.commands = commands
    self.connections = connections
  }

  static func hello(
    startedAt: Int = 1, sessions: [SessionSnapshot] = [], capabilities: [String]? = nil
  ) -> [UInt8] {
    let limits = Hello.Limits(maximumWorkers: 1, maximumSessions: 1, readAheadMilliseconds: 1)
    let hello = Hello(
      startedAtMilliseconds: startedAt, nowNanoseconds: 1, limits: limits, sessions: sessions,
      capabilities: capabilities)
    return EngineEvent(.hello(hello)).encodedLine()
  }

  func send(_ bytes: [UInt8]) async throws {
    try await server.eventLoop.submit { [connections] in
      for channel in connections.value { channel.writeAndFlush(ByteBuffer(bytes: bytes), promise: nil) }
    }.get()
  }

  func send(_ body: EngineEvent.Body, to session: String, requestID: String? = nil) async throws {
    try await send(
      EngineEvent(body, sessionID: try SessionID(session), requestID: requestID).encodedLine())
  }

  /// One packet with these bytes as its audio.
  func sendPacket(_ audio: [UInt8], to session: String) async throws {
    try await send(AudioPacketHeader.message(sessionID: try SessionID(session), audio: audio))
  }

  /// Answers a burst, in one piece with the packets.
  func sendBurst(
    _ packets: [[UInt8]], of session: String, position: Int, due: UInt64, requestID: String?
  ) async throws {
    let id = try SessionID(session)
    let anchor = EngineEvent.Anchor(positionMilliseconds: position, dueNanoseconds: due)
    let event = EngineEvent(.burst(anchor, count: packets.count), sessionID: id, requestID: requestID)
    try await send(
      event.encodedLine() + packets.flatMap { AudioPacketHeader.message(sessionID: id, audio: $0) })
  }

  /// The session begins to sound, as after a play.
  func startPlaying(
    _ session: String, url: String = "media:a", position: Int = 0, tag: String? = nil
  ) async throws {
    let ready = Ready(
      url: url, title: "A", durationMilliseconds: 60_000, codec: "flac", passthrough: false, timings: .init())
    let anchor = EngineEvent.Anchor(positionMilliseconds: position, dueNanoseconds: 1_000)
    try await send(.extracting(url: url, tag: tag), to: session)
    try await send(.ready(ready), to: session)
    try await send(.playing(anchor), to: session)
  }

  /// As kill -9: the connections break and nobody listens.
  func die() async throws {
    // Dead already where a test has killed it.
    try? await server.close()
    try await server.eventLoop.submit { [connections] in
      for channel in connections.value { channel.close(promise: nil) }
    }.get()
  }

  private final class CommandHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    private let continuation: AsyncStream<EngineCommand>.Continuation
    private var lines = LineDecoder()

    init(_ continuation: AsyncStream<EngineCommand>.Continuation) {
      self.continuation = continuation
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      lines.append(unwrapInboundIn(data).readableBytesView) { line in
        if case .whole(let json) = line, let command = try? EngineCommand.decode(json) {
          continuation.yield(command)
        }
      }
    }
  }
}
