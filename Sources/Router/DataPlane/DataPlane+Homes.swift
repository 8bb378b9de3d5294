import NIOCore
import WireProtocol

/// What several Routers make of sessions: this one commands those alone whose home it is.
extension DataPlane {
  /// Refuses a session that is another Router's, or nobody's yet.
  func requireHome(of id: SessionID) throws(RequestError) {
    guard let homes, !homes.isHere(id) else { return }
    throw .moved(id)
  }

  /// What commands of a session carry.
  ///
  /// - Throws: where it is not this Router's, and the command changes it.
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

  /// Has an engine stop what another one plays, or nobody wants.
  func stop(_ id: SessionID, at engine: RoutedEngine) {
    try? engine.link.send(EngineCommand(epoch: homes?.epoch(of: id), action: .session(id, .stop)))
  }

  // MARK: Sessions that come

  /// Takes what was kept of a session.
  func restore(_ record: SessionRecord, answers: [StoredAnswer]) {
    store.restore(record)
    for answer in answers { idempotency.restore(answer) }
  }

  /// Finds out which engine plays a session that is this Router's from now on; its sound comes here.
  ///
  /// - Parameter done: called once, when all engines have answered, or their time is over.
  func settle(_ id: SessionID, _ done: @escaping () -> Void) {
    let engines = fleet.engines.values.filter(\.isEstablished)
    let search = OwnerSearch(waitingCount: engines.count) { [weak self] in
      self?.resumeIfLost(id)
      done()
    }
    for engine in engines { ask(engine, whetherItPlays: id, for: search) }
    search.endIfDone()
    let wait = TimeAmount.milliseconds(RouterLimits.takeoverAnswerMilliseconds)
    eventLoop.assumeIsolated().scheduleTask(in: wait) { search.end() }
  }

  /// No engine plays it: it goes on at its last place.
  private func resumeIfLost(_ id: SessionID) {
    guard let session = store.sessions[id], session.engine == store.firstEngine, !session.isAtRest,
      areEnginesKnown
    else { return }
    resume([session])
  }

  /// Has an engine send a session's sound here: its connection is a new one.
  func own(_ session: RoutedSession, at engine: RoutedEngine) {
    guard homes != nil else { return }
    ask(engine, whetherItPlays: session.id, for: nil)
  }

  private func ask(_ engine: RoutedEngine, whetherItPlays id: SessionID, for search: OwnerSearch?) {
    guard let requestID = engine.ownerSearches.add(search, now: .now()) else {
      search?.answered()
      return
    }
    do {
      try engine.link.send(
        EngineCommand(requestID: requestID, epoch: homes?.epoch(of: id), action: .session(id, .status)))
    } catch {
      _ = engine.ownerSearches.take(requestID)
      search?.answered()
    }
  }

  /// Takes an engine's answer to whether it plays a session.
  ///
  /// - Returns: whether the event is one.
  func takeOwner(_ event: EngineEvent, _ engine: RoutedEngine) -> Bool {
    guard let id = event.requestID, let search = engine.ownerSearches.take(id) else { return false }
    if case .error(let report) = event.body, report.code == .staleHome, let session = event.sessionID {
      homes?.verify(session)
    }
    if search != nil, case .status(let snapshot) = event.body { adopt(snapshot, engine, isOwned: true) }
    search?.answered()
    return true
  }

  /// The engine has gone.
  func endOwnerSearches(of engine: RoutedEngine) {
    for (_, search) in engine.ownerSearches.takeAll() { search?.answered() }
  }

  // MARK: Sessions that go

  /// A session is another Router's from now on: nobody hears it here any more. The engine plays on, and what is kept of
  /// it is the other's.
  func lose(_ id: SessionID) {
    guard let session = store.sessions[id] else { return }
    logger.info("the session has moved to another Router", metadata: ["session": "\(id)"])
    if let held = heldPlays.removeValue(forKey: id) {
      takeRequester(held.requesterID).refuse(RequestError.moved(id).report, sessionID: id)
    }
    dropHandover(of: id)
    store.drop(session)
    state.lose(session)
    fleet.release(session, to: store.firstEngine)
    for listener in session.webSockets.values {
      listener.close(.serviceRestart, Self.movedReason, graceSeconds: RouterLimits.shutdownGraceSeconds)
    }
    endPlayers(of: session)
  }

  static let movedReason = "the session has moved"
}

/// Which of the engines plays a session. Confined to the data plane's loop.
final class OwnerSearch {
  private var waitingCount: Int
  private var done: (() -> Void)?

  init(waitingCount: Int, done: @escaping () -> Void) {
    self.waitingCount = waitingCount
    self.done = done
  }

  /// One of them has answered, or will not.
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
      hint: "try again: it is found there")
  }
}
