import NIOCore
import WireProtocol

/// What the engine says, and what follows from it.
extension DataPlane: EngineLinkDelegate {
  func engineConnected(_ hello: Hello) {
    let isSameEngine = hello.startedAtMilliseconds == engineStartedAtMilliseconds
    engineStartedAtMilliseconds = hello.startedAtMilliseconds
    unconfirmed = Set(store.sessions.values.filter { $0.state != .idle }.map(\.id))
    announceEngine()
    for snapshot in hello.sessions { adopt(snapshot) }
    // Where hello is not full it names every session.
    guard hello.sessions.count >= WireLimits.maximumHelloSessions else {
      return seeToUnconfirmed(isSameEngine: isSameEngine)
    }
    let wait = TimeAmount.milliseconds(RouterLimits.listingMilliseconds)
    eventLoop.assumeIsolated().scheduleTask(in: wait) { [weak self] in
      self?.seeToUnconfirmed(isSameEngine: isSameEngine)
    }
  }

  func engineWentAway() {
    unconfirmed = []
    for session in store.sessions.values {
      session.engineWentAway()
      store.removeIfUnused(session)
    }
    announceEngine()
    failPending(unavailable)
  }

  func engineReported(_ event: EngineEvent) {
    let asker = event.requestID.flatMap { answers(event) ? pending.take($0) : nil }
    guard let id = event.sessionID else {
      asker?.answer(.event(event))
      if asker == nil { logger.warning("the engine says: \(event.body.name) \(describe(event))") }
      return
    }
    if case .status(let snapshot) = event.body, event.requestID == nil, isListing(id) {
      return adopt(snapshot)
    }
    // A refusal says nothing about what the session plays.
    if case .error = event.body {} else { unconfirmed.remove(id) }
    let session = store.known(id)
    let isForAll = concernsAll(event, session, asker)
    session.apply(event.body)
    distribute(event, session, asker, isForAll: isForAll)
    continueQueue(session, after: event, asker)
    if case .ready = event.body, let level = session.takeWantedVolume() {
      // The level that was asked for while this track was being opened.
      _ = try? send(.session(id, .volume(level)), for: .router)
    }
    store.removeIfUnused(session)
  }

  /// First on a WebSocket.
  func greet(_ listener: WebSocketListener, _ session: RoutedSession) {
    listener.outlet.sendText(sessionFrame(session))
    askForChapters(of: session)
  }

  private var unavailable: ErrorReport {
    ErrorReport(
      .engineUnavailable, link.status.message ?? "the engine went away", hint: "the Router keeps trying",
      stage: .command)
  }

  /// `extracting` comes on the way to the answer, and is none.
  private func answers(_ event: EngineEvent) -> Bool {
    if case .extracting = event.body { false } else { true }
  }

  private func describe(_ event: EngineEvent) -> String {
    if case .error(let report) = event.body { report.description } else { "" }
  }

  private func sessionFrame(_ session: RoutedSession) -> ByteBuffer {
    WebSocketFrames.text(
      JSON.encode(
        SessionMessage(session: session.snapshot, queue: session.queue.view, engine: link.status)))
  }

  private func announceEngine() {
    let frame = WebSocketFrames.text(JSON.encode(EngineMessage(engine: link.status)))
    for session in store.sessions.values { session.broadcast(frame) }
  }

  /// What changes nothing for the others is told to the asker alone: a status, and why a command was refused.
  /// What the Router itself asks for is for all.
  private func concernsAll(_ event: EngineEvent, _ session: RoutedSession, _ asker: Asker?) -> Bool {
    switch event.body {
    case .why: return false
    case .status(let snapshot):
      if case .router? = asker { return true }
      return snapshot.volume != nil && snapshot.volume != session.volume
    case .error:
      if case .router? = asker { return true }
      return event.requestID == nil || session.state == .extracting
    default: return true
    }
  }

  /// The asker's answer carries its own request ID, everyone else's none.
  private func distribute(
    _ event: EngineEvent, _ session: RoutedSession, _ asker: Asker?, isForAll: Bool
  ) {
    asker?.answer(.event(event))
    guard isForAll, session.listenerCount > 0 else { return }
    var anonymous = event
    anonymous.requestID = nil
    session.broadcast(WebSocketFrames.text(anonymous.encoded()), except: asker?.webSocket)
  }

