import WireProtocol

/// How the splices of transitions are asked for: a few at once, each for a packet a few milliseconds ahead, so that none
/// is rendered for a packet that has gone out before its turn comes.
extension SessionDirector {
  /// Transitions that may wait for a splicer: by 1.6 ms a splice, the last of them waits some 100 ms on two cores.
  private static let maximumWaitingTransitions = 128
  /// Who has waited for so long goes before those whose packet is due sooner.
  private static let patienceNanoseconds: UInt64 = 40_000_000
  /// With each delay of a transition its splice has twice the time, up to half a second.
  private static let maximumDelayCount = 7

  var hasRoomForSplices: Bool {
    effects.splicesAtOnce > 0 && unspliced.count < Self.maximumWaitingTransitions
  }

  /// Whether there is sound at a transition that is to be spliced.
  func isHeard(_ action: PendingTransition.Action, _ session: Session) -> Bool {
    switch action {
    case .pause, .stop, .replace, .volume, .endOfRange: isHeard(session)
    case .resume, .begin: session.cursor.hasPacket
    case .seek: session.nextTick != nil
    }
  }

  private func isHeard(_ session: Session) -> Bool {
    session.nextTick != nil && session.bufferingSinceNanoseconds == nil && session.cursor.hasPacket
  }

  /// A session's transition needs a splice: it is rendered in the next call of `renderWaitingSplices`.
  func requestSplice(_ session: Session) {
    session.transition?.stage = .waiting
    if !unspliced.contains(session.id) { unspliced.append(session.id) }
  }

  /// Asks for the splices of those transitions that are done soonest with them, as many as are rendered at once.
  func renderWaitingSplices(now: UInt64) {
    unspliced.removeAll { sessions[$0]?.transition?.stage != .waiting }
    while pendingRenderCount < effects.splicesAtOnce, let session = mostUrgentSession(now: now),
      let transition = session.transition
    {
      unspliced.removeAll { $0 == session.id }
      render(transition, session, now: now)
    }
  }

  private func mostUrgentSession(now: UInt64) -> Session? {
    var found: (session: Session, due: UInt64)?
    for session in unspliced.lazy.compactMap({ self.sessions[$0] }) {
      guard let transition = session.transition, let due = dueTime(of: transition, session, now: now),
        due < found?.due ?? .max
      else { continue }
      found = (session, due)
    }
    return found?.session
  }

  /// When the packet is due that a transition would happen at: 0 for one that is to go before all, nil for one that is
  /// to wait.
  private func dueTime(of transition: PendingTransition, _ session: Session, now: UInt64) -> UInt64? {
    guard isHeard(session) else { return 0 }
    guard let index = transitionIndex(session, transition, now: now) else { return nil }
    guard now < transition.askedNanoseconds + Self.patienceNanoseconds else { return 0 }
    let packets = UInt64(max(0, index - session.cursor.index))
    return anchor(session).dueNanoseconds + packets * WireLimits.packetDurationNanoseconds
  }

  private func render(_ transition: PendingTransition, _ session: Session, now: UInt64) {
    var transition = transition
    let heardIndex = isHeard(session) ? transitionIndex(session, transition, now: now) : nil
    transition.index = heardIndex ?? session.cursor.index
    let outgoing = heardIndex.map { session.cursor.spliceSide(at: $0) }
    let splices = splices(for: transition, session, outgoing)
    guard !splices.isEmpty else { return complete(transition, session, now: now) }
    transition.fadesOut = outgoing != nil
    if case .volume = transition.action { transition.fadesOut = false }
    renderCount += 1
    transition.renderNumber = renderCount
    transition.stage = .rendering
    session.transition = transition
    pendingRenderCount += 1
    effects.render(splices, for: session.id, renderNumber: renderCount)
  }

  /// The first packet for which a splice can be there in time, or the last one that is to be played; nil where a loop
  /// begins anew before.
  private func transitionIndex(_ session: Session, _ transition: PendingTransition, now: UInt64) -> Int? {
    let last = lastIndex(session)
    if case .endOfRange = transition.action, let last { return last }
    let due = anchor(session).dueNanoseconds
    let ready = now + effects.spliceLeadNanoseconds << UInt64(transition.delayCount)
    let packet = WireLimits.packetDurationNanoseconds
    let index = session.cursor.index + (ready > due ? Int((ready - due + packet - 1) / packet) : 0)
    guard let last, index > last else { return index }
    // Behind the end nothing comes that it could be done at.
    return session.continuesAtStart ? nil : last
  }

