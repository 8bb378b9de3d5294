import WireProtocol

/// What messages the director takes, and how it answers.
extension SessionDirector {
  package func handle(_ message: SessionMessage, now: UInt64) {
    ticks.catchUpIfIdle(now: now)
    switch message {
    case .play(let new): play(new, now: now)
    case .prepare(let next, let pendingRequest): prepare(next, pendingRequest, now: now)
    case .command(let id, let action, let pendingRequest): perform(action, on: id, pendingRequest, now: now)
    case .burst(let id, let milliseconds, let pendingRequest): sendBurst(milliseconds, of: id, pendingRequest)
    case .answer(let event, let pendingRequest): answer(pendingRequest, event)
    case .announce(let event): output.append(event)
    case .timelineChanged(let timeline): timelineChanged(timeline, now: now)
    case .timelineAcquired(let id, let number, let result): timelineAcquired(id, number, result, now: now)
    case .joined(let id, let timelineID, let result, let pendingRequest):
      joined(id, timelineID, result, pendingRequest)
    case .spliced(let id, let number, let packets): spliced(id, number, packets, now: now)
    case .spliceContinued(let id, let number, let packets): spliceContinued(id, number, packets)
    case .inspect(let receiver): inspection.add(receiver)
    }
  }

  // MARK: Events and answers

  /// Tells every router of a session's change, and with it the requester.
  func emit(_ body: EngineEvent.Body, _ id: SessionID, answering pendingRequest: PendingRequest? = nil) {
    if case .error(let report) = body { effects.report(report, of: id) }
    var event = EngineEvent(body, sessionID: id)
    if case .closure(let answer) = pendingRequest?.requester { answer(event) }
    if case .router = pendingRequest?.requester { event.requestID = pendingRequest?.requestID }
    output.append(event)
  }

  /// Tells of a session: of one that stands by, the requester alone.
  func tell(_ body: EngineEvent.Body, _ session: Session, answering pendingRequest: PendingRequest? = nil) {
    guard session.isStandby else { return emit(body, session.id, answering: pendingRequest) }
    if let pendingRequest { answer(pendingRequest, EngineEvent(body, sessionID: session.id)) }
  }

  /// Tells the requester alone.
  func answer(_ pendingRequest: PendingRequest, _ event: EngineEvent) {
    switch pendingRequest.requester {
    case .closure(let answer): answer(event)
    case .router(let connection):
      var event = event
      event.requestID = pendingRequest.requestID
      output.append(answer: event, to: connection)
    }
  }

  /// Answers with an error, where a command waits for an answer.
  func reject(_ pendingRequest: PendingRequest?, _ report: ErrorReport, _ id: SessionID) {
    guard let pendingRequest else { return }
    answer(pendingRequest, EngineEvent(.error(report), sessionID: id))
  }

  func snapshot(_ session: Session) -> SessionSnapshot {
    var snapshot = SessionSnapshot(sessionID: session.id, state: session.machine.visible)
    snapshot.url = session.request.url
    snapshot.tag = session.request.tag
    snapshot.volume = session.volume
    snapshot.loop = session.request.loop
    snapshot.bitrateKilobits = session.request.bitrateKilobits
    snapshot.positionMilliseconds = session.cursor.positionMilliseconds
    if let track = session.track { snapshot.describe(track) }
    if session.nextTick != nil { snapshot.dueNanoseconds = anchor(session).dueNanoseconds }
    if session.bufferingSinceNanoseconds != nil { snapshot.buffering = true }
    snapshot.muted = session.muted
    return snapshot
  }
}
