import WireProtocol

/// The Router's engines, and which of them plays what. With the Unix socket there is one. Confined to the data plane's
/// loop.
final class Fleet {
  private(set) var engines: [EngineNumber: RoutedEngine] = [:]
  /// Why there is no engine at all.
  var absence = "no engine is known yet"

  /// Takes in an engine.
  func add(_ engine: RoutedEngine) { engines[engine.number] = engine }

  /// Forgets one that is gone.
  func remove(_ engine: RoutedEngine) { engines[engine.number] = nil }

  var isAnyEstablished: Bool { engines.values.contains(where: \.isEstablished) }

  /// Commands that no engine has answered yet.
  var pendingCount: Int { engines.values.reduce(0) { $0 + $1.pending.count } }

  var establishedCount: Int { engines.values.count(where: \.isEstablished) }

  /// As clients see it: one engine that can be reached is enough.
  var status: EngineStatus {
    let statuses = engines.sorted { $0.key.value < $1.key.value }.map(\.value.link.status)
    return statuses.first(where: \.connected) ?? statuses.first ?? .away(absence)
  }

  // MARK: Which engine

  /// The engine that plays a session, or any where none does.
  ///
  /// - Throws: `engineUnavailable` where there is none, or it is not known yet which it is.
  func engine(of session: RoutedSession) throws(RequestError) -> RoutedEngine {
    if let engine = engines[session.engine] { return engine }
    guard session.isAtRest else {
      throw RequestError(
        .engineUnavailable, "it is not known yet which engine plays the session \(session.id)",
        hint: "try again in a moment")
    }
    return try anyEngine()
  }

  /// The engine that is to play something new in a session: the one that plays it, or else the least loaded.
  ///
  /// - Throws: `engineUnavailable` where there is none.
  func place(_ session: RoutedSession) throws(RequestError) -> RoutedEngine {
    if let engine = engines[session.engine], engine.isEstablished { return engine }
    guard let engine = engines.values.filter(\.isEstablished).min(by: { $0.isLessLoaded(than: $1) }) else {
      return try anyEngine()
    }
    assign(session, to: engine)
    return engine
  }

  /// The engine that is to play on for one that stops; nil where there is none.
  func successor(of engine: RoutedEngine) -> RoutedEngine? {
    engines.values.filter { $0 !== engine && $0.isEstablished && !$0.isStopping }
      .min { $0.isLessLoaded(than: $1) }
  }

  /// An engine for what concerns no session.
  ///
  /// - Throws: `engineUnavailable` where there is none.
  func anyEngine() throws(RequestError) -> RoutedEngine {
    let established = engines.values.first(where: \.isEstablished)
    // Its link says why it cannot be reached.
    guard let engine = established ?? engines.values.first else {
      throw RequestError(
        .engineUnavailable, absence, hint: "the Router keeps trying; GET /ready says when one is there")
    }
    return engine
  }

  // MARK: Who plays what

  /// Whether a session is that engine's, or is to be: nobody else plays it.
  func holds(_ engine: RoutedEngine, _ session: RoutedSession) -> Bool {
    session.engine == engine.number || engines[session.engine] == nil
  }

  func assign(_ session: RoutedSession, to engine: RoutedEngine) {
    guard session.engine != engine.number else { return }
    engines[session.engine]?.sessionCount -= 1
    session.engine = engine.number
    engine.sessionCount += 1
  }

  /// Nobody plays the session: the next play is placed anew.
  ///
  /// - Parameter first: who plays sessions that are not placed.
  func release(_ session: RoutedSession, to first: EngineNumber) {
    guard session.engine != first else { return }
    engines[session.engine]?.sessionCount -= 1
    session.engine = first
  }
}