  /// The last packet of the part, or of the track, that a session plays; nil where that is not known.
  func lastIndex(_ session: Session) -> Int? {
    let cursor = session.cursor
    let endOfPart = session.request.endMilliseconds.map { cursor.packetIndex(atMilliseconds: $0) - 1 }
    guard cursor.timeline.phase == .complete else { return endOfPart }
    let end = cursor.timeline.packetCount - 1
    return min(end, endOfPart ?? end)
  }

  /// What fades out, and what fades in, as far as that is not there already.
  private func splices(
    for transition: PendingTransition, _ session: Session, _ outgoing: Splice.Side?
  ) -> [Splice] {
    let fadeOut = outgoing.map { [Splice(outgoing: $0, incoming: nil)] } ?? []
    func fadeIn(_ timeline: Timeline, _ index: Int) -> [Splice] {
      guard transition.joint.isEmpty else { return [] }
      let side = Timeline.Cursor(timeline, index: index).spliceSide(at: index)
      return [Splice(outgoing: nil, incoming: side)]
    }
    switch transition.action {
    case .pause, .stop, .replace: return fadeOut
    case .resume, .begin:
      return session.cursor.hasPacket ? fadeIn(session.cursor.timeline, session.cursor.index) : []
    case .seek(let lease, let position, _):
      guard session.nextTick != nil else { return [] }
      return fadeOut + fadeIn(lease.timeline, lease.timeline.packetIndex(atMilliseconds: position))
    case .volume(_, let lease, _):
      guard let outgoing else { return [] }
      let timeline = lease.timeline
      let position = session.cursor.position(ofPacket: transition.index)
      let index = timeline.packetIndex(atMilliseconds: position)
      let incoming = Timeline.Cursor(timeline, index: index).spliceSide(at: index)
      return [Splice(outgoing: outgoing, incoming: incoming)]
    case .endOfRange:
      let start = session.request.startMilliseconds
      let timeline = session.cursor.timeline
      guard session.request.loop, start > 0, timeline.hasPacket(atMilliseconds: start) else { return fadeOut }
      return fadeOut + fadeIn(timeline, timeline.packetIndex(atMilliseconds: start))
    }
  }

  /// A session is back at the start of its loop, and its transition was not done before.
  func delayTransition(_ session: Session, now: UInt64) {
    guard let transition = session.transition else { return }
    if case .endOfRange = transition.action { return complete(transition, session, now: now) }
    session.transition?.renderNumber = 0
    putOff(transition, session, now: now)
  }

  /// Asks for a splice at a later packet, a few times.
  private func putOff(_ transition: PendingTransition, _ session: Session, now: UInt64) {
    guard transition.delayCount < Self.maximumDelayCount else {
      return complete(transition, session, now: now)
    }
    session.transition?.delayCount += 1
    session.transition?.lastPacket = nil
    requestSplice(session)
  }

  /// The first packets of a transition's splices are there.
  func spliced(_ id: SessionID, _ renderNumber: UInt64, _ packets: [[UInt8]], now: UInt64) {
    pendingRenderCount -= 1
    defer { renderWaitingSplices(now: now) }
    guard let session = sessions[id], session.transition?.renderNumber == renderNumber else { return }
    session.transition?.take(packets)
    guard let transition = session.transition else { return }
    // What is not heard yet has no packet to wait for.
    guard session.nextTick != nil else { return complete(transition, session, now: now) }
    guard session.cursor.index > transition.index else { return }
    // Its packet has gone out meanwhile.
    putOff(transition, session, now: now)
  }

  /// The packets behind the first of a fade in are there.
  func spliceFinished(_ id: SessionID, _ renderNumber: UInt64, _ packets: [[UInt8]]) {
    guard let session = sessions[id] else { return }
    session.transition?.joint.append(packets, renderNumber: renderNumber)
    session.splicePackets.append(packets, renderNumber: renderNumber)
  }
}

extension Session {
  /// Whether it plays in a loop whose start is there.
  var continuesAtStart: Bool {
    request.loop && cursor.timeline.covers(positionMilliseconds: request.startMilliseconds)
  }
}
