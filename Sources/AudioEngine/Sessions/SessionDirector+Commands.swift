import WireProtocol

/// What commands do to sessions.
extension SessionDirector {
  func perform(
    _ action: EngineCommand.SessionAction, on id: SessionID, _ pendingRequest: PendingRequest, now: UInt64
  ) {
    guard admit(pendingRequest, to: id) else { return }
    settleTransition(of: id, before: action, now: now)
    endStandby(id, before: action, now: now)
    guard let session = sessions[id] else {
      switch action {
      case .status:
        let idle = SessionSnapshot(sessionID: id, state: .idle)
        return answer(pendingRequest, EngineEvent(.status(idle), sessionID: id))
      case .why:
        return answer(
          pendingRequest, EngineEvent(.why(recentEnds.diagnosis(of: id, now: now)), sessionID: id))
      default: break
      }
      let report = ErrorReport(
        .noSuchSession, "\(action.name): the session \(id) plays nothing", hint: "play something first",
        stage: .command)
      return reject(pendingRequest, report, id)
    }
    do {
      try perform(action, on: session, pendingRequest, now: now)
    } catch {
      reject(pendingRequest, error, id)
    }
  }

  private func perform(
    _ action: EngineCommand.SessionAction, on session: Session, _ pendingRequest: PendingRequest, now: UInt64
  ) throws(ErrorReport) {
    switch action {
    case .pause, .resume, .seek, .volume: dropHandOver(session)
    default: break
    }
    switch action {
    case .play, .prepare, .standBy: preconditionFailure("a play comes with its timeline")
    case .pause:
      try session.machine.requireStreaming()
      startTransition(session, .pause(pendingRequest), now: now)
    case .resume:
      try session.machine.requirePaused()
      session.joinLiveSource()
      startTransition(session, .resume(pendingRequest), now: now)
    case .stop: startTransition(session, .stop(pendingRequest), now: now)
    case .seek(let position): try seek(session, to: position, pendingRequest, now: now)
    case .volume(let level): try setVolume(session, level, pendingRequest)
    case .perform(let score): try join(score, session, pendingRequest)
    case .mute(let roles): try mute(roles, session, pendingRequest)
    case .takeOver(let position, let due): try takeOver(session, at: position, due, pendingRequest, now: now)
    case .handOver(let position): try handOver(session, at: position, pendingRequest, now: now)
    case .unprepare:
      dropNext(session)
      answerStatus(session, pendingRequest)
    case .status: answerStatus(session, pendingRequest)
    case .why:
      let diagnosis = diagnosis(of: session, ended: nil, now: now)
      answer(pendingRequest, EngineEvent(.why(diagnosis), sessionID: session.id))
    }
  }

  private func answerStatus(_ session: Session, _ pendingRequest: PendingRequest) {
    var snapshot = snapshot(session)
    snapshot.chapters = session.track?.chapters
    answer(pendingRequest, EngineEvent(.status(snapshot), sessionID: session.id))
  }

  /// - Parameter pendingRequest: nil for a session that begins paused.
  func pause(_ session: Session, _ pendingRequest: PendingRequest?, now: UInt64) {
    session.machine.pause()
    stopStreaming(session, now: now)
    session.pausedSinceNanoseconds = now
    tell(
      .paused(positionMilliseconds: session.cursor.positionMilliseconds), session,
      answering: pendingRequest)
    // A volume that waited for a tick to be spliced in at waits no more.
    advanceMove(session, now: now)
  }

  func resume(_ session: Session, _ pendingRequest: PendingRequest, now: UInt64) {
    session.machine.resume()
    session.pausedSinceNanoseconds = nil
    startStreaming(session, now: now)
    emit(.resumed(anchor(session)), session.id, answering: pendingRequest)
  }
}
