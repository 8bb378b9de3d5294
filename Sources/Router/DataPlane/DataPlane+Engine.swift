import NIOCore
import ServiceSupport
import WireProtocol

/// What the engine says, and what follows from it.
extension DataPlane: EngineLinkDelegate {
  func engineConnected(_ hello: Hello) {
    let isSameEngine = hello.startedAtMilliseconds == engineStartedAtMilliseconds
    if engineStartedAtMilliseconds != nil { engineIsBack(isSame: isSameEngine) }
    unconfirmed = Set(store.sessions.values.filter { !$0.isAtRest }.map(\.id))
    announceEngine()
    for snapshot in hello.sessions { adopt(snapshot) }
    listingEngineStartedAtMilliseconds = hello.startedAtMilliseconds
    // Where hello is not full it names every session.
    if hello.sessions.count < WireLimits.maximumHelloSessions { resumeUnconfirmed() }
  }

  func engineWentAway() {
    unconfirmed = []
    listingEngineStartedAtMilliseconds = nil
    engineIsLost()
    failHeldPlays(unavailable)
    for session in store.sessions.values {
      let wasAtRest = session.isAtRest
      store.packets.completeMessages(of: session)
      run(session) { $0.loseEngine($1) }
      // It has lost nothing.
      guard !wasAtRest else { continue }
      state.save(session)
      store.removeIfUnused(session)
    }
    announceEngine()
    endBursts()
    failPending(unavailable)
  }

  func engineReported(_ event: EngineEvent) {
    if takeBurst(event) { return }
    if case .listed = event.body { return resumeUnconfirmed() }
    let requester = event.requestID.flatMap { answers(event) ? pending.take($0) : nil }
    guard let id = event.sessionID else {
      requester?.answer(.event(event))
      if requester == nil { logger.warning("the engine says: \(event.body.name) \(describe(event))") }
      return
    }
    if case .status(let snapshot) = event.body, event.requestID == nil, isListing(id) {
      return adopt(snapshot)
    }
    // An error says nothing about what the session plays.
    if case .error = event.body {} else { unconfirmed.remove(id) }
    let session = store.known(id)
    store.packets.completeMessages(of: session)
    let isForAll = concernsAll(event, session, requester)
    session.place(event.body)
    run(session) { playback, _ in playback.apply(event) }
    noteCrashes()
    distribute(event, session, requester, isForAll: isForAll)
    follow(event, session)
    if event.body.changesWhatIsKept { state.save(session) }
    if case .ready = event.body { run(session) { playback, _ in playback.sendWantedVolume() } }
    store.removeIfUnused(session)
    if !heldPlays.isEmpty { watchTrials() }
  }

  /// Has the queue moved by what the engine has said.
  func follow(_ event: EngineEvent, _ session: RoutedSession) {
    session.usedAt = .now()
    run(session) { $0.follow(event, &$1) }
  }

  /// First on a WebSocket.
  func greet(_ listener: WebSocketListener, _ session: RoutedSession) {
    listener.outlet.sendText(.session(session, engine: link.status))
    askForChapters(of: session)
    station.greet(listener, session)
    station.joined(session)
  }

  private var unavailable: ErrorReport {
    ErrorReport(
      .engineUnavailable, link.status.message ?? "the connection to the engine was lost",
      hint: "the Router keeps trying",
      stage: .command)
  }

  /// `extracting` is an intermediate event, not the answer.
  private func answers(_ event: EngineEvent) -> Bool {
    if case .extracting = event.body { false } else { true }
  }

  private func describe(_ event: EngineEvent) -> String {
    if case .error(let report) = event.body { report.description } else { "" }
  }

  private func announceEngine() {
    let frame = WebSocketFrames.text(JSON.encode(EngineStatusMessage(engine: link.status)))
    for session in store.sessions.values { session.broadcast(frame) }
  }

  /// What changes nothing for the others is told to the requester alone: a status, and why a command was refused.
  /// What the Router itself asks for is for all.
  private func concernsAll(_ event: EngineEvent, _ session: RoutedSession, _ requester: Requester?) -> Bool {
    switch event.body {
    case .why: return false
    case _ where requester?.isRouterStep == true: return event.body.isNews
    case .status(let snapshot):
      if case .router? = requester { return true }
      return snapshot.volume != nil && snapshot.volume != session.volume
        || snapshot.live != session.playback.reported.live
    case .error:
      if case .router? = requester { return true }
      return event.requestID == nil || session.state == .extracting
    default: return true
    }
  }

  /// The requester's answer carries its own request ID, everyone else's none.
  private func distribute(
    _ event: EngineEvent, _ session: RoutedSession, _ requester: Requester?, isForAll: Bool
  ) {
    var anonymous = event.withoutTag
    requester?.answer(.event(anonymous))
    guard isForAll, session.listenerCount > 0 else { return }
    anonymous.requestID = nil
    session.broadcast(WebSocketFrames.text(anonymous.encoded()), except: requester?.webSocket)
  }

  // MARK: After an engine's restart

  /// Whether a `status` nobody asked for is the continuation of `hello`.
  private func isListing(_ id: SessionID) -> Bool {
    unconfirmed.contains(id) || store.sessions[id].map { $0.state == .idle } ?? true
  }

  private func adopt(_ snapshot: SessionSnapshot) {
    guard snapshot.state != .idle else { return }
    unconfirmed.remove(snapshot.sessionID)
    let session = store.known(snapshot.sessionID)
    session.usedAt = .now()
    session.place(snapshot)
    run(session) { $0.reconcile(with: snapshot, &$1) }
    noteCrashes(snapshot)
    station.adopted(session)
    state.save(session)
    run(session) { $0.prepareNextIfNeeded(&$1) }
    guard session.listenerCount > 0 else { return }
    session.broadcast(.session(session, engine: link.status))
    askForChapters(of: session)
  }

  /// What this engine has not named, it does not play. It counts as known from here on: until then, what the one
  /// before it played is only lost.
  private func resumeUnconfirmed() {
    guard let started = listingEngineStartedAtMilliseconds else { return }
    listingEngineStartedAtMilliseconds = nil
    let isSameEngine = started == engineStartedAtMilliseconds
    engineStartedAtMilliseconds = started
    let lost = unconfirmed
    unconfirmed = []
    state.saveEngine(startedAtMilliseconds: started) {
      for id in lost {
        guard let session = store.sessions[id] else { continue }
        run(session) { $0.engineDoesNotPlay(isSameEngine: isSameEngine, &$1) }
      }
    }
  }

  /// Of a session that somebody looks at; the answer is given to all who do.
  private func askForChapters(of session: RoutedSession) {
    guard session.lacksChapters else { return }
    // Without an answer only the chapters are missing.
    _ = try? send(.session(session.id, .status), for: .router)
  }
}

extension EngineEvent.Body {
  /// Whether a session's record is another after it.
  fileprivate var changesWhatIsKept: Bool {
    switch self {
    case .extracting, .ready, .playing, .paused, .resumed, .seeked, .ended, .status: true
    default: false
    }
  }

  /// Whether all who listen are told, no matter who asked.
  fileprivate var isNews: Bool {
    switch self {
    case .error, .status: false
    default: true
    }
  }
}

extension EngineEvent {
  /// The names of plays are between the Router and the engine.
  fileprivate var withoutTag: EngineEvent {
    var event = self
    switch body {
    case .extracting(let url, _): event.body = .extracting(url: url)
    case .status(var snapshot):
      snapshot.tag = nil
      event.body = .status(snapshot)
    default: break
    }
    return event
  }
}
