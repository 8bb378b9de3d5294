import WireProtocol

/// How a session's cursor comes to another place: at once where the packet is there, else by a move that
/// waits for another timeline.
extension SessionDirector {
  func seek(
    _ session: Session, to position: Int, _ pendingRequest: PendingRequest, now: UInt64
  ) throws(ErrorReport) {
    try session.machine.requirePlace(for: "seek")
    if session.cursor.timeline.isLive {
      throw ErrorReport(
        .invalidState, "seek: what plays is live, and has no other place than now", stage: .command)
    }
    if session.source.isEndlessScore {
      throw ErrorReport(
        .invalidState, "seek: what plays is an endless score, which has no places", stage: .command)
    }
    if let track = session.track, let duration = track.durationMilliseconds, position >= duration,
      !track.isDurationEstimated
    {
      throw ErrorReport(
        .invalidCommand, "seek: \(position) ms is past the end at \(duration) ms", stage: .command)
    }
    if let end = session.request.endMilliseconds, position >= end {
      throw ErrorReport(
        .invalidCommand, "seek: \(position) ms is past end_ms, \(end) ms", stage: .command)
    }
    deferVolume(session)
    supersedeMove(session)
    if session.pendingVolume == nil, Self.hasSound(session.cursor.timeline, atMilliseconds: position) {
      let seek = PendingTransition.Action.seek(session.lease, positionMilliseconds: position, pendingRequest)
      startTransition(session, seek, now: now)
    } else {
      requestMove(
        session, .seek(positionMilliseconds: position), pendingRequest: pendingRequest,
        startMilliseconds: position, volume: session.targetVolume)
    }
  }

  /// A level that is on its way takes effect with the move that comes before it is there: neither is lost.
  func deferVolume(_ session: Session) {
    guard let move = session.pendingMove, case .volume(let level) = move.purpose else { return }
    session.pendingMove = nil
    session.pendingVolume = PendingVolume(volume: level, pendingRequest: move.pendingRequest)
  }

  func applyPendingVolume(_ session: Session) {
    guard let pending = session.pendingVolume else { return }
    session.pendingVolume = nil
    volumeChanged(session, to: pending.volume, pending.pendingRequest)
  }

  func announceSeek(_ session: Session, _ pendingRequest: PendingRequest?, now: UInt64) {
    endUnderrun(session, now: now)
    let anchor = anchor(session)
    emit(
      .seeked(
        positionMilliseconds: anchor.positionMilliseconds,
        dueNanoseconds: session.nextTick == nil ? nil : anchor.dueNanoseconds),
      session.id, answering: pendingRequest)
  }

  /// Whether a timeline has what a splice into it needs: more than the one packet, unless it ends there.
  private static func hasSound(_ timeline: Timeline, atMilliseconds position: Int) -> Bool {
    // The phase is read before the count: a complete timeline has every packet it will ever have.
    let isComplete = timeline.phase == .complete
    guard timeline.hasPacket(atMilliseconds: position) else { return false }
    return isComplete
      || timeline.packetIndex(atMilliseconds: position) + Splice.packetsFrom <= timeline.packetCount
  }

  func setVolume(
    _ session: Session, _ level: Double, _ pendingRequest: PendingRequest
  ) throws(ErrorReport) {
    try session.machine.requirePlace(for: "volume")
    if let move = session.pendingMove, case .seek(let position) = move.purpose {
      // The place that is on its way is opened at the new level.
      reject(session.pendingVolume?.pendingRequest, .overtaken, session.id)
      session.pendingVolume = PendingVolume(volume: level, pendingRequest: pendingRequest)
      session.pendingMove = nil
      return requestMove(
        session, move.purpose, pendingRequest: move.pendingRequest, startMilliseconds: position, volume: level
      )
    }
    supersedeMove(session)
    guard level != session.volume else {
      return answer(pendingRequest, EngineEvent(.status(snapshot(session)), sessionID: session.id))
    }
    if let liveScore = session.lease.timeline.liveScore {
      liveScore.setGain(level)
      return volumeChanged(session, to: level, pendingRequest)
    }
    requestVolume(session, level, pendingRequest)
  }

