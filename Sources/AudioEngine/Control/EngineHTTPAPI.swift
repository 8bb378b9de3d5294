import Hummingbird
import ServiceSupport
import WireProtocol

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The engine's HTTP API, for operators and other programs (`docs/http-and-websocket.md`, "AudioEngine").
struct EngineHTTPAPI: Sendable {
  private static let maximumBodyByteCount = WireLimits.maximumCommandByteCount

  let handler: CommandHandler
  let renders: RenderService
  let pacer: Pacer
  let metrics: EngineMetrics
  let requestErrors: RequestErrorLog
  let requestGuard: RequestGuard

  func routes() -> Hummingbird.Router<BasicRequestContext> {
    let router = Hummingbird.Router()
    router.add(middleware: EngineEndpointMiddleware(requestGuard: requestGuard))
    for name in ["play", "prepare", "unprepare", "pause", "resume", "stop", "seek", "volume"] {
      router.post("session/:id/\(name)") { request, context in
        try await command(name, request, id: sessionID(context))
      }
    }
    router.get("session/:id") { _, context in
      let id = try sessionID(context)
      let status = await handler.answer(to: .session(id, .status))
      let why = await handler.answer(to: .session(id, .why))
      guard case .status(let session) = status.body, case .why(let diagnosis) = why.body else {
        return try Self.response(status)
      }
      return try Self.json(SessionReport(session: session, why: diagnosis))
    }
    router.get("sessions") { _, _ in try Self.json(["sessions": await pacer.sessions()]) }
    router.get("media") { request, _ in
      let path = request.uri.queryParameters["path"].map(String.init) ?? ""
      return try Self.response(await handler.answer(to: .media(path: path)))
    }
    router.get("artwork") { request, _ in
      let url = request.uri.queryParameters["url"].map(String.init) ?? ""
      return Self.response(try await handler.picture(of: url), to: request)
    }
    router.get("resolve") { request, _ in
      return try Self.response(
        await handler.answer(to: .resolve(ResolveRequest(httpQuery: request.uri.query))))
    }
    router.post("render") { request, _ in try await render(request) }
    router.get("health") { _, _ in try Self.json(await metrics.health()) }
    router.get("ready") { _, _ in
      let report = await metrics.readiness.report()
      return try Self.json(report, status: report.ready ? .ok : .serviceUnavailable)
    }
    router.get("metrics") { _, _ in
      Response(
        status: .ok, headers: [.contentType: "text/plain; version=0.0.4"],
        body: .init(byteBuffer: ByteBuffer(string: await metrics.text())))
    }
    return router
  }

  /// The engine is about to stop: says so at `/ready` and, once its sessions have been moved, to routers, and then refuses
  /// what still waits.
  func drain(_ moveSessions: () async -> Void) async {
    metrics.readiness.stop()
    await moveSessions()
    pacer.post(.announce(EngineEvent(.error(EngineReadiness.stopping))))
    try? await Task.sleep(for: .milliseconds(StopSignals.drainMilliseconds))
    handler.refuseWaiting(EngineReadiness.stopping)
  }

  private func command(_ name: String, _ request: Request, id: SessionID) async throws -> Response {
    let body = try await Self.body(of: request)
    let json = body.readableBytes == 0 ? Array("{}".utf8) : Array(body.readableBytesView)
    let command: EngineCommand
    do {
      command = try EngineCommand.decode(json, type: name, sessionID: id)
    } catch {
      requestErrors.note(error.report, sessionID: id)
      throw error.report
    }
    return try Self.response(await handler.answer(to: command.action))
  }

  static func body(of request: Request) async throws -> ByteBuffer {
    do {
      return try await request.body.collect(upTo: maximumBodyByteCount)
    } catch {
      throw ErrorReport(
        .lineTooLong, "the body is longer than \(maximumBodyByteCount) bytes", hint: "send it in less",
        stage: .command)
    }
  }

  private func sessionID(_ context: BasicRequestContext) throws -> SessionID {
    try SessionID(context.parameters.require("id"))
  }

  /// An answering event as a response: an error with its status, anything else as it is.
  private static func response(_ event: EngineEvent) throws -> Response {
    if case .error(let report) = event.body { throw report }
    return Response(
      status: .ok, headers: [.contentType: "application/json"],
      body: .init(byteBuffer: ByteBuffer(bytes: event.encoded())))
  }

  private static func response(_ picture: Picture, to request: Request) -> Response {
    var headers = HTTPFields()
    let kind = picture.kind.rawValue
    for (name, value) in ArtworkEndpoint.headers(contentType: kind, entityTag: picture.entityTag) {
      headers[.init(name)!] = value
    }
    guard request.headers[.ifNoneMatch] != picture.entityTag else {
      return Response(status: .notModified, headers: headers)
    }
    return Response(
      status: .ok, headers: headers, body: .init(byteBuffer: ByteBuffer(bytes: picture.bytes)))
  }

  private static func json(_ value: some Encodable, status: HTTPResponse.Status = .ok) throws -> Response {
    Response(
      status: status, headers: [.contentType: "application/json"],
      body: .init(byteBuffer: ByteBuffer(bytes: try JSONEncoder().encode(value))))
  }
}

/// A session object with its diagnosis.
private struct SessionReport: Encodable {
  let session: SessionSnapshot
  let why: Diagnosis

  private enum Key: String, CodingKey {
    case why
  }

  func encode(to encoder: any Encoder) throws {
    try session.encode(to: encoder)
    var fields = encoder.container(keyedBy: Key.self)
    try fields.encode(why, forKey: .why)
  }
}
