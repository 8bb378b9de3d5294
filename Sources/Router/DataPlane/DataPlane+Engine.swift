import NIOCore
import ServiceSupport
import WireProtocol

/// The engine's events and their consequences.
extension DataPlane {
  func engineConnected(_ hello: Hello, _ engine: RoutedEngine) {
    let isSameEngine = hello.startedAtMilliseconds == engine.startedAtMilliseconds
    if engine.startedAtMilliseconds != nil { engineIsBack(isSame: isSameEngine, engine) }
    engine.unconfirmed = Set(sessions(of: engine).filter { !$0.isAtRest }.map(\.id))
    announceEngines()
    for snapshot in hello.sessions { adopt(snapshot, engine) }
    if areEnginesKnown { resumeUnplaced() }
    engine.listingStartedAtMilliseconds = hello.startedAtMilliseconds
    // Where hello is not full it names every session.
    if hello.sessions.count < WireLimits.maximumHelloSessions { resumeUnconfirmed(of: engine) }
  }

  func engineWentAway(_ engine: RoutedEngine) {
    engine.unconfirmed = []
    engine.listingStartedAtMilliseconds = nil
    let unavailable = ErrorReport(
      .engineUnavailable, engine.link.status.message ?? "the connection to the engine was lost",
      hint: "the Router keeps trying", stage: .command)
    engineIsLost(engine)
    endHandovers(of: engine)
    // Another engine may try what is held.
    if !fleet.isAnyEstablished { failHeldPlays(unavailable) }
    for session in sessions(of: engine) {
      let wasAtRest = session.isAtRest
      store.packets.completeMessages(of: session)
      run(session) { $0.loseEngine($1) }
      // It has lost nothing.
      guard !wasAtRest else { continue }
      state.save(session)
      store.removeIfUnused(session)
    }
    announceEngines()
    endBursts(of: engine)
    endEngineSearches(of: engine)
    failPending(unavailable, engine)
  }

  func sessions(of engine: RoutedEngine) -> [RoutedSession] {
    store.sessions.values.filter { $0.engine == engine.number }
  }

  func engineReported(_ event: EngineEvent, _ engine: RoutedEngine) {
    if takeBurst(event, engine) || takeSearchReply(event, engine) { return }
    if case .listed = event.body { return resumeUnconfirmed(of: engine) }
    let requester = event.requestID.flatMap { answers(event) ? engine.pending.take($0) : nil }
    guard let id = event.sessionID else {
      requester?.answer(.event(event))
      if requester == nil {
        logger.warning(
          "engine event without a session or a waiting request: \(event.body.name) \(describe(event))")
      }
      return
    }
    guard isCommanded(id, event, requester), !takeHandover(event, engine) else { return }
    if case .status(let snapshot) = event.body, event.requestID == nil, isListing(id, engine) {
      return adopt(snapshot, engine)
    }
    // An error says nothing about what the session plays.
    if case .error = event.body {} else { engine.unconfirmed.remove(id) }
    let session = store.known(id)
    guard fleet.holds(engine, session) else { return refuse(event, requester, engine) }
    if event.body.saysThatItPlays { fleet.assign(session, to: engine) }
    if case .error(let report) = event.body, report.code.meansNoRoom { makeRoom(session, engine) }
    take(event, requester, session)
  }

  /// What is said of another Router's session is for the requester alone. One that plays and is nobody's is claimed.
  private func isCommanded(_ id: SessionID, _ event: EngineEvent, _ requester: Requester?) -> Bool {
    guard let homes else { return true }
    if case .error(let report) = event.body, report.code == .staleHome {
      homes.verify(id)
    } else if homes.epoch(of: id) != nil {
      return true
    } else if event.body.saysThatItPlays {
      homes.adopt(id)
    }
    requester?.answer(.event(event.withoutTag))
    return false
  }

  /// What another engine than the session's says of it is for the requester alone. It is not to play it.
  private func refuse(_ event: EngineEvent, _ requester: Requester?, _ engine: RoutedEngine) {
    requester?.answer(.event(event.withoutTag))
    guard let id = event.sessionID, event.body.saysThatItPlays, handovers[id]?.target !== engine else {
      return
    }
    stop(id, at: engine)
  }

  /// An engine has no room for what is to begin: another may have, when it is asked for again.
  private func makeRoom(_ session: RoutedSession, _ engine: RoutedEngine) {
    engine.isFull = true
    if session.state == .idle || session.playback.isLost { fleet.release(session, to: store.firstEngine) }
  }

