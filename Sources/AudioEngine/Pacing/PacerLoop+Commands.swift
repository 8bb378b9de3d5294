import ServiceSupport
import WireProtocol

/// What messages do to sessions. Runs between rounds, on the pacer's thread.
extension PacerLoop {
  func handle(_ message: PacerMessage) {
    switch message {
    case .connected(let connection): connect(connection)
    case .disconnected(let id): disconnect(id)
    case .play(let new): play(new)
    case .prepare(let next, let inquiry): prepare(next, inquiry)
    case .command(let id, let action, let inquiry): perform(action, on: id, inquiry)
    case .answer(let event, let inquiry): answer(inquiry, event)
    case .announce(let event): batch.append(event)
    case .aside(let line, let requestID, let connection):
      batch.append(aside: line, to: connection, requestID: requestID)
    case .timelineChanged(let timeline): timelineChanged(timeline)
    case .timelineAcquired(let id, let number, let result): timelineAcquired(id, number, result)
    case .joined(let id, let timelineID, let result, let inquiry): joined(id, timelineID, result, inquiry)
    case .spliced(let id, let number, let packets): spliced(id, cutNumber: number, packets)
    case .inspect(let receiver): inspection.add(receiver)
    case .ping(let answer): answer()
    }
  }

  // MARK: Events and answers

  /// Tells every router of a session's change, and whoever asked for it.
  func emit(_ body: EngineEvent.Body, _ id: SessionID, answering inquiry: Inquiry? = nil) {
    if case .error(let report) = body { pacer.onFailure(report, id) }
    var event = EngineEvent(body, sessionID: id)
    if case .closure(let answer) = inquiry?.requester { answer(event) }
    if case .router = inquiry?.requester { event.requestID = inquiry?.requestID }
    batch.append(event)
  }

  /// Tells the requester alone.
  func answer(_ inquiry: Inquiry, _ event: EngineEvent) {
    switch inquiry.requester {
    case .closure(let answer): answer(event)
    case .router(let connection):
      var event = event
      event.requestID = inquiry.requestID
      batch.append(answer: event, to: connection)
    }
  }

