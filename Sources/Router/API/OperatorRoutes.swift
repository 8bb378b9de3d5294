import HTTPTypes
import Hummingbird
import ServiceSupport
import WireProtocol

/// `GET /health`, `/ready` and `/metrics`, for those who run the Router.
struct OperatorRoutes {
  let plane: DataPlaneHandle
  let streams: StreamHubHandle
  let parts: RepositoryServices
  let access: AccessControl
  private let startedNanoseconds = MonotonicClock.nowNanoseconds

  init(plane: DataPlaneHandle, streams: StreamHubHandle, parts: RepositoryServices, access: AccessControl) {
    self.plane = plane
    self.streams = streams
    self.parts = parts
    self.access = access
  }

  func add(to router: Hummingbird.Router<RouterRequestContext>) {
    router.get("health") { request, _ in try await health(isAdmin: isAdmin(request)) }
    router.get("health/repo/:id") { request, context in
      let id = try SessionID(context.part("id"))
      let clients = try await streams { hub in
        hub.clients.values.filter { $0.request.repositoryID == id }.map(StreamClientView.init)
      }
      return Response.json(
        JSON.encode(StreamHealth(repository: id, clients: clients, isAdmin: isAdmin(request))))
    }
    router.get("ready") { _, _ -> Response in
      let problem = await parts.keeper.problem
      let report = try await plane { plane in plane.readiness(eventsProblem: problem) }
      return .json(JSON.encode(report), status: report.ready ? .ok : .serviceUnavailable)
    }
    router.get("metrics") { _, _ in try await metrics() }
  }

  private var uptimeSeconds: Int {
    Int((MonotonicClock.nowNanoseconds - startedNanoseconds) / 1_000_000_000)
  }

  /// Anyone who comes may look, and needs to show nothing.
  private func isAdmin(_ request: Request) -> Bool {
    let credentials = AccessControl.Credentials(authorization: request.headers[.authorization])
    guard let grant = try? access.grant(for: credentials) else { return false }
    return (try? grant.require(.admin)) != nil
  }

  private func health(isAdmin: Bool) async throws -> Response {
    let streaming = try await streams { hub in StreamHealth(hub, isAdmin: isAdmin) }
    return .json(
      JSON.encode(
        try await plane { [uptimeSeconds] plane in
          HealthReport(plane: plane, uptimeSeconds: uptimeSeconds, streaming: streaming)
        }))
  }

  private func metrics() async throws -> Response {
    var text = try await plane { [uptimeSeconds] plane in
      RouterMetrics.text(plane, uptimeSeconds: uptimeSeconds)
    }
    let (clients, waiting) = try await streams { hub in (hub.clients.count, hub.budget.heldByteCount) }
    parts.statistics.write(
      to: &text, lostEvents: parts.bus.lostEvents, clients: clients, waitingByteCount: waiting)
    // Reads files, which the loop has no time for.
    text.process()
    return Response(
      status: .ok, headers: [.contentType: "text/plain; version=0.0.4; charset=utf-8"],
      body: .init(byteBuffer: ByteBuffer(string: text.text)))
  }
}

extension DataPlane {
  /// Without an engine there is nothing to hear; anyone who listens already is kept.
  ///
  /// - Parameter eventsProblem: why repositories' events cannot be kept.
  fileprivate func readiness(eventsProblem: String? = nil) -> ReadinessReport {
    var reasons = isDraining ? [ClosingMessage.reason] : []
    reasons += [homes?.problem, eventsProblem].compactMap(\.self)
    let engines = fleet.status
    if !engines.connected { reasons.append(engines.message ?? "no engine is connected") }
    return ReadinessReport(reasons: reasons, warnings: [state.problem].compactMap(\.self))
  }
}

/// The body of `/health`.
private struct HealthReport: Encodable, Sendable {
  /// While the Router can answer at all.
  let status = "ok"
  var ready: Bool
  var reasons: [String]
  let version = WireLimits.softwareVersion
  var uptimeSeconds: Int
  var engine: EngineStatus
  /// Sessions that play or are about to.
  var sessions: Int
  var listeners: Int
  private var streaming: StreamHealth

  private enum Key: String, CodingKey {
    case status, ready, reasons, version, engine, sessions, listeners, memoryUsage, uptime
    case uptimeSeconds = "uptime_s"
  }

  func encode(to encoder: any Encoder) throws {
    var fields = encoder.container(keyedBy: Key.self)
    try fields.encode(status, forKey: .status)
    try fields.encode(ready, forKey: .ready)
    try fields.encode(reasons, forKey: .reasons)
    try fields.encode(version, forKey: .version)
    try fields.encode(engine, forKey: .engine)
    try fields.encode(sessions, forKey: .sessions)
    try fields.encode(listeners, forKey: .listeners)
    try fields.encode(uptimeSeconds, forKey: .uptimeSeconds)
    // The names of the original plan (docs/decisions/0030).
    try fields.encode(uptimeSeconds, forKey: .uptime)
    try fields.encode(ProcFile.residentByteCount, forKey: .memoryUsage)
    try streaming.encode(to: encoder)
  }

  init(plane: DataPlane, uptimeSeconds: Int, streaming: StreamHealth) {
    self.streaming = streaming
    let readiness = plane.readiness()
    ready = readiness.ready
    reasons = readiness.reasons
    engine = plane.fleet.status
    self.uptimeSeconds = uptimeSeconds
    sessions = plane.store.sessions.values.count { $0.state != .idle }
    listeners = plane.store.listenerCount
  }
}