  /// Takes what is said of a session: by the engine that plays it, or by its own playback where that is gone.
  func take(_ event: EngineEvent, _ requester: Requester?, _ session: RoutedSession) {
    store.packets.completeMessages(of: session)
    let isForAll = concernsAll(event, session, requester)
    session.place(event.body)
    run(session) { playback, _ in playback.apply(event) }
    noteCrashes()
    distribute(event, session, requester, isForAll: isForAll)
    follow(event, session)
    if event.body.changesWhatIsKept { state.save(session) }
    if case .ready = event.body { run(session) { playback, _ in playback.sendWantedVolume() } }
    if session.isAtRest { fleet.release(session, to: store.firstEngine) }
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
    listener.outlet.sendText(.session(session, engine: fleet.status))
    askForChapters(of: session)
    station.greet(listener, session)
    station.joined(session)
  }

  /// `extracting` is an intermediate event, not the answer.
  private func answers(_ event: EngineEvent) -> Bool {
    if case .extracting = event.body { false } else { true }
  }

  private func describe(_ event: EngineEvent) -> String {
    if case .error(let report) = event.body { report.description } else { "" }
  }

  private func announceEngines() {
    let status = fleet.status
    guard status != announcedStatus else { return }
    announcedStatus = status
    let frame = WebSocketFrames.text(JSON.encode(EngineStatusMessage(engine: status)))
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
  private func isListing(_ id: SessionID, _ engine: RoutedEngine) -> Bool {
    engine.unconfirmed.contains(id) || store.sessions[id].map { $0.state == .idle } ?? true
  }

  /// - Parameter isOwned: whether its sound comes here already.
  func adopt(_ snapshot: SessionSnapshot, _ engine: RoutedEngine, isOwned: Bool = false) {
    guard snapshot.state != .idle else { return }
    engine.unconfirmed.remove(snapshot.sessionID)
    if let homes, homes.epoch(of: snapshot.sessionID) == nil { return homes.adopt(snapshot.sessionID) }
    let session = store.known(snapshot.sessionID)
    guard fleet.holds(engine, session) else {
      // It was out of reach, and another plays the session by now.
      return stop(session.id, at: engine)
    }
    fleet.assign(session, to: engine)
    if !isOwned { requestAudio(of: session, from: engine) }
    session.usedAt = .now()
    session.place(snapshot)
    run(session) { $0.reconcile(with: snapshot, &$1) }
    noteCrashes(snapshot)
    station.adopted(session)
    state.save(session)
    run(session) { $0.prepareNextIfNeeded(&$1) }
    guard session.listenerCount > 0 else { return }
    session.broadcast(.session(session, engine: fleet.status))
    askForChapters(of: session)
  }

  /// What this engine has not named, it does not play. It counts as known from here on: until then, what the one
  /// before it played is only lost.
  private func resumeUnconfirmed(of engine: RoutedEngine) {
    guard let started = engine.listingStartedAtMilliseconds else { return }
    engine.listingStartedAtMilliseconds = nil
    let isSameEngine = started == engine.startedAtMilliseconds
    engine.startedAtMilliseconds = started
    let lost = engine.unconfirmed
    engine.unconfirmed = []
    state.saveEngine(startedAtMilliseconds: started) {
      for id in lost {
        guard let session = store.sessions[id] else { continue }
        run(session) { $0.engineDoesNotPlay(isSameEngine: isSameEngine, &$1) }
      }
    }
  }

  // MARK: Several engines

  /// An engine is lost: its sessions resume on others.
  func engineIsGone(_ engine: RoutedEngine) {
    if engine.startedAtMilliseconds != nil { engineIsBack(isSame: false, engine) }
    let lost = sessions(of: engine)
    fleet.remove(engine)
    statistics.movedSessions += lost.count { !$0.isAtRest }
    for session in lost { fleet.release(session, to: store.firstEngine) }
    announceEngines()
    // No other is known to play them, whether or not all have said what they play.
    resume(lost.filter { !$0.isAtRest })
  }

  /// After the Router's start: the engines that there are have said what they play.
  func enginesAreKnown() {
    areEnginesKnown = true
    resumeUnplaced()
  }

  /// Asks for what was playing and is played by no engine.
  private func resumeUnplaced() {
    guard store.firstEngine == .none else { return }
    // Of those that have just come it is being asked who plays them.
    resume(
      store.sessions.values.filter { $0.engine == .none && !$0.isAtRest && homes?.isHere($0.id) != false })
  }

  func resume(_ sessions: [RoutedSession]) {
    // Without any engine they wait for the next one.
    guard fleet.isAnyEstablished else { return }
    state.saveTogether {
      for session in sessions { run(session) { $0.engineDoesNotPlay(isSameEngine: false, &$1) } }
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

  fileprivate var saysThatItPlays: Bool {
    switch self {
    case .extracting, .ready, .playing, .resumed: true
    case .status(let snapshot): snapshot.state != .idle
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

extension ErrorCode {
  /// Another engine may have what this one lacks.
  var meansNoRoom: Bool {
    [.tooManySessions, .workersExhausted, .overloaded].contains(self)
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
