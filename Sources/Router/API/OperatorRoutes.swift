import HTTPTypes
import Hummingbird
import WireProtocol

/// `GET /health` and `GET /metrics`, for those who run the Router.
struct OperatorRoutes {
  let plane: DataPlaneHandle
  private let startedNanoseconds = MonotonicClock.nowNanoseconds

  init(plane: DataPlaneHandle) {
    self.plane = plane
  }

  func add(to router: Hummingbird.Router<RouterRequestContext>) {
    router.get("health") { _, _ in try await health() }
    router.get("metrics") { _, _ in try await metrics() }
  }

  private var uptimeSeconds: Int {
    Int((MonotonicClock.nowNanoseconds - startedNanoseconds) / 1_000_000_000)
  }

  private func health() async throws -> Response {
    let report = try await plane { [uptimeSeconds] plane in
      HealthReport(plane: plane, uptimeSeconds: uptimeSeconds)
    }
    return .json(JSON.encode(report), status: report.engine.connected ? .ok : .serviceUnavailable)
  }

  private func metrics() async throws -> Response {
    let text = try await plane { [uptimeSeconds] plane in
      RouterMetrics.text(plane, uptimeSeconds: uptimeSeconds)
    }
    return Response(
      status: .ok, headers: [.contentType: "text/plain; version=0.0.4; charset=utf-8"],
      body: .init(byteBuffer: ByteBuffer(string: text)))
  }
}

/// The body of `/health`.
private struct HealthReport: Encodable, Sendable {
  var status: String
  var reason: String?
  var version = WireLimits.softwareVersion
  var uptimeSeconds: Int
  var engine: EngineStatus
  /// Sessions that play or are about to.
  var sessions: Int
  var listeners: Int

  enum CodingKeys: String, CodingKey {
    case status, reason, version, engine, sessions, listeners
    case uptimeSeconds = "uptime_s"
  }

  init(plane: DataPlane, uptimeSeconds: Int) {
    engine = plane.link.status
    status = engine.connected ? "ok" : "unhealthy"
    reason = engine.message
    self.uptimeSeconds = uptimeSeconds
    sessions = plane.store.sessions.values.count { $0.state != .idle }
    listeners = plane.store.listenerCount
  }
}