  func refuse(_ inquiry: Inquiry?, _ report: ErrorReport, _ id: SessionID) {
    guard let inquiry else { return }
    answer(inquiry, EngineEvent(.error(report), sessionID: id))
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

  // MARK: Beginning and ending

  private func play(_ play: NewPlay) {
    settleCut(of: play.id, before: .play(play.request))
    if let existing = sessions[play.id] {
      // What is prepared was to follow the track that ends now.
      dropNext(existing)
      return cut(existing, .replace(play))
    }
    guard sessions.count < limits.maximumSessions else {
      let report = ErrorReport(
        .tooManySessions, "\(sessions.count) sessions play already",
        hint: "stop one, or raise --max-sessions", stage: .command)
      return play.inquiry.map { refuse($0, report, play.id) } ?? ()
    }
    begin(play)
  }

  func begin(_ play: NewPlay) {
    let session = Session(play)
    sessions[play.id] = session
    extractingCount += 1
    expect(play.lease, play.id)
    pacer.onChange(.began(url: play.request.url), play.id)
    emit(.extracting(url: play.request.url, tag: play.request.tag), play.id)
    advanceOpening(session)
  }

  /// Ends a session: nothing of it follows.
  func end(_ session: Session, _ reason: EngineEvent.EndReason, answering inquiry: Inquiry? = nil) {
    stopStreaming(session)
    sessions[session.id] = nil
    if case .extracting = session.machine.state { extractingCount -= 1 }
    let report = ErrorReport(
      .superseded, "the session ended (\(reason.rawValue)) before this was done", stage: .command)
    let waiting = [
      session.playInquiry, session.cut?.inquiry, session.pending?.inquiry, session.next?.inquiry,
    ]
    for inquiry in waiting {
      refuse(inquiry, report, session.id)
    }
    pacer.onChange(.ended(reason, session.history.sent), session.id)
    recentEnds.add(session.id, diagnosis(of: session, ended: reason))
    emit(
      .ended(reason, positionMilliseconds: session.cursor.positionMilliseconds), session.id,
      answering: inquiry)
  }

  // MARK: Opening

  private func timelineChanged(_ timeline: Timeline) {
    for id in expecting[ObjectIdentifier(timeline)] ?? [] {
      guard let session = sessions[id] else { continue }
      if session.lease.timeline === timeline { advanceOpening(session) }
      if session.pending?.lease?.timeline === timeline { advanceMove(session) }
      if session.next?.play.lease.timeline === timeline { advanceNext(session) }
    }
  }

  /// A session waits for what becomes of a timeline: of many sessions, the few that do are found by it.
  func expect(_ lease: TimelineLease, _ id: SessionID) {
    let timeline = lease.timeline
    guard timeline.phase == .opening || timeline.phase == .producing else { return }
    expecting[ObjectIdentifier(timeline), default: []].insert(id)
  }

  /// Forgets those that no longer wait.
  func renewExpectations() {
    expecting.removeAll(keepingCapacity: true)
    for session in sessions.values {
      if case .extracting = session.machine.state { expect(session.lease, session.id) }
      if let lease = session.pending?.lease { expect(lease, session.id) }
      if let next = session.next, next.inquiry != nil { expect(next.play.lease, session.id) }
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
      session.history.failed(report, nowNanoseconds: MonotonicClock.nowNanoseconds)
      emit(.error(report), session.id, answering: session.playInquiry)
      session.playInquiry = nil
      end(session, .loadFailed)
    }
  }

  private func becomeReady(_ session: Session, _ timeline: Timeline) {
    guard let track = timeline.track else { return }
    session.track = track
    emit(
      .ready(ready(session.request, track, timeline, asked: session.playInquiry)), session.id,
      answering: session.playInquiry)
    session.playInquiry = nil
    extractingCount -= 1
    guard session.machine.becomeReady() else { return pause(session, nil) }
    // What begins at the source's own beginning needs no fade, and what follows another track has no time.
    guard session.request.startMilliseconds > 0, joiningTick == nil else {
      startStreaming(session)
      return emit(.playing(anchor(session)), session.id)
    }
    cut(session, .begin)
  }

  /// What is known of a track, and how long each stage of opening it took: nothing where it was there already.
  func ready(
    _ request: PlayRequest, _ track: TrackDetails, _ timeline: Timeline, asked: Inquiry?
  ) -> Ready {
    var timings = Ready.Timings()
    if let asked {
      timings.total = MonotonicClock.milliseconds(
        from: asked.askedNanoseconds, to: MonotonicClock.nowNanoseconds)
    }
    func milliseconds(_ stage: StageRecord.Stage) -> Double? {
      timeline.journal.milliseconds(of: stage, since: asked?.askedNanoseconds ?? 0)
    }
    timings.queued = milliseconds(.queue)
    timings.extract = milliseconds(.extract)
    timings.resolve = milliseconds(.resolve)
    timings.connect = milliseconds(.connect)
    timings.probe = milliseconds(.probe)
    timings.firstPacket = milliseconds(.firstPacket)
    return Ready(request, track, timings)
  }

  // MARK: Commands

  private func perform(_ action: EngineCommand.SessionAction, on id: SessionID, _ inquiry: Inquiry) {
    settleCut(of: id, before: action)
    guard let session = sessions[id] else {
      switch action {
      case .status:
        let idle = SessionSnapshot(sessionID: id, state: .idle)
        return answer(inquiry, EngineEvent(.status(idle), sessionID: id))
      case .why: return answer(inquiry, EngineEvent(.why(recentEnds.diagnosis(of: id)), sessionID: id))
      default: break
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
    case .play, .prepare: preconditionFailure("a play comes with its timeline")
    case .pause:
      try session.machine.requireStreaming()
      cut(session, .pause(inquiry))
    case .resume:
      try session.machine.requirePaused()
      cut(session, .resume(inquiry))
    case .stop: cut(session, .stop(inquiry))
    case .seek(let position): try seek(session, to: position, inquiry)
    case .volume(let level): try setVolume(session, level, inquiry)
    case .perform(let score): try join(score, session, inquiry)
    case .mute(let roles): try mute(roles, session, inquiry)
    case .unprepare:
      dropNext(session)
      answerStatus(session, inquiry)
    case .status: answerStatus(session, inquiry)
    case .why: answer(inquiry, EngineEvent(.why(diagnosis(of: session, ended: nil)), sessionID: session.id))
    }
  }

  private func answerStatus(_ session: Session, _ inquiry: Inquiry) {
    var snapshot = snapshot(session)
    snapshot.chapters = session.track?.chapters
    answer(inquiry, EngineEvent(.status(snapshot), sessionID: session.id))
  }

  /// - Parameter inquiry: nil for a session that begins paused.
  func pause(_ session: Session, _ inquiry: Inquiry?) {
    session.machine.pause()
    stopStreaming(session)
    session.pausedSinceNanoseconds = MonotonicClock.nowNanoseconds
    emit(.paused(positionMilliseconds: session.cursor.positionMilliseconds), session.id, answering: inquiry)
    // A volume that waited for a tick to be spliced in at waits no more.
    advanceMove(session)
  }

  func resume(_ session: Session, _ inquiry: Inquiry) {
    session.machine.resume()
    session.pausedSinceNanoseconds = nil
    startStreaming(session)
    emit(.resumed(anchor(session)), session.id, answering: inquiry)
  }
}
