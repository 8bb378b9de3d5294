import WireProtocol

/// What messages do to sessions. Runs between rounds, on the pacer's thread.
extension PacerLoop {
  func handle(_ message: PacerMessage) {
    switch message {
    case .connected(let connection): connect(connection)
    case .disconnected(let id): disconnect(id)
    case .play(let id, let request, let source, let lease, let inquiry):
      play(id, request, source, lease, inquiry)
    case .command(let id, let action, let inquiry): perform(action, on: id, inquiry)
    case .answer(let event, let inquiry): answer(inquiry, event)
    case .line(let line, let connection): batch.append(line: line, to: connection)
    case .timelineChanged(let timeline): timelineChanged(timeline)
    case .timelineAcquired(let id, let number, let result): timelineAcquired(id, number, result)
    case .inspect(let body): body(sessions.values.map(snapshot))
    }
  }

  // MARK: Events and answers

  /// Tells every router of a session's change, and whoever asked for it.
  func emit(_ body: EngineEvent.Body, _ id: SessionID, answering inquiry: Inquiry? = nil) {
    var event = EngineEvent(body, sessionID: id)
    if case .closure(let answer) = inquiry?.asker { answer(event) }
    if case .router = inquiry?.asker { event.requestID = inquiry?.requestID }
    batch.append(event)
  }

  /// Tells the asker alone.
  func answer(_ inquiry: Inquiry, _ event: EngineEvent) {
    switch inquiry.asker {
    case .closure(let answer): answer(event)
    case .router(let connection):
      var event = event
      event.requestID = inquiry.requestID
      batch.append(event, to: connection)
    }
  }

  func refuse(_ inquiry: Inquiry?, _ report: ErrorReport, _ id: SessionID) {
    guard let inquiry else { return }
    answer(inquiry, EngineEvent(.error(report), sessionID: id))
  }

  func snapshot(_ session: Session) -> SessionSnapshot {
    var snapshot = SessionSnapshot(sessionID: session.id, state: session.machine.visible)
    snapshot.url = session.request.url
    snapshot.volume = session.volume
    snapshot.loop = session.request.loop
    snapshot.positionMilliseconds = session.cursor.positionMilliseconds
    if let track = session.track { snapshot.describe(track) }
    if session.nextTick != nil { snapshot.dueNanoseconds = anchor(session).dueNanoseconds }
    if session.bufferingSinceNanoseconds != nil { snapshot.buffering = true }
    return snapshot
  }

  // MARK: Beginning and ending

  private func play(
    _ id: SessionID, _ request: PlayRequest, _ source: MediaSource, _ lease: TimelineLease, _ inquiry: Inquiry
  ) {
    if let existing = sessions[id] {
      end(existing, .replaced)
    } else if sessions.count >= limits.maximumSessions {
      let report = ErrorReport(
        .tooManySessions, "\(sessions.count) sessions play already",
        hint: "stop one, or raise --max-sessions",
        stage: .command)
      return refuse(inquiry, report, id)
    }
    let session = Session(id: id, request: request, source: source, lease: lease, inquiry: inquiry)
    sessions[id] = session
    emit(.extracting(url: request.url), id)
    advanceOpening(session)
  }

  /// Ends a session: nothing of it follows.
  func end(_ session: Session, _ reason: EngineEvent.EndReason, answering inquiry: Inquiry? = nil) {
    stopStreaming(session)
    sessions[session.id] = nil
    let report = ErrorReport(
      .superseded, "the session ended (\(reason.rawValue)) before this was done", stage: .command)
    refuse(session.playInquiry, report, session.id)
    refuse(session.pending?.inquiry, report, session.id)
    emit(
      .ended(reason, positionMilliseconds: session.cursor.positionMilliseconds), session.id,
      answering: inquiry)
  }

  /// The cursor is at the end of a timeline that grows no more.
  ///
  /// - Returns: whether the session goes on at another place right now.
  func reachEnd(_ session: Session) -> Bool {
    if let failure = session.cursor.timeline.failure {
      emit(.error(failure), session.id)
      end(session, .finished)
      return false
    }
    switch session.pending?.purpose {
    // The session is on its way to another place.
    case .seek, .loop: return true
    // Nothing is left that another volume could be heard in.
    case .volume, nil: break
    }
    guard session.request.loop else {
      end(session, .finished)
      return false
    }
    let start = session.request.startMilliseconds
    if session.cursor.timeline.covers(positionMilliseconds: start) {
      session.cursor.move(to: session.cursor.timeline.packetIndex(atMilliseconds: start))
      session.bufferingSinceNanoseconds = nil
      emit(.playing(anchor(session)), session.id)
      // A change of volume that was prepared for the end of this round is wanted at its beginning now.
      if let pending = session.pending, case .volume(let level) = pending.purpose {
        session.pending = nil
        requestMove(
          session, .volume(level), inquiry: pending.inquiry, startMilliseconds: start, volume: level)
      }
    } else {
      requestMove(session, .loop, inquiry: nil, startMilliseconds: start, volume: session.volume)
    }
    return true
  }

