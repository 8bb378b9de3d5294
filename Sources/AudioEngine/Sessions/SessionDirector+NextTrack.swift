import WireProtocol

/// The track that was prepared to follow.
extension SessionDirector {
  func prepare(_ play: NewPlay, _ pendingRequest: PendingRequest, now: UInt64) {
    guard admit(pendingRequest, to: play.id) else { return }
    settleTransition(of: play.id, before: .prepare(play.request), now: now)
    endStandby(play.id, before: .prepare(play.request), now: now)
    guard let session = sessions[play.id] else {
      let report = ErrorReport(
        .noSuchSession, "prepare: the session \(play.id) plays nothing", hint: "use play", stage: .command)
      return reject(pendingRequest, report, play.id)
    }
    dropNext(session)
    moveCount += 1
    let next = NewPlay(
      id: play.id, request: play.request, source: play.source, lease: play.lease, pendingRequest: nil)
    session.next = PreparedTrack(play: next, number: moveCount, pendingRequest: pendingRequest)
    expect(next.lease, play.id)
    advanceNext(session, now: now)
  }

  /// Answers the `prepare` once its track can begin.
  func advanceNext(_ session: Session, now: UInt64) {
    guard let next = session.next, let pendingRequest = next.pendingRequest else { return }
    let timeline = next.play.lease.timeline
    switch timeline.phase {
    case .opening: return
    case .producing, .complete:
      guard let track = timeline.track else { return }
      session.next?.pendingRequest = nil
      emit(
        .prepared(ready(next.play.request, track, timeline, asked: pendingRequest, now: now)), session.id,
        answering: pendingRequest)
    case .failed:
      session.next = nil
      let report = timeline.failure ?? ErrorReport(.internal, "production ended without a reason")
      reject(pendingRequest, report, session.id)
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
    effects.acquireTimeline(
      for: session.id, moveNumber: moveCount,
      key: TrackKey(
        source: next.play.source, startMilliseconds: request.startMilliseconds, volume: volume,
        bitrateKilobits: request.bitrateKilobits),
      client: next.play.lease.timeline.client)
  }

  /// - Parameter result: a failure leaves the track as it was prepared, at its old volume.
  func nextAcquired(_ session: Session, _ result: Result<TimelineLease, ErrorReport>, now: UInt64) {
    guard let next = session.next, case .success(let lease) = result else { return }
    var request = next.play.request
    request.volume = lease.timeline.key.volume
    session.next?.play = NewPlay(
      id: session.id, request: request, source: next.play.source, lease: lease, pendingRequest: nil)
    expect(lease, session.id)
    advanceNext(session, now: now)
  }

  /// Something else was asked for.
  func dropNext(_ session: Session) {
    reject(session.next?.pendingRequest, .overtaken, session.id)
    session.next = nil
  }
}
