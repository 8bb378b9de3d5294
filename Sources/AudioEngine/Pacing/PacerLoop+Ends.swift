import ServiceSupport
import WireProtocol

/// What comes when a track is over: an end, its beginning, or the track that was prepared. Runs on the pacer's
/// thread.
extension PacerLoop {
  /// The cursor is at the end of a timeline that grows no more, or of the part that is to be played.
  ///
  /// - Returns: whether the session goes on at another place right now.
  func reachEnd(_ session: Session) -> Bool {
    let timeline = session.cursor.timeline
    if !session.cursor.hasPacket, let failure = timeline.failure {
      session.history.failed(failure, nowNanoseconds: MonotonicClock.nowNanoseconds)
      emit(.error(failure), session.id)
      finish(session)
      return false
    }
    switch session.pending?.purpose {
    // The session is on its way to another place.
    case .seek, .loop: return true
    // Nothing is left that another volume could be heard in.
    case .volume, nil: break
    }
    guard session.request.loop else {
      finish(session)
      return false
    }
    let start = session.request.startMilliseconds
    if timeline.covers(positionMilliseconds: start) {
      session.cursor.move(to: timeline.packetIndex(atMilliseconds: start))
      endUnderrun(session, now: MonotonicClock.nowNanoseconds)
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

  /// Watches over the end of a part: a few packets before it, its last one begins to be faded.
  ///
  /// - Returns: whether there is something to be sent.
  func goOn(_ session: Session, before end: Int) -> Bool {
    let packet = WireLimits.packetDurationMilliseconds
    let position = session.cursor.positionMilliseconds
    guard position + packet <= end else {
      guard reachEnd(session) else { return false }
      if session.cursor.positionMilliseconds < position { return true }
      // It is on its way to another place, and what lies behind the end is not to be heard meanwhile.
      underrun(session, now: MonotonicClock.nowNanoseconds)
      return false
    }
    let isNear = position + (Splice.packetsFrom + 1) * packet > end
    if isNear, session.cut == nil, session.pending == nil, session.bufferingSinceNanoseconds == nil,
      splicer.hasRoom, session.cursor.timeline.hasPacket(atMilliseconds: end)
    {
      cut(session, .endOfRange)
    }
    return true
  }

  /// A track is over: the next one follows in the same tick, or none.
  private func finish(_ session: Session) {
    guard let next = session.next else { return end(session, .finished) }
    let tick = session.nextTick
    session.next = nil
    end(session, .finished)
    joiningTick = tick
    begin(next.play)
    joiningTick = nil
    // It had to wait for its first packet, and whoever prepared it still does.
    if let inquiry = next.inquiry { refuse(inquiry, .alreadyPlaying, session.id) }
  }

  // MARK: The track that follows

  func prepare(_ play: NewPlay, _ inquiry: Inquiry) {
    settleCut(of: play.id, before: .prepare(play.request))
    guard let session = sessions[play.id] else {
      let report = ErrorReport(
        .noSuchSession, "prepare: the session \(play.id) plays nothing", hint: "use play", stage: .command)
      return refuse(inquiry, report, play.id)
    }
    dropNext(session)
    moveCount += 1
    let next = NewPlay(
      id: play.id, request: play.request, source: play.source, lease: play.lease, inquiry: nil)
    session.next = PreparedTrack(play: next, number: moveCount, inquiry: inquiry)
    expect(next.lease, play.id)
    advanceNext(session)
  }

  /// Looks whether the track that follows can begin.
  func advanceNext(_ session: Session) {
    guard let next = session.next, let inquiry = next.inquiry else { return }
    let timeline = next.play.lease.timeline
    switch timeline.phase {
    case .opening: return
    case .producing, .complete:
      guard let track = timeline.track else { return }
      session.next?.inquiry = nil
      emit(
        .prepared(ready(next.play.request, track, timeline, asked: inquiry)), session.id, answering: inquiry)
    case .failed:
      session.next = nil
      let report = timeline.failure ?? ErrorReport(.internal, "production ended without a reason")
      refuse(inquiry, report, session.id)
    }
  }

  /// The session's volume is the next track's too.
  func prepareNextAgain(_ session: Session) {
    guard let next = session.next, next.play.request.volume != session.volume else { return }
    acquireNextAgain(session, volume: session.volume)
  }

  /// Asks for the timeline of the track that follows: until it is there the old one stays.
  func acquireNextAgain(_ session: Session, volume: Double) {
    guard let next = session.next else { return }
    moveCount += 1
    session.next?.number = moveCount
    let request = next.play.request
    acquireTimeline(
      session.id, moveCount,
      TrackKey(
        source: next.play.source, startMilliseconds: request.startMilliseconds, volume: volume,
        bitrateKilobits: request.bitrateKilobits),
      next.play.lease.timeline.client)
  }

  /// - Parameter result: a failure leaves the track as it was prepared, at its old volume.
  func nextAcquired(_ session: Session, _ result: Result<TimelineLease, ErrorReport>) {
    guard let next = session.next, case .success(let lease) = result else { return }
    var request = next.play.request
    request.volume = lease.timeline.key.volume
    session.next?.play = NewPlay(
      id: session.id, request: request, source: next.play.source, lease: lease, inquiry: nil)
    expect(lease, session.id)
    advanceNext(session)
  }

  /// Something else was asked for.
  func dropNext(_ session: Session) {
    refuse(session.next?.inquiry, .overtaken, session.id)
    session.next = nil
  }
}

extension ErrorReport {
  /// A `prepare` whose track has begun before it was ready.
  fileprivate static let alreadyPlaying = ErrorReport(
    .superseded, "the track before it is over: it is being opened now", stage: .command)
}
