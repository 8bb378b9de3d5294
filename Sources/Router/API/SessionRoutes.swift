import HTTPTypes
import Hummingbird
import HummingbirdCore
import WireProtocol

/// REST under `/api/v1`: the commands of the WebSocket, each a path (`docs/http-and-websocket.md`).
struct SessionRoutes {
  let plane: DataPlaneHandle
  /// Before what takes the loop's time.
  let longAnswers: FairGate
  /// The answers of the other Routers to the same request; none where there are no others.
  let others: @Sendable (Request, RouterRequestContext) async -> [[UInt8]]

  /// A command as REST has it, `METHOD /api/v1/sessions/ID/PATH`. Its fields are in the body; of a GET in the
  /// query, and of an entry's in the path.
  private struct CommandRoute {
    var method: HTTPRequest.Method
    var path: RouterPath
    /// As on a WebSocket.
    var type: String

    init(_ method: HTTPRequest.Method, _ path: String, _ type: String? = nil) {
      self.method = method
      self.path = RouterPath(":id/" + path)
      self.type = type ?? path
    }
  }

  private static let commands = [
    CommandRoute(.post, "play"), CommandRoute(.post, "prepare"), CommandRoute(.post, "unprepare"),
    CommandRoute(.post, "pause"), CommandRoute(.post, "resume"), CommandRoute(.post, "stop"),
    CommandRoute(.post, "seek"), CommandRoute(.post, "volume"), CommandRoute(.post, "quality"),
    CommandRoute(.post, "perform"), CommandRoute(.post, "mute"),
    CommandRoute(.post, "skip"), CommandRoute(.post, "skip_to"), CommandRoute(.post, "previous"),
    CommandRoute(.get, "why"), CommandRoute(.get, "history"), CommandRoute(.get, "queue"),
    CommandRoute(.post, "queue", "queue_add"), CommandRoute(.delete, "queue", "queue_clear"),
    CommandRoute(.post, "queue/shuffle", "queue_shuffle"), CommandRoute(.post, "queue/loop", "queue_loop"),
    CommandRoute(.delete, "queue/:entry", "queue_remove"),
    CommandRoute(.post, "queue/:entry/move", "queue_move"),
  ]

  func add(to router: Hummingbird.Router<RouterRequestContext>) {
    let sessions = router.group("api/v1/sessions")
    sessions.get { request, context in try await list(request, context) }
    sessions.get(":id") { _, context in try await show(context) }
    for command in Self.commands {
      sessions.on(command.path, method: command.method) { request, context in
        try await perform(command.type, request, context)
      }
    }
    router.get("api/v1/media") { request, context in
      let path = request.uri.queryParameters.get("path") ?? ""
      return try await answer(ClientCommand(.engine(.media(path: path))), context)
    }
    router.get("api/v1/resolve") { request, context in
      return try await answer(
        ClientCommand(.engine(.resolve(ResolveRequest(httpQuery: request.uri.query)))), context)
    }
  }

  private func sessionID(_ context: RouterRequestContext) throws -> SessionID {
    try SessionID(context.part("id"))
  }

  private func perform(
    _ type: String, _ request: Request, _ context: RouterRequestContext
  ) async throws -> Response {
    let command: ClientCommand
    do {
      command = try await read(type, request, context)
    } catch {
      try await plane { plane in plane.statistics.count(.failure(error)) }
      throw error
    }
    return try await answer(command, context)
  }

  private func read(
    _ type: String, _ request: Request, _ context: RouterRequestContext
  ) async throws -> ClientCommand {
    var command = try await ClientCommand.decode(
      fields(of: request), type: type, sessionID: sessionID(context),
      entryID: context.parameters.get("entry").map(PercentEncoding.decoded))
    command.idempotencyKey = try IdempotencyKey(request.headers) ?? command.idempotencyKey
    return command
  }

