import WireProtocol

/// What comes when a track is over: its end, its beginning, or the track that was prepared.
extension SessionDirector {
  /// The cursor is at the end of a timeline that grows no more, or of the part that is to be played.
  ///
  /// - Returns: whether the session continues at another place right now.
  func reachEnd(_ session: Session, now: UInt64) -> Bool {
    let timeline = session.cursor.timeline
    if !session.cursor.hasPacket, let failure = timeline.failure {
      session.history.failed(failure, nowNanoseconds: now)
      emit(.error(failure), session.id)
      finish(session, now: now)
      return false
    }
    switch session.pendingMove?.purpose {
    // The session is on its way to another place.
    case .seek, .loop: return true
    // Nothing is left that another volume could be heard in.
    case .volume, nil: break
    }
    guard session.request.loop else {
      finish(session, now: now)
      return false
    }
    dropHandOver(session)
    let start = session.request.startMilliseconds
    if timeline.covers(positionMilliseconds: start) {
      session.move(to: timeline.packetIndex(atMilliseconds: start))
      endUnderrun(session, now: now)
      emit(.playing(anchor(session)), session.id)
      // A change of volume that was prepared for the end of this round is wanted at its beginning now.
      if let move = session.pendingMove, case .volume(let level) = move.purpose {
        session.pendingMove = nil
        requestMove(
          session, .volume(level), pendingRequest: move.pendingRequest, startMilliseconds: start,
          volume: level)
      }
      repeatTransition(session)
    } else {
      deferVolume(session)
      requestMove(
        session, .loop, pendingRequest: nil, startMilliseconds: start, volume: session.targetVolume)
    }
    return true
  }

  /// Watches over the end of a part: a few packets before it, its last one begins to be faded.
  ///
  /// - Returns: whether there is something to be sent.
  func approach(_ end: Int, _ session: Session, now: UInt64) -> Bool {
    let packet = WireLimits.packetDurationMilliseconds
    let position = session.cursor.positionMilliseconds
    guard position + packet <= end else {
      guard reachEnd(session, now: now) else { return false }
      if session.cursor.positionMilliseconds < position { return true }
      // It is on its way to another place, and what lies behind the end is not to be heard meanwhile.
      underrun(session, now: now)
      return false
    }
    let isNear = position + (Splice.packetsFrom + 1) * packet > end && position + 2 * packet <= end
    if isNear, session.transition == nil, session.pendingMove == nil,
      session.bufferingSinceNanoseconds == nil, hasRoomForSplices,
      session.cursor.packetIndex(atMilliseconds: end) < session.cursor.timeline.packetCount
    {
      startTransition(session, .endOfRange, now: now)
    }
    return true
  }

  /// A track is over: the next one follows in the same tick, or none.
  private func finish(_ session: Session, now: UInt64) {
    guard let next = session.next else { return end(session, .finished, now: now) }
    let tick = session.nextTick
    session.next = nil
    end(session, .finished, now: now)
    begin(next.play, owner: session.owner, at: tick, now: now)
    // It had to wait for its first packet, and the `prepare` still does.
    if let pendingRequest = next.pendingRequest { reject(pendingRequest, .alreadyPlaying, session.id) }
  }
}

extension ErrorReport {
  /// A `prepare` whose track has begun before it was ready.
  fileprivate static let alreadyPlaying = ErrorReport(
    .superseded, "the track before it is over: it is being opened now", stage: .command)
}