  private func requestVolume(_ session: Session, _ level: Double, _ pendingRequest: PendingRequest?) {
    // The other timeline begins a little before, so that its encoder, and a splice into it, have settled.
    let lead = (Splice.packetsBefore + 2) * WireLimits.packetDurationMilliseconds
    requestMove(
      session, .volume(level), pendingRequest: pendingRequest,
      startMilliseconds: max(0, session.cursor.positionMilliseconds - lead), volume: level)
  }

  func volumeChanged(_ session: Session, to level: Double, _ pendingRequest: PendingRequest?) {
    session.volume = level
    emit(.status(snapshot(session)), session.id, answering: pendingRequest)
    prepareNextAgain(session)
  }

  func requestMove(
    _ session: Session, _ purpose: PendingMove.Purpose, pendingRequest: PendingRequest?,
    startMilliseconds: Int, volume: Double
  ) {
    supersedeMove(session)
    moveCount += 1
    session.pendingMove = PendingMove(number: moveCount, purpose: purpose, pendingRequest: pendingRequest)
    effects.acquireTimeline(
      for: session.id, moveNumber: moveCount,
      key: session.key(startMilliseconds: startMilliseconds, volume: volume),
      client: session.lease.timeline.client)
  }

  func supersedeMove(_ session: Session) {
    guard let move = session.pendingMove else { return }
    session.pendingMove = nil
    reject(move.pendingRequest, .overtaken, session.id)
  }

  func timelineAcquired(
    _ id: SessionID, _ number: UInt64, _ result: Result<TimelineLease, ErrorReport>, now: UInt64
  ) {
    guard let session = sessions[id] else { return }
    if session.next?.number == number { return nextAcquired(session, result, now: now) }
    guard session.pendingMove?.number == number else { return }
    switch result {
    case .success(let lease):
      session.pendingMove?.lease = lease
      expect(lease, id)
      advanceMove(session, now: now)
    case .failure(let report): failMove(session, report, now: now)
    }
  }

  /// Completes a move once the other timeline has what it waits for.
  func advanceMove(_ session: Session, now: UInt64) {
    guard let move = session.pendingMove, let lease = move.lease, session.transition == nil else { return }
    let timeline = lease.timeline
    switch (timeline.phase, move.purpose) {
    case (.opening, _): return
    case (.failed, _): failMove(session, timeline.failure ?? .superseded, now: now)
    case (_, .seek(let position)):
      // A place that comes in a moment is waited for, where something is heard meanwhile.
      if session.nextTick != nil, timeline.phase == .producing,
        !Self.hasSound(timeline, atMilliseconds: position)
      {
        return timeline.requestProduction(upToMilliseconds: position)
      }
      session.pendingMove = nil
      let seek = PendingTransition.Action.seek(lease, positionMilliseconds: position, move.pendingRequest)
      startTransition(session, seek, now: now)
    case (_, .volume(let level)):
      // The splice lies some packets ahead.
      let position =
        session.cursor.positionMilliseconds + Splice.packetsFrom * WireLimits.packetDurationMilliseconds
      let isThere = timeline.phase == .complete || Self.hasSound(timeline, atMilliseconds: position)
      guard session.nextTick == nil || isThere else { return }
      session.pendingMove = nil
      startTransition(
        session, .volume(level, lease, move.pendingRequest), asked: move.askedNanoseconds, now: now)
    case (_, .loop):
      session.pendingMove = nil
      session.move(to: lease, positionMilliseconds: session.request.startMilliseconds)
      endUnderrun(session, now: now)
      if session.nextTick != nil { emit(.playing(anchor(session)), session.id) }
      applyPendingVolume(session)
    }
  }

  private func failMove(_ session: Session, _ report: ErrorReport, now: UInt64) {
    guard let move = session.pendingMove else { return }
    session.pendingMove = nil
    reject(move.pendingRequest, report, session.id)
    switch move.purpose {
    case .seek:
      guard let pending = session.pendingVolume else { return }
      session.pendingVolume = nil
      requestVolume(session, pending.volume, pending.pendingRequest)
    case .volume: break
    case .loop:
      session.history.failed(report, nowNanoseconds: now)
      emit(.error(report), session.id)
      end(session, .finished, now: now)
    }
  }
}
