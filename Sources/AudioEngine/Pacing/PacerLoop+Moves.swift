import WireProtocol

/// How a session's cursor comes to another place: at once where the packet is there, else by a move that
/// waits for another timeline. Runs on the pacer's thread.
extension PacerLoop {
  func seek(_ session: Session, to position: Int, _ inquiry: Inquiry) throws(ErrorReport) {
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

  func setVolume(_ session: Session, _ level: Double, _ inquiry: Inquiry) throws(ErrorReport) {
    try session.machine.requirePlace(for: "volume")
    supersedeMove(session)
    guard level != session.volume else {
      return answer(inquiry, EngineEvent(.status(snapshot(session)), sessionID: session.id))
    }
    // The other timeline begins a little before, so that its encoder has settled where it is spliced in.
    let start = max(0, session.cursor.positionMilliseconds - 5 * WireLimits.packetDurationMilliseconds)
    requestMove(session, .volume(level), inquiry: inquiry, startMilliseconds: start, volume: level)
  }

  func requestMove(
    _ session: Session, _ purpose: PendingMove.Purpose, inquiry: Inquiry?, startMilliseconds: Int,
    volume: Double
  ) {
    supersedeMove(session)
    moveCount += 1
    session.pending = PendingMove(number: moveCount, purpose: purpose, inquiry: inquiry)
    acquireTimeline(
      session.id, moveCount, session.key(startMilliseconds: startMilliseconds, volume: volume))
  }

  func supersedeMove(_ session: Session) {
    guard let pending = session.pending else { return }
    session.pending = nil
    let report = ErrorReport(.superseded, "a newer command took its place", stage: .command)
    refuse(pending.inquiry, report, session.id)
  }

  func timelineAcquired(
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
}
