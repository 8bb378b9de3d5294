import WireProtocol

/// The Router's engines, and which of them plays what. With the Unix socket there is one. Confined to the data plane's
/// loop.
final class Fleet {
  private(set) var engines: [EngineNumber: RoutedEngine] = [:]

  /// Takes in an engine.
  func add(_ engine: RoutedEngine) { engines[engine.number] = engine }

  var isAnyEstablished: Bool { engines.values.contains(where: \.isEstablished) }

  /// Commands that no engine has answered yet.
  var pendingCount: Int { engines.values.reduce(0) { $0 + $1.pending.count } }

  /// As clients see it: one engine that can be reached is enough.
  var status: EngineStatus {
    let statuses = engines.sorted { $0.key.value < $1.key.value }.map(\.value.link.status)
    return statuses.first(where: \.connected) ?? statuses.first ?? .away("no engine is known yet")
  }

  /// The engine that plays a session.
  ///
  /// - Throws: `engineUnavailable` where it cannot be reached.
  func engine(of session: RoutedSession) throws(RequestError) -> RoutedEngine {
    try engines[session.engine] ?? anyEngine()
  }

  /// An engine for what concerns no session.
  ///
  /// - Throws: `engineUnavailable` where there is none.
  func anyEngine() throws(RequestError) -> RoutedEngine {
    let established = engines.values.first(where: \.isEstablished)
    // Its link says why it cannot be reached.
    guard let engine = established ?? engines.values.first else {
      throw RequestError(
        .engineUnavailable, status.message ?? "no engine is connected",
        hint: "the Router keeps trying; GET /ready says when it is back")
    }
    return engine
  }
}
