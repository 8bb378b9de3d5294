import WireProtocol

/// How a session's sound breaks off and begins without a click: the change is put off to a packet for which a splice
/// is there.
extension SessionDirector {
  /// Does something to a session's sound: at once where nothing is heard, else with a fade of 20 ms.
  func startTransition(_ session: Session, _ action: PendingTransition.Action, now: UInt64) {
    let transition = PendingTransition(action, isHeard: isHeard(action, session), now: now)
    // What comes in a flood of transitions has no fade, so that it delays no other session's.
    guard transition.isHeard, hasRoomForSplices else { return complete(transition, session, now: now) }
    session.transition = transition
    requestSplice(session)
    renderWaitingSplices(now: now)
  }

  /// Completes a transition whose packet is due, or that has nothing left to wait for. One whose splice is not there
  /// is put off, but not past the last packet that is to be played.
  func completeDueTransition(_ session: Session, now: UInt64) {
    guard let transition = session.transition else { return }
    let index = session.cursor.index
    let isDue = transition.stage == .ready && index >= transition.index
    // In a loop, more comes behind the last packet.
    let continues = session.continuesAtStart && session.bufferingSinceNanoseconds == nil
    let isLast = lastIndex(session).map { index >= $0 } ?? false
    guard isDue || !continues && (isLast || !session.cursor.hasPacket) else { return }
    complete(transition, session, now: now)
  }

  /// Another command comes before a session's transition is done: it is done now, without its fade, or overtaken.
  func settleTransition(of id: SessionID, before action: EngineCommand.SessionAction, now: UInt64) {
    // A `play` that is done leaves another session, which may have a transition of its own to begin with.
    while let session = sessions[id], let transition = session.transition {
      switch (transition.action, action) {
      // What follows is to follow the track that begins.
      case (.replace, .prepare), (.stop, .prepare): complete(transition, session, isHurried: true, now: now)
      case (_, .status), (_, .why), (_, .prepare), (_, .unprepare),
        (_, .perform), (_, .mute):
        return
      case (.seek, .seek) where session.pendingVolume == nil, (.volume, .volume):
        session.transition = nil
        reject(transition.pendingRequest, .overtaken, session.id)
      // It comes by itself when the place is reached.
      case (.endOfRange, _): session.transition = nil
      default: complete(transition, session, isHurried: true, now: now)
      }
    }
  }

  func complete(
    _ transition: PendingTransition, _ session: Session, isHurried: Bool = false, now: UInt64
  ) {
    session.transition = nil
    let isReady = transition.stage == .ready && !isHurried
    let last = isReady ? transition.lastPacket : nil
    let joint = isReady ? transition.joint : SplicePackets()
    counts.transitions += 1
    let hasFade = last != nil || !joint.isEmpty
    if !hasFade, transition.isHeard { counts.transitionsWithoutFade += 1 }
    // Without its fade, a part is played to its end as it is.
    if case .endOfRange = transition.action, !hasFade { return }
    if let last, session.cursor.index == transition.index, session.cursor.hasPacket {
      sendLast(last, session)
    }
    switch transition.action {
    case .pause(let pendingRequest): pause(session, pendingRequest, now: now)
    case .resume(let pendingRequest):
      session.splicePackets = joint.placed(at: session.cursor.index)
      resume(session, pendingRequest, now: now)
    case .begin:
      session.splicePackets = joint.placed(at: session.cursor.index)
      startStreaming(session, now: now)
      emit(.playing(anchor(session)), session.id)
    case .stop(let pendingRequest): end(session, .stopped, answering: pendingRequest, now: now)
    case .replace(let play):
      end(session, .replaced, now: now)
      begin(play, now: now)
    case .seek(let lease, let position, let pendingRequest):
      session.move(to: lease, positionMilliseconds: position)
      session.splicePackets = joint.placed(at: session.cursor.index)
      announceSeek(session, pendingRequest, now: now)
      applyPendingVolume(session)
    case .volume(let level, let lease, let pendingRequest):
      session.move(to: lease, positionMilliseconds: nil)
      session.splicePackets = joint.placed(at: session.cursor.index)
      volumeChanged(session, to: level, pendingRequest)
    case .endOfRange:
      guard reachEnd(session, now: now), session.nextTick != nil else { return }
      session.splicePackets = joint.placed(at: session.cursor.index)
    }
  }

  /// Sends the old sound's last packet in place of the one under the cursor.
  private func sendLast(_ packet: [UInt8], _ session: Session) {
    packet.withUnsafeBytes { append($0, of: session) }
    session.cursor.skip()
    session.nextTick? += Schedule.ticksPerPacket
  }
}
