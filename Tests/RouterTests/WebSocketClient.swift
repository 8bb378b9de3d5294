import NIOCore
import NIOPosix

/// A WebSocket client that shares no code with the Router: it writes the bytes of RFC 6455 and reads them.
final class WebSocketClient: Sendable {
  enum Received: Sendable, Equatable {
    /// The answer to the upgrade: status and everything after it.
    case http(Int, String)
    case text(String)
    case binary([UInt8])
    case ping
    case pong([UInt8])
    case close(Int, String)
    case ended
  }

  struct Unexpected: Error, CustomStringConvertible {
    var description: String
  }

  private let channel: any Channel
  private let mailbox: Mailbox<Received>

  /// Connects and asks for the upgrade; what is answered is the first thing received.
  init(port: Int, target: String, headers: [String] = []) async throws {
    let mailbox = Mailbox<Received>()
    self.mailbox = mailbox
    channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .channelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHandler(FrameReader(mailbox))
        }
      }
      .connect(host: "127.0.0.1", port: port).get()
    let lines =
      [
        "GET \(target) HTTP/1.1", "Host: 127.0.0.1:\(port)", "Connection: Upgrade", "Upgrade: websocket",
        "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
      ] + headers
    try await channel.writeAndFlush(ByteBuffer(string: lines.joined(separator: "\r\n") + "\r\n\r\n"))
  }

  /// Connects and waits for the Router's first message.
  static func join(
    port: Int, session: String, subprotocol: String? = nil, bufferMilliseconds: Int = 500,
    packetsPerMessage: Int = 1
  ) async throws -> WebSocketClient {
    let client = try await WebSocketClient(
      port: port,
      target: "/ws?session=\(session)&buffer_ms=\(bufferMilliseconds)&frames=\(packetsPerMessage)",
      headers: subprotocol.map { ["Sec-WebSocket-Protocol: \($0)"] } ?? [])
    guard case .http(101, let head) = try await client.next(),
      subprotocol.map({ head.contains("Sec-WebSocket-Protocol: \($0)") }) ?? true
    else { throw Unexpected(description: "no upgrade") }
    _ = try await client.nextText(containing: #""type":"session""#)
    return client
  }

  /// The next thing received.
  func next() async throws -> Received {
    await mailbox.next() ?? .ended
  }

  /// The next text with this in it; what comes before is passed over.
  func nextText(containing part: String) async throws -> String {
    while true {
      switch try await next() {
      case .text(let text) where text.contains(part): return text
      case .close(let code, let reason): throw Unexpected(description: "closed: \(code) \(reason)")
      case .ended: throw Unexpected(description: "ended while waiting for \(part)")
      default: continue
      }
    }
  }

  /// The next audio; texts are passed over.
  func nextAudio() async throws -> [UInt8] {
    while true {
      switch try await next() {
      case .binary(let bytes): return bytes
      case .close(let code, let reason): throw Unexpected(description: "closed: \(code) \(reason)")
      case .ended: throw Unexpected(description: "ended while waiting for audio")
      default: continue
      }
    }
  }

  /// The close the Router says; what comes before is passed over.
  func nextClose() async throws -> (code: Int, reason: String) {
    while true {
      switch try await next() {
      case .close(let code, let reason): return (code, reason)
      case .ended: throw Unexpected(description: "ended without a close")
      default: continue
      }
    }
  }

  func send(_ text: String) async throws {
    try await sendFrame(opcode: 1, Array(text.utf8))
  }

  /// Sends messages so that the Router reads many of them together.
  func send(together texts: [String]) async throws {
    var frames = ByteBuffer()
    for text in texts { frames.writeImmutableBuffer(Self.frame(opcode: 1, Array(text.utf8))) }
    try await channel.writeAndFlush(frames)
  }

  func sendFrame(opcode: UInt8, _ payload: [UInt8], isFinal: Bool = true) async throws {
    try await channel.writeAndFlush(Self.frame(opcode: opcode, payload, isFinal: isFinal))
  }

  private static func frame(opcode: UInt8, _ payload: [UInt8], isFinal: Bool = true) -> ByteBuffer {
    var frame = ByteBuffer(bytes: [(isFinal ? 0x80 : 0) | opcode])
    switch payload.count {
    case ...125: frame.writeInteger(0x80 | UInt8(payload.count))
    case ...65_535: frame.writeMultipleIntegers(0x80 | UInt8(126), UInt16(payload.count))
    default: frame.writeMultipleIntegers(0x80 | UInt8(127), UInt64(payload.count))
    }
    let mask: [UInt8] = [1, 2, 3, 4]
    frame.writeBytes(mask)
    frame.writeBytes(payload.enumerated().map { $1 ^ mask[$0 % 4] })
    return frame
  }

  /// Pings that the Router reads together.
  func sendPings(_ payloads: Range<UInt8>) async throws {
    // Masked with zeros.
    let bytes = payloads.flatMap { [0x89, 0x81, 0, 0, 0, 0, $0] as [UInt8] }
    try await channel.writeAndFlush(ByteBuffer(bytes: bytes))
  }

  /// Whether anything is read from the socket.
  func setReading(_ isReading: Bool) async throws {
    try await channel.setOption(.autoRead, value: isReading).get()
  }

  func disconnect() async throws {
    try await channel.close()
  }

  private final class FrameReader: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    private let mailbox: Mailbox<Received>
    private var bytes = ByteBuffer()
    private var isUpgraded = false

    init(_ mailbox: Mailbox<Received>) {
      self.mailbox = mailbox
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      bytes.writeImmutableBuffer(unwrapInboundIn(data))
      if !isUpgraded { readHead() }
      if isUpgraded { while readFrame() {} }
    }

    func channelInactive(context: ChannelHandlerContext) {
      mailbox.end()
    }

    private func readHead() {
      let text = String(buffer: bytes)
      guard let end = text.firstRange(of: "\r\n\r\n") else { return }
      let status = Int(text.split(separator: " ")[1]) ?? 0
      let head = text[..<end.lowerBound]
      if status == 101 {
        isUpgraded = true
        bytes.moveReaderIndex(forwardBy: head.utf8.count + 4)
        mailbox.put(.http(status, String(head)))
      } else {
        mailbox.put(.http(status, text))
      }
    }

    private func readFrame() -> Bool {
      var rest = bytes
      guard let first = rest.readInteger(as: UInt8.self), let second = rest.readInteger(as: UInt8.self) else {
        return false
      }
      var length = Int(second)
      if length == 126 { length = rest.readInteger(as: UInt16.self).map(Int.init) ?? .max }
      if length == 127 { length = rest.readInteger(as: UInt64.self).map(Int.init) ?? .max }
      guard length <= rest.readableBytes, let payload = rest.readBytes(length: length) else { return false }
      bytes = rest
      switch first & 0x0F {
      case 1: mailbox.put(.text(String(decoding: payload, as: UTF8.self)))
      case 2: mailbox.put(.binary(payload))
      case 8:
        let code = payload.prefix(2).reduce(0) { $0 << 8 | Int($1) }
        mailbox.put(.close(code, String(decoding: payload.dropFirst(2), as: UTF8.self)))
      case 9: mailbox.put(.ping)
      case 10: mailbox.put(.pong(payload))
      default: break
      }
      return true
    }
  }
}