  /// The command's fields as one JSON object.
  private func fields(of request: Request) async throws -> [UInt8] {
    guard request.method == .post else { return try JSON.encode(numbers(in: request.uri)) }
    let bytes = try await request.body.collect(upTo: RouterLimits.maximumTextByteCount)
    // A command without fields may come without a body.
    return bytes.readableBytes == 0 ? Array("{}".utf8) : Array(bytes.readableBytesView)
  }

  private func numbers(in uri: URI) throws(RequestError) -> [String: Int] {
    var numbers: [String: Int] = [:]
    for name in ["offset", "limit"] {
      guard let text = uri.queryParameters.get(name) else { continue }
      guard let number = Int(text) else {
        throw RequestError(.invalidCommand, "\(name) is \(text.quoted), not a whole number")
      }
      numbers[name] = number
    }
    return numbers
  }

  private func answer(_ command: ClientCommand, _ context: RouterRequestContext) async throws -> Response {
    switch try await plane.ask(command, for: context.grant) {
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

  private func list(_ request: Request, _ context: RouterRequestContext) async throws -> Response {
    let grant = context.grant
    let own = try await longAnswers.pass(grant.client) {
      try await plane { plane in
        plane.budgets.spend(
          plane.store.sessions.count / RouterLimits.listedSessionsPerToken, grant.client)
        return plane.store.sessions.values.filter { grant.matches($0.id) }.map(SessionDetail.init(listed:))
      }
    }
    let elsewhere = await others(request, context)
      .flatMap { (try? JSON.decode(SessionList.self, from: $0))?.sessions ?? [] }
    // What moves while it is asked for is at two Routers, or at none.
    var known = Set(own.map(\.session.sessionID))
    let all =
      own
      + elsewhere.filter {
        grant.matches($0.session.sessionID) && known.insert($0.session.sessionID).inserted
      }
    let sorted = all.sorted { $0.session.sessionID.description < $1.session.sessionID.description }
    return .json(JSON.encode(SessionList(sessions: sorted)))
  }

  private func show(_ context: RouterRequestContext) async throws -> Response {
    let id = try sessionID(context)
    let client = context.grant.client
    let detail = try await plane.eventLoop.flatSubmit { [plane] in
      let promise = plane.eventLoop.makePromise(of: SessionDetail.self)
      // Asking about a session does not make one.
      let session = plane.onLoop.store.sessions[id] ?? RoutedSession(id: id)
      plane.onLoop.withQueue(of: session, for: client) { requestError in
        if let requestError { promise.fail(requestError) } else { promise.succeed(SessionDetail(session)) }
      }
      return promise.futureResult
    }.get()
    return .json(JSON.encode(detail))
  }
}

private struct SessionList: Codable {
  var sessions: [SessionDetail]
}

/// A session object with its queue and the number of its listeners.
private struct SessionDetail: Codable, Sendable {
  var session: SessionSnapshot
  var queue: QueueView
  var listeners: Int

  init(_ session: RoutedSession, tracks: QueuePage = QueuePage()) {
    self.session = session.snapshot
    queue = session.playback.queueView(tracks)
    listeners = session.listenerCount
  }

  /// One of many, without what is long.
  init(listed session: RoutedSession) {
    self.init(session, tracks: QueuePage(limit: 0))
    self.session.chapters = nil
  }

  private enum Key: String, CodingKey {
    case queue, listeners
  }

  init(from decoder: any Decoder) throws {
    session = try SessionSnapshot(from: decoder)
    let fields = try decoder.container(keyedBy: Key.self)
    queue = try fields.decode(QueueView.self, forKey: .queue)
    listeners = try fields.decode(Int.self, forKey: .listeners)
  }

  func encode(to encoder: any Encoder) throws {
    try session.encode(to: encoder)
    var fields = encoder.container(keyedBy: Key.self)
    try fields.encode(queue, forKey: .queue)
    try fields.encode(listeners, forKey: .listeners)
  }
}
