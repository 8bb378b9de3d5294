import HTTPTypes
import Hummingbird
import NIOCore
import OggOpus
import ServiceLifecycle
import WireProtocol

/// `GET /listen/ID.ogg` for players, and what `GET /ws` answers where no WebSocket comes of it.
struct ListenRoutes {
  let plane: DataPlaneHandle

  func add(to router: Hummingbird.Router<RouterRequestContext>) {
    router.get("listen/:file") { request, context in
      let listen = try await check(request, context)
      // Players that show what a station plays ask for it (SHOUTcast).
      let wantsTitles = request.headers[.icyMetadata] == "1"
      var headers = Self.headers
      if wantsTitles {
        headers[.icyMetadataInterval] = String(ICYMetadataWriter.interval)
        headers[.icyName] = listen.sessionID.description
      }
      return Response(
        status: .ok, headers: headers,
        body: .init { [channel = context.channel] writer in
          try await stream(
            listen, titles: wantsTitles ? ICYMetadataWriter() : nil, channel: channel, to: &writer)
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
    _ request: ListenRequest, titles: ICYMetadataWriter?, channel: any Channel,
    to writer: inout any ResponseBodyWriter
  ) async throws {
    var titles = titles
    let opened = try await open(request, channel: channel)
    // Whatever ends this, the session is rid of the listener.
    defer { plane.eventLoop.execute { plane.onLoop.remove(opened.listener.value) } }
    var muxer = try OggOpusMuxer(serial: .random(in: .min ... .max))
    try await write(muxer.headers(title: opened.title), &titles, request.sessionID, to: &writer)
    while let packets = try await nextPage(of: opened.listener) {
      try await write(muxer.page(packets), &titles, request.sessionID, to: &writer)
    }
    try await write(muxer.end(), &titles, request.sessionID, to: &writer)
    try await writer.finish(nil)
  }

  /// - Parameter titles: nil for a player that has not asked for them.
  private func write(
    _ bytes: ByteBuffer, _ titles: inout ICYMetadataWriter?, _ id: SessionID,
    to writer: inout any ResponseBodyWriter
  ) async throws {
    guard titles != nil else { return try await writer.write(bytes) }
    let title = try await plane { plane in plane.store.sessions[id]?.streamTitle }
    try await writer.write(titles!.write(bytes, title: title))
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

extension HTTPField.Name {
  fileprivate static let icyMetadata = HTTPField.Name("Icy-MetaData")!
  fileprivate static let icyMetadataInterval = HTTPField.Name("icy-metaint")!
  fileprivate static let icyName = HTTPField.Name("icy-name")!
}
