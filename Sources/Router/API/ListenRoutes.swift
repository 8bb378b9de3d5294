import HTTPTypes
import Hummingbird
import NIOCore
import OggOpus
import ServiceLifecycle

/// `GET /listen/ID.ogg` for players, and what `GET /ws` answers where no WebSocket comes of it.
struct ListenRoutes {
  let plane: DataPlaneHandle

  func add(to router: Hummingbird.Router<RouterRequestContext>) {
    router.get("listen/:file") { request, context in
      let listen = try await check(request, context)
      return Response(
        status: .ok, headers: Self.headers,
        body: .init { [channel = context.channel] writer in
          try await stream(listen, channel: channel, to: &writer)
        })
    }
    router.head("listen/:file") { request, context in
      _ = try await check(request, context)
      return Response(status: .ok, headers: Self.headers)
    }
    router.get("ws") { request, context -> Response in
      let listen = try ListenRequest(
        webSocket: request.uri.string,
        subprotocols: request.headers[values: .secWebSocketProtocol], grant: context.grant)
      try await plane { plane in try plane.checkRoom(for: listen) }
      throw RequestError(
        .invalidCommand, "/ws is a WebSocket, and the request is not a valid upgrade to version 13",
        hint: "connect with a WebSocket client", status: 426)
    }
  }

  private static let headers: HTTPFields = [.contentType: "audio/ogg", .cacheControl: "no-store"]

  private func check(_ request: Request, _ context: RouterRequestContext) async throws -> ListenRequest {
    let listen = try ListenRequest(
      file: context.part("file"), target: request.uri.string, grant: context.grant)
    try await plane { plane in try plane.checkRoom(for: listen) }
    return listen
  }

  /// Writes pages until the client goes or the Router stops. Pages are made here, off the loop.
  private func stream(
    _ request: ListenRequest, channel: any Channel, to writer: inout any ResponseBodyWriter
  ) async throws {
    let opened = try await open(request, channel: channel)
    // Whatever ends this, the session is rid of the listener.
    defer { plane.eventLoop.execute { plane.onLoop.remove(opened.listener.value) } }
    var muxer = try OggOpusMuxer(serial: .random(in: .min ... .max))
    try await writer.write(muxer.headers(title: opened.title))
    while let packets = try await nextPage(of: opened.listener) {
      try await writer.write(muxer.page(packets))
    }
    try await writer.write(muxer.end())
    try await writer.finish(nil)
  }

  private func open(
    _ request: ListenRequest, channel: any Channel
  ) async throws -> (listener: NIOLoopBound<OggListener>, title: String?) {
    try await plane { plane in
      let listener = OggListener(
        sessionID: request.sessionID, grant: request.grant, eventLoop: plane.eventLoop,
        statistics: plane.statistics)
      let title = try plane.add(
        listener, bufferMilliseconds: request.bufferMilliseconds, channel: channel)
      channel.triggerUserOutboundEvent(ConnectionListens(), promise: nil)
      return (NIOLoopBound(listener, eventLoop: plane.eventLoop), title)
    }
  }

  private func nextPage(of listener: NIOLoopBound<OggListener>) async throws -> [ByteBuffer]? {
    try await plane.eventLoop.flatSubmit { listener.value.nextPage() }.get()
  }
}
