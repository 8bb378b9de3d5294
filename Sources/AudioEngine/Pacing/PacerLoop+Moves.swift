import ServiceSupport
import WireProtocol

/// How a session's cursor comes to another place: at once where the packet is there, else by a move that
/// waits for another timeline. Runs on the pacer's thread.
extension PacerLoop {
  func seek(_ session: Session, to position: Int, _ inquiry: Inquiry) throws(ErrorReport) {
    try session.machine.requirePlace(for: "seek")
    if session.source.isEndlessScore {
      throw ErrorReport(
        .invalidState, "seek: what plays is an endless score, which has no places", stage: .command)
    }
    if let track = session.track, let duration = track.durationMilliseconds, position >= duration,
      !track.isDurationEstimated
    {
      throw ErrorReport(
        .invalidCommand, "seek: \(position) ms lies behind the end at \(duration) ms", stage: .command)
    }
    if let end = session.request.endMilliseconds, position >= end {
      throw ErrorReport(
        .invalidCommand, "seek: \(position) ms lies behind end_ms, \(end) ms", stage: .command)
    }
    supersedeMove(session)
    if Self.hasSound(session.cursor.timeline, atMilliseconds: position) {
      cut(session, .seek(session.lease, positionMilliseconds: position, inquiry))
    } else {
      requestMove(
        session, .seek(positionMilliseconds: position), inquiry: inquiry, startMilliseconds: position,
        volume: session.volume)
    }
  }

  func announceSeek(_ session: Session, _ inquiry: Inquiry?) {
    endUnderrun(session, now: MonotonicClock.nowNanoseconds)
    let anchor = anchor(session)
    emit(
      .seeked(
        positionMilliseconds: anchor.positionMilliseconds,
        dueNanoseconds: session.nextTick == nil ? nil : anchor.dueNanoseconds),
      session.id, answering: inquiry)
  }

  /// Whether a timeline has what a splice into it needs: more than the one packet, unless it ends there.
  private static func hasSound(_ timeline: Timeline, atMilliseconds position: Int) -> Bool {
    // The phase is read before the count: a complete timeline has every packet it will ever have.
    let isComplete = timeline.phase == .complete
    guard timeline.hasPacket(atMilliseconds: position) else { return false }
    return isComplete
      || timeline.packetIndex(atMilliseconds: position) + Splice.packetsFrom <= timeline.packetCount
  }

  func setVolume(_ session: Session, _ level: Double, _ inquiry: Inquiry) throws(ErrorReport) {
    try session.machine.requirePlace(for: "volume")
    supersedeMove(session)
    guard level != session.volume else {
      return answer(inquiry, EngineEvent(.status(snapshot(session)), sessionID: session.id))
    }
    if let performance = session.lease.timeline.performance {
      performance.setGain(level)
      return volumeChanged(session, to: level, inquiry)
    }
    // The other timeline begins a little before, so that its encoder, and a splice into it, have settled.
    let lead = (Splice.packetsBefore + 2) * WireLimits.packetDurationMilliseconds
    requestMove(
      session, .volume(level), inquiry: inquiry,
      startMilliseconds: max(0, session.cursor.positionMilliseconds - lead), volume: level)
  }

  func volumeChanged(_ session: Session, to level: Double, _ inquiry: Inquiry?) {
    session.volume = level
    emit(.status(snapshot(session)), session.id, answering: inquiry)
    prepareNextAgain(session)
  }

  func requestMove(
    _ session: Session, _ purpose: PendingMove.Purpose, inquiry: Inquiry?, startMilliseconds: Int,
    volume: Double
  ) {
    supersedeMove(session)
    moveCount += 1
    session.pending = PendingMove(number: moveCount, purpose: purpose, inquiry: inquiry)
    acquireTimeline(
      session.id, moveCount, session.key(startMilliseconds: startMilliseconds, volume: volume),
      session.lease.timeline.client)
  }

  func supersedeMove(_ session: Session) {
    guard let pending = session.pending else { return }
    session.pending = nil
    refuse(pending.inquiry, .overtaken, session.id)
  }

  func timelineAcquired(
    _ id: SessionID, _ number: UInt64, _ result: Result<TimelineLease, ErrorReport>
  ) {
    guard let session = sessions[id] else { return }
    if session.next?.number == number { return nextAcquired(session, result) }
    guard session.pending?.number == number else { return }
    switch result {
    case .success(let lease):
      session.pending?.lease = lease
      expect(lease, id)
      advanceMove(session)
    case .failure(let report): failMove(session, report)
    }
  }

  /// Looks whether the other timeline has what a move waits for.
  func advanceMove(_ session: Session) {
    guard let pending = session.pending, let lease = pending.lease, session.cut == nil else { return }
    let timeline = lease.timeline
    switch (timeline.phase, pending.purpose) {
    case (.opening, _): return
    case (.failed, _): failMove(session, timeline.failure ?? .superseded)
    case (_, .seek(let position)):
      // A place that comes in a moment is waited for, where something is heard meanwhile.
      if session.nextTick != nil, timeline.phase == .producing,
        !Self.hasSound(timeline, atMilliseconds: position)
      {
        return timeline.isWanted(atMilliseconds: position)
      }
      session.pending = nil
      cut(session, .seek(lease, positionMilliseconds: position, pending.inquiry))
    case (_, .volume(let level)):
      // The splice lies some packets ahead.
      let position =
        session.cursor.positionMilliseconds + Splice.packetsFrom * WireLimits.packetDurationMilliseconds
      let isThere = timeline.phase == .complete || Self.hasSound(timeline, atMilliseconds: position)
      guard session.nextTick == nil || isThere else { return }
      session.pending = nil
      cut(session, .volume(level, lease, pending.inquiry))
    case (_, .loop):
      session.pending = nil
      session.move(to: lease, positionMilliseconds: session.request.startMilliseconds)
      endUnderrun(session, now: MonotonicClock.nowNanoseconds)
      if session.nextTick != nil { emit(.playing(anchor(session)), session.id) }
    }
  }

  private func failMove(_ session: Session, _ report: ErrorReport) {
    guard let pending = session.pending else { return }
    session.pending = nil
    refuse(pending.inquiry, report, session.id)
    if case .loop = pending.purpose {
      session.history.failed(report, nowNanoseconds: MonotonicClock.nowNanoseconds)
      emit(.error(report), session.id)
      end(session, .finished)
    }
  }
}

extension ErrorReport {
  /// Another command of the same kind came before this one was done.
  static let overtaken = ErrorReport(.superseded, "a newer command took its place", stage: .command)
}
