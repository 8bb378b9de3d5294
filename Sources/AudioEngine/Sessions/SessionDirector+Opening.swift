import ServiceSupport
import WireProtocol

/// How sessions begin, become ready, and end.
extension SessionDirector {
  func play(_ play: NewPlay, now: UInt64) {
    guard admit(play.pendingRequest, to: play.id) else { return }
    settleTransition(of: play.id, before: .play(play.request), now: now)
    if let existing = sessions[play.id] {
      // What is prepared was to follow the track that ends now.
      dropNext(existing)
      return startTransition(existing, .replace(play), now: now)
    }
    guard sessions.count < limits.maximumSessions else {
      let report = ErrorReport(
        .tooManySessions, "\(sessions.count) sessions play already",
        hint: "stop one, or raise --max-sessions", stage: .command)
      return reject(play.pendingRequest, report, play.id)
    }
    begin(play, owner: play.pendingRequest?.claim, now: now)
  }

  /// - Parameter joiningTick: the tick of a track that follows another one.
  func begin(_ play: NewPlay, owner: SessionOwner?, at joiningTick: UInt64? = nil, now: UInt64) {
    let session = Session(play, owner: owner, now: now)
    sessions[play.id] = session
    counts.extracting += 1
    expect(play.lease, play.id)
    effects.report(.began(url: play.request.url), of: play.id)
    tell(.extracting(url: play.request.url, tag: play.request.tag), session)
    advanceOpening(session, at: joiningTick, now: now)
  }

  /// Ends a session: nothing of it follows.
  func end(
    _ session: Session, _ reason: EngineEvent.EndReason, answering pendingRequest: PendingRequest? = nil,
    now: UInt64
  ) {
    stopStreaming(session, now: now)
    sessions[session.id] = nil
    if case .extracting = session.machine.state { counts.extracting -= 1 }
    let report = ErrorReport(
      .superseded, "the session ended (\(reason.rawValue)) before this was done", stage: .command)
    let waiting = [
      session.pendingPlay, session.transition?.pendingRequest, session.pendingMove?.pendingRequest,
      session.pendingVolume?.pendingRequest,
      session.next?.pendingRequest, session.handOver?.pendingRequest,
    ]
    for pendingRequest in waiting { reject(pendingRequest, report, session.id) }
    effects.report(.ended(reason, session.history.sent), of: session.id)
    recentEnds.add(session.id, diagnosis(of: session, ended: reason, now: now), now: now)
    tell(
      .ended(reason, positionMilliseconds: session.cursor.positionMilliseconds), session,
      answering: pendingRequest)
  }

  // MARK: Timelines

  func timelineChanged(_ timeline: Timeline, now: UInt64) {
    for id in expecting[ObjectIdentifier(timeline)] ?? [] {
      // Looked up each time: where the timeline has failed, the session may be over, and all that waited answered.
      if let session = sessions[id], session.lease.timeline === timeline { advanceOpening(session, now: now) }
      if let session = sessions[id], session.pendingMove?.lease?.timeline === timeline {
        advanceMove(session, now: now)
      }
      if let session = sessions[id], session.next?.play.lease.timeline === timeline {
        advanceNext(session, now: now)
      }
    }
  }

  /// A session waits for what becomes of a timeline: of many sessions, the few that do are found by it.
  func expect(_ lease: TimelineLease, _ id: SessionID) {
    // Also of one that is complete: the message that says so may not have come yet.
    expecting[ObjectIdentifier(lease.timeline), default: []].insert(id)
  }

  /// Forgets those that no longer wait.
  func renewExpectations() {
    expecting.removeAll(keepingCapacity: true)
    for session in sessions.values {
      if case .extracting = session.machine.state { expect(session.lease, session.id) }
      if let lease = session.pendingMove?.lease { expect(lease, session.id) }
      if let next = session.next, next.pendingRequest != nil { expect(next.play.lease, session.id) }
    }
  }

  private func advanceOpening(_ session: Session, at joiningTick: UInt64? = nil, now: UInt64) {
    guard case .extracting = session.machine.state else { return }
    let timeline = session.lease.timeline
    switch timeline.phase {
    case .opening: return
    case .producing, .complete: becomeReady(session, timeline, at: joiningTick, now: now)
    case .failed:
      let report = timeline.failure ?? ErrorReport(.internal, "production ended without a reason")
      session.history.failed(report, nowNanoseconds: now)
      tell(.error(report), session, answering: session.pendingPlay)
      session.pendingPlay = nil
      end(session, .loadFailed, now: now)
    }
  }

  private func becomeReady(_ session: Session, _ timeline: Timeline, at joiningTick: UInt64?, now: UInt64) {
    guard let track = timeline.track else { return }
    session.track = track
    tell(
      .ready(ready(session.request, track, timeline, asked: session.pendingPlay, now: now)), session,
      answering: session.pendingPlay)
    session.pendingPlay = nil
    counts.extracting -= 1
    guard session.machine.becomeReady() else { return pause(session, nil, now: now) }
    // What begins at the source's own beginning needs no fade, and what follows another track has no time.
    guard session.request.startMilliseconds > 0, joiningTick == nil else {
      startStreaming(session, at: joiningTick, now: now)
      return emit(.playing(anchor(session)), session.id)
    }
    startTransition(session, .begin, now: now)
  }

  /// What is known of a track, and how long each stage of opening it took: nothing where it was there already.
  func ready(
    _ request: PlayRequest, _ track: TrackDetails, _ timeline: Timeline, asked: PendingRequest?, now: UInt64
  ) -> Ready {
    var timings = Ready.Timings()
    if let asked {
      timings.total = MonotonicClock.milliseconds(from: asked.askedNanoseconds, to: now)
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
}
