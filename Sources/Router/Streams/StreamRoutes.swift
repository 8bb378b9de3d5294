import HTTPTypes
import Hummingbird
import NIOCore
import WireProtocol

/// `GET /stream/ID`, a repository's pieces as server-sent events, and `POST /stream/ID/test`, which has something
/// happen in it.
struct StreamRoutes {
  let streams: StreamHubHandle
  let receiver: WebhookReceiver
  /// What test deliveries are signed with: nobody else can.
  private let secret = WebhookSecret()

  init(streams: StreamHubHandle, receiver: WebhookReceiver) {
    self.streams = streams
    self.receiver = receiver
  }

  func add(to router: Hummingbird.Router<RouterRequestContext>) {
    router.get("stream/:id") { request, context in
      let stream = try await check(request, context)
      return Response(
        status: .ok, headers: Self.headers,
        body: .init { [channel = context.channel] writer in
          try await serve(stream, channel: channel, to: &writer)
        })
    }
    router.head("stream/:id") { request, context in
      _ = try await check(request, context)
      return Response(status: .ok, headers: Self.headers)
    }
    router.post("stream/:id/test") { request, context in try await test(request, context) }
  }

  private static let headers: HTTPFields = [
    .contentType: "text/event-stream",
    // What stands between must not compress, and so not wait for more.
    .cacheControl: "no-cache, no-transform",
    // nginx's, where it would wait until a buffer is full.
    HTTPField.Name("X-Accel-Buffering")!: "no",
  ]

  private func check(_ request: Request, _ context: RouterRequestContext) async throws -> StreamRequest {
    let stream = try StreamRequest(request, id: context.part("id"), grant: context.grant)
    try await streams { hub in try hub.checkRoom(for: stream) }
    return stream
  }

  /// Hands the connection to the hub, which writes below the encoders, until the stream is over.
  private func serve(
    _ request: StreamRequest, channel: any Channel, to writer: inout any ResponseBodyWriter
  ) async throws {
    let client = try await streams { hub in
      NIOLoopBound(try hub.add(request, channel: channel), eventLoop: hub.eventLoop)
    }
    channel.triggerUserOutboundEvent(ConnectionListens(), promise: nil)
    // Whatever ends this, the hub is rid of the client.
    defer { streams.eventLoop.execute { streams.onLoop.remove(client.value) } }
    try await streams.eventLoop.flatSubmit { client.value.finished.futureResult }.get()
    try await writer.finish(nil)
    channel.close(promise: nil)
  }

  // MARK: Test

  private func test(_ request: Request, _ context: RouterRequestContext) async throws -> Response {
    let id = try SessionID(context.part("id"))
    let body = try await request.body.collect(upTo: RouterLimits.maximumTextByteCount)
    let test: TestDelivery
    do {
      test = try JSON.decode(TestDelivery.self, fromOutside: Array(body.readableBytesView))
    } catch {
      throw ErrorReport(decoding: error)
    }
    let payload = test.payload(for: id, named: receiver.name(id))
    let delivery = GitHubDelivery(
      id: "test-\(KeyFile.randomHex(byteCount: 16))", event: test.event.rawValue,
      signature: secret.signature(of: payload))
    try receiver.limiter.takeTest(of: context.grant)
    _ = try await receiver.receive(delivery, body: payload, secret: secret, testOf: context.grant)
    return .json(JSON.encode(["delivery": delivery.id]), status: .accepted)
  }
}
