import HTTPLimits
import HTTPTypes
import NIOCore
import NIOEmbedded
import NIOHTTPTypes
import Testing

@Suite struct RequestDeadlineHandlerTests {
  private static let head = HTTPRequest(method: .post, scheme: "http", authority: "localhost", path: "/")

  private func channel() throws -> EmbeddedChannel {
    let channel = EmbeddedChannel(handler: RequestDeadlineHandler())
    try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
    return channel
  }

  @Test func `a body dripped byte by byte has 408 soon after 10 s, and the connection is closed`() throws {
    let channel = try channel()
    try channel.writeInbound(HTTPRequestPart.head(Self.head))
    for _ in 0..<9 {
      channel.embeddedEventLoop.advanceTime(by: .seconds(1))
      try channel.writeInbound(HTTPRequestPart.body(ByteBuffer(string: "x")))
    }
    #expect(channel.isActive)
    channel.embeddedEventLoop.advanceTime(by: .seconds(2))
    guard case .head(let head)? = try channel.readOutbound(as: HTTPResponsePart.self) else {
      Issue.record("no answer")
      return
    }
    #expect(head.status == .requestTimeout)
    #expect(!channel.isActive)
  }

  @Test func `a body that comes fast enough may take long`() throws {
    let channel = try channel()
    try channel.writeInbound(HTTPRequestPart.head(Self.head))
    for _ in 0..<60 {
      channel.embeddedEventLoop.advanceTime(by: .seconds(1))
      try channel.writeInbound(HTTPRequestPart.body(ByteBuffer(repeating: 0, count: 4_096)))
    }
    #expect(channel.isActive)
    _ = try channel.finish(acceptAlreadyClosed: true)
  }

  @Test func `no head within its time closes without an answer`() throws {
    let channel = try channel()
    channel.embeddedEventLoop.advanceTime(by: .seconds(31))
    #expect(try channel.readOutbound(as: HTTPResponsePart.self) == nil)
    #expect(!channel.isActive)
  }

  @Test func `a server that takes long over its answer is waited for, and then the next head is`() throws {
    let channel = try channel()
    try channel.writeInbound(HTTPRequestPart.head(Self.head))
    try channel.writeInbound(HTTPRequestPart.end(nil))
    channel.embeddedEventLoop.advanceTime(by: .seconds(600))
    #expect(channel.isActive)
    try channel.writeOutbound(HTTPResponsePart.head(HTTPResponse(status: .ok)))
    try channel.writeOutbound(HTTPResponsePart.end(nil))
    channel.embeddedEventLoop.advanceTime(by: .seconds(74))
    #expect(channel.isActive)
    channel.embeddedEventLoop.advanceTime(by: .seconds(2))
    #expect(!channel.isActive)
  }
}
