import HTTPLimits
import NIOCore
import NIOEmbedded
import NIOHTTP1
import Testing

@Suite struct RequestShapeHandlerTests {
  private static let marks = String(repeating: "\u{301}", count: 40)

  private func channel(_ handlers: any ChannelHandler...) throws -> EmbeddedChannel {
    let channel = EmbeddedChannel(handlers: handlers)
    try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
    return channel
  }

  private func status(_ channel: EmbeddedChannel) throws -> HTTPResponseStatus? {
    guard case .head(let head)? = try channel.readOutbound(as: HTTPServerResponsePart.self) else {
      return nil
    }
    return head.status
  }

  private func head(_ target: String = "/", _ headers: HTTPHeaders = [:]) -> HTTPServerRequestPart {
    .head(HTTPRequestHead(version: .http1_1, method: .GET, uri: target, headers: headers))
  }

  @Test(
    arguments: [
      ("/" + String(repeating: "x", count: 12_288), [:], HTTPResponseStatus.uriTooLong),
      ("/" + String(repeating: "%CC%81", count: 40), [:], .badRequest), ("/\(marks)", [:], .badRequest),
      ("/", ["Connection": marks], .badRequest),
    ] as [(String, HTTPHeaders, HTTPResponseStatus)])
  func `a head that is not as it may be is refused, and nothing behind it is taken`(
    _ target: String, _ headers: HTTPHeaders, _ expected: HTTPResponseStatus
  ) throws {
    let channel = try channel(RequestShapeHandler())
    try channel.writeInbound(head(target, headers))
    try channel.writeInbound(HTTPServerRequestPart.end(nil))
    try channel.writeInbound(head())
    #expect(try channel.readInbound(as: HTTPServerRequestPart.self) == nil)
    #expect(try status(channel) == expected)
    channel.embeddedEventLoop.advanceTime(by: .seconds(1))
    #expect(!channel.isActive)
  }

  @Test func `an ordinary head is taken`() throws {
    let channel = try channel(RequestShapeHandler())
    let head = head("/listen/a.ogg?q=caf%C3%A9", ["Cookie": String(repeating: "ä", count: 4_000)])
    try channel.writeInbound(head)
    #expect(try channel.readInbound(as: HTTPServerRequestPart.self) == head)
    _ = try channel.finish()
  }

  @Test(arguments: [
    "x: " + String(repeating: "y", count: 16_500),
    (0..<5).map { "x\($0): " + String(repeating: "y", count: 8_000) }.joined(separator: "\r\n"),
    (0..<101).map { "x\($0): y" }.joined(separator: "\r\n"),
  ])
  func `a head that is too long has 431, before it is whole`(_ fields: String) throws {
    let decoder = HTTPRequestDecoder(
      leftOverBytesStrategy: .forwardBytes, limitConfiguration: RequestShape().decoderLimits)
    let channel = try channel(ByteToMessageHandler(decoder), RequestShapeHandler())
    try channel.writeInbound(ByteBuffer(string: "GET / HTTP/1.1\r\n\(fields)"))
    #expect(try status(channel) == .requestHeaderFieldsTooLarge)
    // The decoder complains of this.
    try channel.writeInbound(ByteBuffer(string: fields))
    channel.embeddedEventLoop.advanceTime(by: .seconds(1))
    #expect(!channel.isActive)
  }

  @Test func `what comes of a body at once is handed on as one part`() throws {
    let handler = RequestShapeHandler()
    let channel = try channel(handler)
    try channel.writeInbound(head("/", ["Transfer-Encoding": "chunked"]))
    #expect(handler.isReceivingBody)
    for text in ["a", "b", "c"] {
      channel.pipeline.fireChannelRead(HTTPServerRequestPart.body(ByteBuffer(string: text)))
    }
    channel.pipeline.fireChannelReadComplete()
    try channel.writeInbound(HTTPServerRequestPart.body(ByteBuffer(string: "d")))
    try channel.writeInbound(HTTPServerRequestPart.end(nil))
    #expect(!handler.isReceivingBody)
    var bodies: [String] = []
    while let part = try channel.readInbound(as: HTTPServerRequestPart.self) {
      if case .body(let body) = part { bodies.append(String(buffer: body)) }
    }
    #expect(bodies == ["abc", "d"])
    _ = try channel.finish()
  }

  @Test(arguments: [(1, 1_200, false), (300, 5_000, true)])
  func `a body may come in many chunks, and not in many that are tiny`(
    _ byteCount: Int, _ count: Int, _ isTaken: Bool
  ) throws {
    let channel = try channel(RequestShapeHandler())
    try channel.writeInbound(head("/", ["Transfer-Encoding": "chunked"]))
    for _ in 0..<count {
      channel.pipeline.fireChannelRead(
        HTTPServerRequestPart.body(ByteBuffer(repeating: 0x20, count: byteCount)))
    }
    #expect(try status(channel) == (isTaken ? nil : .badRequest))
    _ = try channel.finish(acceptAlreadyClosed: true)
  }
}
