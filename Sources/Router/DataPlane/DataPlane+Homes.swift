import NIOCore
import WireProtocol

/// Session ownership among several Routers: this Router sends commands only for sessions whose home it is.
extension DataPlane {
  /// - Throws: where the session's home is another Router, or not known yet.
  func requireHome(of id: SessionID) throws(RequestError) {
    guard let homes, !homes.isHere(id) else { return }
    throw .moved(id)
  }

  /// The epoch that a session's commands carry.
  ///
  /// - Throws: where this Router is not the session's home, and the command changes it.
  func epoch(for action: EngineCommand.Action) throws(RequestError) -> UInt64? {
    guard let homes else { return nil }
    switch action {
    case .session(let id, .status), .session(let id, .why), .burst(let id, _): return homes.epoch(of: id)
    case .session(let id, _):
      guard let epoch = homes.epoch(of: id) else { throw .moved(id) }
      return epoch
    case .media, .artwork, .resolve, .render: return nil
    }
  }

  /// Stops a session at an engine that is not to play it.
  func stop(_ id: SessionID, at engine: RoutedEngine) {
    try? engine.link.send(EngineCommand(epoch: homes?.epoch(of: id), action: .session(id, .stop)))
  }

  // MARK: Taking sessions over

  /// Restores a session from its stored state.
  func restore(_ record: SessionRecord, answers: [StoredAnswer]) {
    store.restore(record)
    for answer in answers { idempotency.restore(answer) }
  }

  /// Finds out which engine plays a session that this Router has claimed; from then on that engine sends its audio here.
  ///
  /// - Parameter done: called once, when all engines have answered, or after the timeout.
  func locateEngine(of id: SessionID, _ done: @escaping () -> Void) {
    let engines = fleet.engines.values.filter(\.isEstablished)
    let search = EngineSearch(waitingCount: engines.count) { [weak self] in
      self?.resumeIfLost(id)
      done()
    }
    for engine in engines { ask(engine, whetherItPlays: id, for: search) }
    search.endIfDone()
    let wait = TimeAmount.milliseconds(RouterLimits.takeoverAnswerMilliseconds)
    eventLoop.assumeIsolated().scheduleTask(in: wait) { search.end() }
  }

  /// Resumes a session at its last position where no engine plays it.
  private func resumeIfLost(_ id: SessionID) {
    guard let session = store.sessions[id], session.engine == store.firstEngine, !session.isAtRest,
      areEnginesKnown
    else { return }
    resume([session])
  }

  /// Asks an engine to send a session's audio to this Router's new connection.
  func requestAudio(of session: RoutedSession, from engine: RoutedEngine) {
    guard homes != nil else { return }
    ask(engine, whetherItPlays: session.id, for: nil)
  }

  private func ask(_ engine: RoutedEngine, whetherItPlays id: SessionID, for search: EngineSearch?) {
    guard let requestID = engine.engineSearches.add(search, now: .now()) else {
      search?.answered()
      return
    }
    do {
      try engine.link.send(
        EngineCommand(requestID: requestID, epoch: homes?.epoch(of: id), action: .session(id, .status)))
    } catch {
      _ = engine.engineSearches.take(requestID)
      search?.answered()
    }
  }

  /// Takes an engine's answer to a search.
  ///
  /// - Returns: whether the event is one.
  func takeSearchReply(_ event: EngineEvent, _ engine: RoutedEngine) -> Bool {
    guard let id = event.requestID, let search = engine.engineSearches.take(id) else { return false }
    if case .error(let report) = event.body, report.code == .staleHome, let session = event.sessionID {
      homes?.verify(session)
    }
    if search != nil, case .status(let snapshot) = event.body { adopt(snapshot, engine, isOwned: true) }
    search?.answered()
    return true
  }

  /// The engine is gone.
  func endEngineSearches(of engine: RoutedEngine) {
    for (_, search) in engine.engineSearches.takeAll() { search?.answered() }
  }

  // MARK: Giving sessions up

  /// Gives up a session that another Router has claimed, and closes its listeners. The engine keeps playing; the stored state
  /// belongs to the other Router.
  func relinquish(_ id: SessionID) {
    guard let session = store.sessions[id] else { return }
    logger.info("the session has moved to another Router", metadata: ["session": "\(id)"])
    if let held = heldPlays.removeValue(forKey: id) {
      takeRequester(held.requesterID).refuse(RequestError.moved(id).report, sessionID: id)
    }
    dropHandover(of: id)
    store.drop(session)
    state.relinquish(session)
    fleet.release(session, to: store.firstEngine)
    for listener in session.webSockets.values {
      listener.close(.serviceRestart, Self.movedReason, graceSeconds: RouterLimits.shutdownGraceSeconds)
    }
    endPlayers(of: session)
  }

  static let movedReason = "the session has moved"
}

/// Asks all engines which of them plays a session. Confined to the data plane's loop.
final class EngineSearch {
  private var waitingCount: Int
  private var done: (() -> Void)?

  init(waitingCount: Int, done: @escaping () -> Void) {
    self.waitingCount = waitingCount
    self.done = done
  }

  /// An engine has answered, or will not.
  func answered() {
    waitingCount -= 1
    endIfDone()
  }

  func endIfDone() { if waitingCount <= 0 { end() } }

  func end() {
    let done = self.done
    self.done = nil
    done?()
  }
}

extension RequestError {
  static func moved(_ id: SessionID) -> RequestError {
    RequestError(
      .routerUnavailable, "the session \(id) has moved to another Router",
      hint: "try again: the request then goes to that Router")
  }
}
