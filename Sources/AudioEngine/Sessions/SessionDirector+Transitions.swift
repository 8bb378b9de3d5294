import WireProtocol

/// How a session's sound breaks off and begins without a click: the change is put off to a packet a few
/// milliseconds ahead, for which a splice is rendered on another thread.
extension SessionDirector {
  /// Does something to a session's sound: at once where nothing is heard, else with a fade of 20 ms.
  func startTransition(_ session: Session, _ action: PendingTransition.Action, now: UInt64) {
    let isHeard =
      session.nextTick != nil && session.bufferingSinceNanoseconds == nil && session.cursor.hasPacket
    let index = isHeard ? transitionIndex(session, action, now: now) : session.cursor.index
    let outgoing = isHeard ? session.cursor.spliceSide(at: index) : nil
    let splices = splices(for: action, session, outgoing, index: index)
    transitionCount += 1
    var fadesOut = outgoing != nil
    if case .volume = action { fadesOut = false }
    let transition = PendingTransition(
      number: transitionCount, index: index, action: action, fadesOut: fadesOut, isHeard: !splices.isEmpty)
    // What comes in a flood of transitions has no fade, so that it delays no other session's.
    guard !splices.isEmpty, effects.hasRoomForSplices else { return complete(transition, session, now: now) }
    session.transition = transition
    effects.render(splices, for: session.id, transitionNumber: transitionCount)
  }

  /// The first packet for which a splice can be there in time, or the last one of a part.
  private func transitionIndex(
    _ session: Session, _ action: PendingTransition.Action, now: UInt64
  ) -> Int {
    let last = session.request.endMilliseconds.map {
      session.cursor.packetIndex(atMilliseconds: $0) - 1
    }
    if case .endOfRange = action, let last { return last }
    let due = anchor(session).dueNanoseconds
    let ready = now + effects.spliceLeadNanoseconds
    let packet = WireLimits.packetDurationNanoseconds
    let index = session.cursor.index + (ready > due ? Int((ready - due + packet - 1) / packet) : 0)
    // Behind the end nothing comes that it could be done at.
    return min(index, last ?? index)
  }

  private func splices(
    for action: PendingTransition.Action, _ session: Session, _ outgoing: Splice.Side?, index: Int
  ) -> [Splice] {
    let fadeOut = outgoing.map { [Splice(outgoing: $0, incoming: nil)] } ?? []
    func fadeIn(_ side: Splice.Side) -> [Splice] { [Splice(outgoing: nil, incoming: side)] }
    switch action {
    case .pause, .stop, .replace: return fadeOut
    case .resume, .begin:
      return session.cursor.hasPacket ? fadeIn(session.cursor.spliceSide(at: session.cursor.index)) : []
    case .seek(let lease, let position, _):
      guard session.nextTick != nil else { return [] }
      return fadeOut + fadeIn(side(of: lease.timeline, atMilliseconds: position))
    case .volume(_, let lease, _):
      guard let outgoing else { return [] }
      let position = session.cursor.position(ofPacket: index)
      return [Splice(outgoing: outgoing, incoming: side(of: lease.timeline, atMilliseconds: position))]
    case .endOfRange:
      let start = session.request.startMilliseconds
      guard session.request.loop, start > 0, session.cursor.timeline.hasPacket(atMilliseconds: start) else {
        return fadeOut
      }
      return fadeOut + fadeIn(side(of: session.cursor.timeline, atMilliseconds: start))
    }
  }

  private func side(of timeline: Timeline, atMilliseconds position: Int) -> Splice.Side {
    let index = timeline.packetIndex(atMilliseconds: position)
    return Timeline.Cursor(timeline, index: index).spliceSide(at: index)
  }

  /// A splice has been rendered.
  func spliced(_ id: SessionID, _ number: UInt64, _ packets: [[UInt8]], now: UInt64) {
    guard let session = sessions[id], session.transition?.number == number else { return }
    session.transition?.packets = packets
    // What is not heard yet has no packet to wait for.
    if session.nextTick == nil, let transition = session.transition {
      complete(transition, session, now: now)
    }
  }

  /// Completes a transition whose packet is due, or that has nothing left to wait for.
  func completeDueTransition(_ session: Session, now: UInt64) {
    guard let transition = session.transition,
      session.cursor.index >= transition.index || !session.cursor.hasPacket
    else { return }
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

  private func complete(
    _ transition: PendingTransition, _ session: Session, isHurried: Bool = false, now: UInt64
  ) {
    session.transition = nil
    var packets = (isHurried ? nil : transition.packets) ?? []
    counts.transitions += 1
    if packets.isEmpty, transition.isHeard { counts.transitionsWithoutFade += 1 }
    // Without its fade, a part is played to its end as it is.
    if case .endOfRange = transition.action, packets.isEmpty { return }
    if transition.fadesOut, !packets.isEmpty {
      let last = packets.removeFirst()
      if session.cursor.index == transition.index, session.cursor.hasPacket { sendLast(last, session) }
    }
    let joint = packets[...]
    switch transition.action {
    case .pause(let pendingRequest): pause(session, pendingRequest, now: now)
    case .resume(let pendingRequest):
      session.splicePackets.set(joint, at: session.cursor.index)
      resume(session, pendingRequest, now: now)
    case .begin:
      session.splicePackets.set(joint, at: session.cursor.index)
      startStreaming(session, now: now)
      emit(.playing(anchor(session)), session.id)
    case .stop(let pendingRequest): end(session, .stopped, answering: pendingRequest, now: now)
    case .replace(let play):
      end(session, .replaced, now: now)
      begin(play, now: now)
    case .seek(let lease, let position, let pendingRequest):
      session.move(to: lease, positionMilliseconds: position)
      session.splicePackets.set(joint, at: session.cursor.index)
      announceSeek(session, pendingRequest, now: now)
      applyPendingVolume(session)
    case .volume(let level, let lease, let pendingRequest):
      session.move(to: lease, positionMilliseconds: nil)
      session.splicePackets.set(joint, at: session.cursor.index)
      volumeChanged(session, to: level, pendingRequest)
    case .endOfRange:
      guard reachEnd(session, now: now), session.nextTick != nil else { return }
      session.splicePackets.set(joint, at: session.cursor.index)
    }
  }

  /// Sends the old sound's last packet in place of the one under the cursor.
  private func sendLast(_ packet: [UInt8], _ session: Session) {
    packet.withUnsafeBytes { append($0, of: session) }
    session.cursor.skip()
    session.nextTick? += Schedule.ticksPerPacket
  }
}