  // MARK: What follows an end

  private func continueQueue(_ session: RoutedSession, after event: EngineEvent, _ asker: Asker?) {
    switch event.body {
    case .extracting(let url) where session.queue.current != nil && session.queue.current?.url != url:
      session.queue.playedSomethingElse()
      announceQueue(session, except: nil)
    case .error(let report) where report.code == .overloaded && session.state == .extracting:
      session.overload = report
    case .ended(let reason, _) where session.startingRequestID == nil:
      guard let overload = session.takeOverload(), reason == .loadFailed else {
        return follow(session) { queue in queue.ended(reason) }
      }
      refused(session, overload)
    case .error(let report) where event.requestID != nil && event.requestID == session.startingRequestID:
      // Refused before it began, so that no end will be reported.
      session.startingRequestID = nil
      guard case .router? = asker else { return }
      refused(session, report)
    default: break
    }
  }

  /// A play of ours was refused. What the engine has no room for now is asked for again; anything else will
  /// not become better.
  private func refused(_ session: RoutedSession, _ report: ErrorReport) {
    let isForNow = [.tooManySessions, .workersExhausted, .overloaded, .engineUnavailable].contains(
      report.code)
    guard isForNow else {
      guard session.isLost else { return follow(session) { queue in queue.ended(.loadFailed) } }
      return engineReported(lostEnd(of: session, .loadFailed))
    }
    if !session.isLost { follow(session) { $0.putBack() } }
    let wait = TimeAmount.milliseconds(RouterLimits.retryMilliseconds)
    eventLoop.assumeIsolated().scheduleTask(in: wait) { [weak self, weak session] in
      guard let self, let session, store.sessions[session.id] === session else { return }
      if session.isLost {
        goOn(session)
      } else if session.isIdle {
        follow(session) { queue in queue.ended(.finished) }
      }
    }
  }

  private func follow(_ session: RoutedSession, _ change: (inout TrackQueue) -> TrackQueue.Action?) {
    let before = session.queue.view
    let action = change(&session.queue)
    do {
      if let action { try perform(action, session) }
    } catch {
      logger.warning("the queue cannot go on: \(error.report)", metadata: ["session": "\(session.id)"])
    }
    if session.queue.view != before { announceQueue(session, except: nil) }
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
    session.adopt(snapshot)
    guard session.listenerCount > 0 else { return }
    session.broadcast(sessionFrame(session))
    askForChapters(of: session)
  }

  /// An engine that has stayed up ends a session only for good; one that has restarted has lost it.
  private func seeToUnconfirmed(isSameEngine: Bool) {
    let lost = unconfirmed
    unconfirmed = []
    for id in lost {
      guard let session = store.sessions[id] else { continue }
      session.isLost = true
      isSameEngine ? engineReported(lostEnd(of: session, .finished)) : goOn(session)
    }
  }

  private func goOn(_ session: RoutedSession) {
    guard let request = session.continuation else { return }
    logger.info(
      "the engine is new: going on with \(request.url) at \(request.startMilliseconds) ms",
      metadata: ["session": "\(session.id)"])
    do {
      let id = try send(.session(session.id, .play(request)), for: .router)
      session.asked(toPlay: request, requestID: id)
    } catch {
      logger.error("the session cannot go on: \(error.report)", metadata: ["session": "\(session.id)"])
    }
  }

  private func lostEnd(of session: RoutedSession, _ reason: EngineEvent.EndReason) -> EngineEvent {
    EngineEvent(
      .ended(reason, positionMilliseconds: session.snapshot.positionMilliseconds ?? 0),
      sessionID: session.id)
  }

  /// Of a session that somebody looks at; the answer is given to all who do.
  private func askForChapters(of session: RoutedSession) {
    guard session.lacksChapters else { return }
    // Without an answer only the chapters are missing.
    _ = try? send(.session(session.id, .status), for: .router)
  }
}
