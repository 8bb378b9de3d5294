import Hummingbird
import WireProtocol

/// REST under `/api/v1`: the commands of the WebSocket, each a path (`docs/http-and-websocket.md`).
struct SessionRoutes {
  let plane: DataPlaneHandle

  /// The commands that are `POST /api/v1/sessions/ID/COMMAND`.
  private static let commands = [
    "play", "prepare", "unprepare", "pause", "resume", "stop", "seek", "volume", "skip", "skip_to",
    "previous",
    "quality",
  ]

  func add(to router: Hummingbird.Router<RouterRequestContext>) {
    let sessions = router.group("api/v1/sessions")
    sessions.get { _, context in try await list(for: context.grant) }
    sessions.get(":id") { _, context in try await show(context) }
    for command in Self.commands {
      sessions.post("\(":id")/\(command)") { request, context in
        try await ask(body(request), type: command, context)
      }
    }
    sessions.get(":id/why") { _, context in
      try await answer(ClientCommand(.engine(.session(sessionID(context), .why))))
    }
    sessions.post(":id/queue") { request, context in
      try await ask(body(request), type: "queue_add", context)
    }
    for change in ["shuffle", "loop"] {
      sessions.post("\(":id")/queue/\(change)") { request, context in
        try await ask(body(request), type: "queue_\(change)", context)
      }
    }
    sessions.get(":id/queue") { request, context in
      let query = request.uri.queryParameters
      return try await ask(.show(offset: query.get("offset"), limit: query.get("limit")), context)
    }
    sessions.get(":id/history") { request, context in
      try await ask(.history(limit: request.uri.queryParameters.get("limit")), context)
    }
    sessions.delete(":id/queue") { _, context in try await ask(.clear, context) }
    sessions.delete(":id/queue/:entry") { _, context in
      try await ask(.remove(id: context.parameters.require("entry")), context)
    }
    sessions.post(":id/queue/:entry/move") { request, context in
      let entry = try context.parameters.require("entry")
      return try await answer(
        ClientCommand.decode(body(request), type: "queue_move", sessionID: sessionID(context), entryID: entry)
      )
    }
    router.get("api/v1/media") { request, _ in
      let path = request.uri.queryParameters.get("path") ?? ""
      return try await answer(ClientCommand(.engine(.media(path: path))))
    }
    router.get("api/v1/resolve") { request, _ in
      return try await answer(ClientCommand(.engine(.resolve(ResolveRequest(httpQuery: request.uri.query)))))
    }
  }

  private func sessionID(_ context: RouterRequestContext) throws -> SessionID {
    try SessionID(context.parameters.require("id"))
  }

  private func body(_ request: Request) async throws -> [UInt8] {
    let bytes = try await request.body.collect(upTo: RouterLimits.maximumTextByteCount)
    // A command without fields may come without a body.
    return bytes.readableBytes == 0 ? Array("{}".utf8) : Array(bytes.readableBytesView)
  }

  private func ask(_ json: [UInt8], type: String, _ context: RouterRequestContext) async throws -> Response {
    try await answer(ClientCommand.decode(json, type: type, sessionID: sessionID(context)))
  }

  private func ask(
    _ change: QueueCommand, _ context: RouterRequestContext
  ) async throws -> Response {
    try await answer(ClientCommand(.queue(sessionID(context), change)))
  }

  private func answer(_ command: ClientCommand) async throws -> Response {
    switch try await plane.ask(command) {
    case .queue(_, let view): .json(JSON.encode(view))
    case .history(_, let view): .json(JSON.encode(view))
    case .event(let event):
      switch event.body {
      case .media(let listing): .json(JSON.encode(listing))
      case .resolved(let resolution): .json(JSON.encode(resolution))
      default: .json(event.encoded())
      }
    // Not reachable: no path is a ping.
    case .pong: Response(status: .noContent)
    }
  }

  private func list(for grant: Grant) async throws -> Response {
    let sessions = try await plane { plane in
      let own = plane.store.sessions.values.filter { grant.matches($0.id) }
      return own.map(SessionDetail.init).map(\.withoutChapters).sorted {
        $0.session.sessionID.description < $1.session.sessionID.description
      }
    }
    return .json(JSON.encode(["sessions": sessions]))
  }

  private func show(_ context: RouterRequestContext) async throws -> Response {
    let id = try sessionID(context)
    let detail = try await plane { plane in
      // Asking about a session does not make one.
      SessionDetail(plane.store.sessions[id] ?? RoutedSession(id: id))
    }
    return .json(JSON.encode(detail))
  }
}

/// A session object with its queue and the number of its listeners.
private struct SessionDetail: Encodable, Sendable {
  var session: SessionSnapshot
  var queue: QueueView
  var listeners: Int

  init(_ session: RoutedSession) {
    self.session = session.snapshot
    queue = session.queue.view()
    listeners = session.listenerCount
  }

  /// For a list of many.
  var withoutChapters: SessionDetail {
    var detail = self
    detail.session.chapters = nil
    return detail
  }

  private enum Key: String, CodingKey {
    case queue, listeners
  }

  func encode(to encoder: any Encoder) throws {
    try session.encode(to: encoder)
    var fields = encoder.container(keyedBy: Key.self)
    try fields.encode(queue, forKey: .queue)
    try fields.encode(listeners, forKey: .listeners)
  }
}
