import Foundation
import Testing
import WireProtocol

/// What the engine's events do to a session, by the vectors that page and clients run too: the engine says them on
/// the wire, and REST shows what the Router makes of them.
@Suite struct `A session's state` {
  @Test(arguments: try Vectors.names())
  func `follows the engine as every client does`(_ name: String) async throws {
    try await RunningRouter.run { router in
      var link = EngineSide(
        router: router, engine: try await FakeEngine(path: router.enginePath, hello: FakeEngine.hello()))
      try await router.waitForEngine(connected: true)
      var expected: [String: Any] = [:]
      let steps = try Vectors.steps(of: name)
      for (number, step) in steps.enumerated() {
        try await link.perform(
          step, isSounding: expected["sounding"] as? Bool ?? false, then: steps[(number + 1)...].first)
        expected.merge(step["state"] as? Vectors.Object ?? [:]) { _, new in new }
        // The Router adopts what the engine has said of itself in one turn.
        if let next = steps[(number + 1)...].first, next.isReturn(after: step) { continue }
        let seen = try await link.seen()
        let wanted = try Vectors.text(
          expected.filter { ["state", "buffering", "volume", "position_ms", "track"].contains($0.key) })
        let told = try Vectors.text(step)
        #expect(seen == wanted, "step \(number): \(told)")
      }
    }
  }
}

/// The engine that a Router hears, and the session as the Router shows it.
private struct EngineSide {
  let router: RunningRouter
  var engine: FakeEngine
  private var isThere = true
  private var markCount = 0

  init(router: RunningRouter, engine: FakeEngine) {
    self.router = router
    self.engine = engine
  }

  /// Passes the step's time in packets, and says its message.
  mutating func perform(_ step: Vectors.Object, isSounding: Bool, then next: Vectors.Object?) async throws {
    let isDropped = step.type == "dropped"
    if isThere, isSounding, !isDropped, let milliseconds = step["after_ms"] as? Int {
      for _ in 0..<milliseconds / WireLimits.packetDurationMilliseconds {
        try await engine.sendPacket([0xFC, 1], to: "s")
      }
    }
    guard var message = step.message else { return }
    switch step.type {
    // What the Router says itself, and what engines of another version may say.
    case "session", "queue", "history", "music", "pong", "closing", "from_the_future": return
    case "engine":
      isThere = step.isConnected
      guard isThere else {
        try await engine.die()
        return try await router.waitForEngine(connected: false)
      }
      let session = next.flatMap { $0.isReturn(after: step) ? $0.message?["session"] : nil }
      let sessions = try session.map { try Vectors.decode(SessionSnapshot.self, $0) }
      engine = try await FakeEngine(
        path: router.enginePath, hello: FakeEngine.hello(startedAt: 2, sessions: sessions.map { [$0] } ?? []))
      try await router.waitForEngine(connected: true)
    default:
      message["session_id"] = "s"
      try await engine.send(EngineEvent.decode(Vectors.data(message)).encodedLine())
    }
  }

  /// The session's state once the Router has heard all that was said.
  mutating func seen() async throws -> String {
    if isThere {
      markCount += 1
      let url = "media:mark-\(markCount)"
      try await engine.send(.extracting(url: url), to: "mark")
      while try await router.request("GET", "/api/v1/sessions/mark").body.contains(url) == false {
        try await Task.sleep(for: .milliseconds(2))
      }
    }
    let body = try await router.request("GET", "/api/v1/sessions/s").body
    let session = try Vectors.object(Data(body.utf8))
    let details = [
      "url", "title", "artist", "album", "artwork", "live", "station", "genre", "chapters", "duration_ms",
      "codec", "passthrough",
    ]
    let track = session.filter { name, value in
      details.contains(name) && value as? Bool != false && (value as? [Any])?.isEmpty != true
    }
    return try Vectors.text([
      "state": session["state"] ?? "", "buffering": session["buffering"] ?? false,
      "volume": session["volume"] ?? 0,
      "position_ms": session["position_ms"] ?? 0, "track": track.isEmpty ? NSNull() : track as Any,
    ])
  }
}

/// `Tests/Vectors/session-state.json`.
private enum Vectors {
  typealias Object = [String: Any]

  static func names() throws -> [String] { try all().compactMap { $0["name"] as? String } }

  static func steps(of name: String) throws -> [Object] {
    try #require(all().first { $0["name"] as? String == name }?["steps"] as? [Object])
  }

  static func object(_ data: Data) throws -> Object {
    try #require(JSONSerialization.jsonObject(with: data) as? Object)
  }

  static func data(_ value: Any) throws -> Data {
    try JSONSerialization.data(withJSONObject: value, options: [.sortedKeys, .withoutEscapingSlashes])
  }

  /// Equal for equal values.
  static func text(_ value: Any) throws -> String { try String(decoding: data(value), as: UTF8.self) }

  static func decode<Value: Decodable>(_ type: Value.Type, _ value: Any) throws -> Value {
    try JSONDecoder().decode(type, from: data(value))
  }

  private static func all() throws -> [Object] {
    let file = URL(filePath: #filePath).deletingLastPathComponent()
      .appending(path: "../Vectors/session-state.json").standardized
    return try #require(object(Data(contentsOf: file))["vectors"] as? [Object])
  }
}

extension [String: Any] {
  fileprivate var message: [String: Any]? { self["message"] as? [String: Any] }
  fileprivate var type: String? { message?["type"] as? String }
  fileprivate var isConnected: Bool { (message?["engine"] as? [String: Any])?["connected"] as? Bool == true }

  /// Whether this step says what the engine, which has come back in the step before, still plays.
  fileprivate func isReturn(after step: [String: Any]) -> Bool {
    type == "session" && step.type == "engine" && step.isConnected
  }
}