  // MARK: Opening

  private func timelineChanged(_ timeline: Timeline) {
    for session in sessions.values {
      if session.lease.timeline === timeline { advanceOpening(session) }
      if session.pending?.lease?.timeline === timeline { advanceMove(session) }
    }
  }

  private func advanceOpening(_ session: Session) {
    guard case .extracting = session.machine.state else { return }
    let timeline = session.lease.timeline
    switch timeline.phase {
    case .opening: return
    case .producing, .complete: becomeReady(session, timeline)
    case .failed:
      let report = timeline.failure ?? ErrorReport(.internal, "production ended without a reason")
      emit(.error(report), session.id, answering: session.playInquiry)
      session.playInquiry = nil
      end(session, .loadFailed)
    }
  }

  private func becomeReady(_ session: Session, _ timeline: Timeline) {
    guard let track = timeline.track else { return }
    session.track = track
    var timings = Ready.Timings()
    if let inquiry = session.playInquiry {
      timings.total = MonotonicClock.milliseconds(
        from: inquiry.askedNanoseconds, to: MonotonicClock.nowNanoseconds)
    }
    let journal = timeline.journal
    timings.queued = journal.milliseconds(of: .queue)
    timings.extract = journal.milliseconds(of: .extract)
    timings.resolve = journal.milliseconds(of: .resolve)
    timings.connect = journal.milliseconds(of: .connect)
    timings.probe = journal.milliseconds(of: .probe)
    timings.firstPacket = journal.milliseconds(of: .firstPacket)
    emit(.ready(Ready(session, track, timings)), session.id, answering: session.playInquiry)
    session.playInquiry = nil
    if session.machine.becomeReady() {
      startStreaming(session)
      emit(.playing(anchor(session)), session.id)
    } else {
      emit(.paused(positionMilliseconds: session.cursor.positionMilliseconds), session.id)
    }
  }

  // MARK: Commands

  private func perform(_ action: EngineCommand.SessionAction, on id: SessionID, _ inquiry: Inquiry) {
    guard let session = sessions[id] else {
      if case .status = action {
        let idle = SessionSnapshot(sessionID: id, state: .idle)
        return answer(inquiry, EngineEvent(.status(idle), sessionID: id))
      }
      let report = ErrorReport(
        .noSuchSession, "\(action.name): the session \(id) plays nothing", hint: "play something first",
        stage: .command)
      return refuse(inquiry, report, id)
    }
    do {
      try perform(action, on: session, inquiry)
    } catch {
      refuse(inquiry, error, id)
    }
  }

  private func perform(
    _ action: EngineCommand.SessionAction, on session: Session, _ inquiry: Inquiry
  ) throws(ErrorReport) {
    switch action {
    case .play: preconditionFailure("a play comes with its timeline")
    case .pause:
      try session.machine.pause()
      stopStreaming(session)
      emit(
        .paused(positionMilliseconds: session.cursor.positionMilliseconds), session.id, answering: inquiry)
      // A volume that waited for a tick to be spliced in at waits no more.
      advanceMove(session)
    case .resume:
      try session.machine.resume()
      startStreaming(session)
      emit(.resumed(anchor(session)), session.id, answering: inquiry)
    case .stop: end(session, .stopped, answering: inquiry)
    case .seek(let position): try seek(session, to: position, inquiry)
    case .volume(let level): try setVolume(session, level, inquiry)
    case .status:
      var snapshot = snapshot(session)
      snapshot.chapters = session.track?.chapters
      answer(inquiry, EngineEvent(.status(snapshot), sessionID: session.id))
    }
  }

  // MARK: Figures

  func updateSessionCounts() {
    pacer.statistics.update {
      $0.streaming = streamingCount
      $0.extracting = sessions.values.count { if case .extracting = $0.machine.state { true } else { false } }
      $0.paused = sessions.count - $0.streaming - $0.extracting
    }
  }
}
