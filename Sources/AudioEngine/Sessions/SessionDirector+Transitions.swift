import WireProtocol

/// How a session's sound breaks off and begins without a click: the change is put off to a packet a few
/// milliseconds ahead, for which a splice is rendered on another thread.
extension SessionDirector {
  /// Does something to a session's sound: at once where nothing is heard, else with a fade of 20 ms.
  ///
  /// - Parameter asked: when it was asked for; nil for now.
  func startTransition(
    _ session: Session, _ action: PendingTransition.Action, asked: UInt64? = nil, now: UInt64
  ) {
    let hasFade = isHeard(session)
    let incoming = incomingSide(of: action, session)
    let transition = PendingTransition(action, isHeard: hasFade || incoming != nil, asked: asked ?? now)
    // What comes in a flood of transitions has no fade, so that it delays no other session's.
    guard transition.isHeard, hasRoomForSplices else { return complete(transition, session, now: now) }
    session.transition = transition
    if hasFade {
      requestFade(session)
    } else if let incoming {
      requestFadeIn(incoming, session, dueNanoseconds: now + WireLimits.packetDurationNanoseconds)
    }
    renderSplices(now: now)
  }

  /// Whether there is sound that would break off: none where a fade in comes next.
  private func isHeard(_ session: Session) -> Bool {
    session.nextTick != nil && session.bufferingSinceNanoseconds == nil && session.cursor.hasPacket
      && !session.splicePackets.begins(at: session.cursor.index)
  }

  /// Another command comes before a session's transition is done: it is done now, without its fade, or overtaken.
  func settleTransition(of id: SessionID, before action: EngineCommand.SessionAction, now: UInt64) {
    // A `play` that is done leaves another session, which may have a transition of its own to begin with.
    while let session = sessions[id], let transition = session.transition {
      switch (transition.action, action) {
      // What follows is to follow the track that begins.
      case (.replace, .prepare), (.stop, .prepare): complete(transition, session, isHurried: true, now: now)
      case (_, .status), (_, .why), (_, .prepare), (_, .unprepare),
        (_, .perform), (_, .mute), (_, .handOver):
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
    let lastPacket = isHurried ? nil : session.readyFade(of: transition)
    var joint = (isHurried ? nil : transition.joint) ?? SplicePackets()
    counts.transitions += 1
    let isFaded =
      if case .none = transition.fade { !joint.isEmpty } else {
        lastPacket != nil && transition.joint?.isEmpty != true
      }
    if transition.isHeard, !isFaded { counts.transitionsWithoutFade += 1 }
    switch transition.action {
    // What goes over from the old sound belongs to one packet; what fades in may come later.
    case .volume: if lastPacket == nil { joint = SplicePackets() }
    // Without its fade, a part is played to its end as it is.
    case .endOfRange where lastPacket == nil: return
    default: if let lastPacket { sendLast(lastPacket, session) }
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
      begin(play, owner: session.owner, now: now)
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

extension Session {
  /// What the old sound ends with, if it is there and its packet comes next.
  fileprivate func readyFade(of transition: PendingTransition) -> [UInt8]? {
    guard case .ready(let packet, cursor.index) = transition.fade, cursor.hasPacket else { return nil }
    return packet
  }
}
