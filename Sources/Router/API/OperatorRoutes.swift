import HTTPTypes
import Hummingbird
import WireProtocol

/// `GET /health`, `/ready` and `/metrics`, for those who run the Router.
struct OperatorRoutes {
  let plane: DataPlaneHandle
  private let startedNanoseconds = MonotonicClock.nowNanoseconds

  init(plane: DataPlaneHandle) {
    self.plane = plane
  }

  func add(to router: Hummingbird.Router<RouterRequestContext>) {
    router.get("health") { _, _ in try await health() }
    router.get("ready") { _, _ -> Response in
      let report = try await plane { plane in plane.readiness }
      return .json(JSON.encode(report), status: report.ready ? .ok : .serviceUnavailable)
    }
    router.get("metrics") { _, _ in try await metrics() }
  }

  private var uptimeSeconds: Int {
    Int((MonotonicClock.nowNanoseconds - startedNanoseconds) / 1_000_000_000)
  }

  private func health() async throws -> Response {
    .json(
      JSON.encode(
        try await plane { [uptimeSeconds] plane in
          HealthReport(plane: plane, uptimeSeconds: uptimeSeconds)
        }))
  }

  private func metrics() async throws -> Response {
    var text = try await plane { [uptimeSeconds] plane in
      RouterMetrics.text(plane, uptimeSeconds: uptimeSeconds)
    }
    // Reads files, which the loop has no time for.
    text.process()
    return Response(
      status: .ok, headers: [.contentType: "text/plain; version=0.0.4; charset=utf-8"],
      body: .init(byteBuffer: ByteBuffer(string: text.text)))
  }
}

extension DataPlane {
  /// Without an engine there is nothing to hear; whoever listens already is kept.
  fileprivate var readiness: ReadinessReport {
    var reasons = isDraining ? [ClosingMessage.reason] : []
    if !link.status.connected { reasons.append(link.status.message ?? "no engine is connected") }
    return ReadinessReport(reasons: reasons, warnings: state.problem.map { [$0] } ?? [])
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

  enum CodingKeys: String, CodingKey {
    case status, ready, reasons, version, engine, sessions, listeners
    case uptimeSeconds = "uptime_s"
  }

  init(plane: DataPlane, uptimeSeconds: Int) {
    let readiness = plane.readiness
    ready = readiness.ready
    reasons = readiness.reasons
    engine = plane.link.status
    self.uptimeSeconds = uptimeSeconds
    sessions = plane.store.sessions.values.count { $0.state != .idle }
    listeners = plane.store.listenerCount
  }
}
