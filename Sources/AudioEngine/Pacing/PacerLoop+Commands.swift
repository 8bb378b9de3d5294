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
  private func answer(_ inquiry: Inquiry, _ event: EngineEvent) {
    switch inquiry.asker {
    case .closure(let answer): answer(event)
    case .router(let connection):
      var event = event
      event.requestID = inquiry.requestID
      batch.append(event, to: connection)
    }
  }

  private func refuse(_ inquiry: Inquiry?, _ report: ErrorReport, _ id: SessionID) {
    guard let inquiry else { return }
    answer(inquiry, EngineEvent(.error(report), sessionID: id))
  }

  func snapshot(_ session: Session) -> SessionSnapshot {
    var snapshot = SessionSnapshot(sessionID: session.id, state: session.machine.visible)
    snapshot.url = session.request.url
    snapshot.volume = session.volume
    snapshot.loop = session.request.loop
    snapshot.positionMilliseconds = session.cursor.positionMilliseconds
    if let track = session.track {
      snapshot.title = track.title
      snapshot.durationMilliseconds = track.durationMilliseconds
      snapshot.codec = track.codec
      snapshot.passthrough = track.isPassthrough
    }
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
  private func end(_ session: Session, _ reason: EngineEvent.EndReason, answering inquiry: Inquiry? = nil) {
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
    timings.queued = track.queuedMilliseconds
    timings.open = track.openMilliseconds
    timings.probe = track.probeMilliseconds
    timings.firstPacket = track.firstPacketMilliseconds
    let ready = Ready(
      url: session.request.url, title: track.title, durationMilliseconds: track.durationMilliseconds,
      codec: track.codec, passthrough: track.isPassthrough, timings: timings)
    emit(.ready(ready), session.id, answering: session.playInquiry)
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
    case .status: answer(inquiry, EngineEvent(.status(snapshot(session)), sessionID: session.id))
    }
  }

  private func seek(_ session: Session, to position: Int, _ inquiry: Inquiry) throws(ErrorReport) {
    try session.machine.requirePlace(for: "seek")
    if let track = session.track, let duration = track.durationMilliseconds, position >= duration,
      !track.isDurationEstimated
    {
      throw ErrorReport(
        .invalidCommand, "seek: \(position) ms lies behind the end at \(duration) ms", stage: .command)
    }
    supersedeMove(session)
    let timeline = session.cursor.timeline
    if timeline.hasPacket(atMilliseconds: position) {
      session.cursor.move(to: timeline.packetIndex(atMilliseconds: position))
      announceSeek(session, inquiry)
    } else {
      requestMove(
        session, .seek(positionMilliseconds: position), inquiry: inquiry, startMilliseconds: position,
        volume: session.volume)
    }
  }

  private func announceSeek(_ session: Session, _ inquiry: Inquiry?) {
    session.bufferingSinceNanoseconds = nil
    let anchor = anchor(session)
    emit(
      .seeked(
        positionMilliseconds: anchor.positionMilliseconds,
        dueNanoseconds: session.nextTick == nil ? nil : anchor.dueNanoseconds),
      session.id, answering: inquiry)
  }

  private func setVolume(_ session: Session, _ level: Double, _ inquiry: Inquiry) throws(ErrorReport) {
    try session.machine.requirePlace(for: "volume")
    supersedeMove(session)
    guard level != session.volume else {
      return answer(inquiry, EngineEvent(.status(snapshot(session)), sessionID: session.id))
    }
    // The other timeline begins a little before, so that its encoder has settled where it is spliced in.
    let start = max(0, session.cursor.positionMilliseconds - 5 * WireLimits.packetDurationMilliseconds)
    requestMove(session, .volume(level), inquiry: inquiry, startMilliseconds: start, volume: level)
  }

  // MARK: Moves to another timeline

  private func requestMove(
    _ session: Session, _ purpose: PendingMove.Purpose, inquiry: Inquiry?, startMilliseconds: Int,
    volume: Double
  ) {
    supersedeMove(session)
    moveCount += 1
    session.pending = PendingMove(number: moveCount, purpose: purpose, inquiry: inquiry)
    let packet = WireLimits.packetDurationMilliseconds
    let start = startMilliseconds / packet * packet
    acquireTimeline(session.id, moveCount, session.key(startMilliseconds: start, volume: volume))
  }

  private func supersedeMove(_ session: Session) {
    guard let pending = session.pending else { return }
    session.pending = nil
    let report = ErrorReport(.superseded, "a newer command took its place", stage: .command)
    refuse(pending.inquiry, report, session.id)
  }

  private func timelineAcquired(
    _ id: SessionID, _ number: UInt64, _ result: Result<TimelineLease, ErrorReport>
  ) {
    guard let session = sessions[id], session.pending?.number == number else { return }
    switch result {
    case .success(let lease):
      session.pending?.lease = lease
      advanceMove(session)
    case .failure(let report): failMove(session, report)
    }
  }

  /// Looks whether the other timeline has what a move waits for.
  func advanceMove(_ session: Session) {
    guard let pending = session.pending, let lease = pending.lease else { return }
    switch (lease.timeline.phase, pending.purpose) {
    case (.opening, _): return
    case (.failed, _): failMove(session, lease.timeline.failure ?? .superseded)
    // While it streams, the splice is made at a tick; and a place that comes in a moment is waited for.
    case (_, .volume) where session.nextTick != nil: return
    case (.producing, .seek(let position))
    where session.nextTick != nil && !lease.timeline.hasPacket(atMilliseconds: position):
      lease.timeline.isWanted(atMilliseconds: position)
    case (_, .volume): finishVolume(session, pending, lease)
    case (_, .seek(let position)):
      session.pending = nil
      session.move(to: lease, positionMilliseconds: position)
      announceSeek(session, pending.inquiry)
    case (_, .loop):
      session.pending = nil
      session.move(to: lease, positionMilliseconds: session.request.startMilliseconds)
      session.bufferingSinceNanoseconds = nil
      if session.nextTick != nil { emit(.playing(anchor(session)), session.id) }
    }
  }

  /// Splices to another volume once the other timeline has the packet that is next.
  func finishVolumeMove(_ session: Session) {
    guard let pending = session.pending, case .volume = pending.purpose, let lease = pending.lease,
      lease.timeline.phase != .opening,
      lease.timeline.hasPacket(atMilliseconds: session.cursor.positionMilliseconds)
    else { return }
    finishVolume(session, pending, lease)
  }

  private func finishVolume(_ session: Session, _ pending: PendingMove, _ lease: TimelineLease) {
    guard case .volume(let level) = pending.purpose else { return }
    session.pending = nil
    session.volume = level
    session.move(to: lease, positionMilliseconds: session.cursor.positionMilliseconds)
    emit(.status(snapshot(session)), session.id, answering: pending.inquiry)
  }

  private func failMove(_ session: Session, _ report: ErrorReport) {
    guard let pending = session.pending else { return }
    session.pending = nil
    refuse(pending.inquiry, report, session.id)
    if case .loop = pending.purpose {
      emit(.error(report), session.id)
      end(session, .finished)
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
