import WireProtocol

/// How splices are asked for: a few at once, first the one whose packet is due first. What ends the old sound is made for
/// a packet a few milliseconds ahead when its turn comes, so that none waits in a queue while its packet goes out. What
/// the new sound begins with is the same wherever the old one ends, and is needed 20 ms later.
extension SessionDirector {
  /// After so long a transition goes before those whose packet is due later than that.
  private static let patienceNanoseconds: UInt64 = 40_000_000
  /// Who asks for something waits no longer for its fade: a machine that cannot render it by then is overloaded.
  private static let maximumDelayNanoseconds: UInt64 = 500_000_000

  var hasRoomForSplices: Bool { spliceRequests.count < effects.maximumWaitingSplices }

  /// Asks for what the old sound ends with.
  func requestFade(_ session: Session) {
    guard let asked = session.transition?.askedNanoseconds else { return }
    let number = addRequest(session, incoming: nil, dueNanoseconds: asked + Self.patienceNanoseconds)
    session.transition?.fade = .waiting(number)
  }

  /// Asks for what the new sound begins with.
  func requestFadeIn(_ incoming: Splice.Side, _ session: Session, dueNanoseconds: UInt64) {
    let number = addRequest(session, incoming: incoming, dueNanoseconds: dueNanoseconds)
    session.transition?.joint = SplicePackets(number: number)
  }

  private func addRequest(_ session: Session, incoming: Splice.Side?, dueNanoseconds: UInt64) -> UInt64 {
    spliceCount += 1
    spliceRequests.append(
      SpliceRequest(id: session.id, number: spliceCount, incoming: incoming, dueNanoseconds: dueNanoseconds))
    return spliceCount
  }

  // MARK: Rendering

  /// Has the most urgent splices rendered, as many as are rendered at once.
  func renderSplices(now: UInt64) {
    guard !spliceRequests.isEmpty, renderingCount < effects.splicesAtOnce else { return }
    spliceRequests.removeAll { !isWanted($0) }
    while renderingCount < effects.splicesAtOnce, let place = mostUrgentRequest(now: now) {
      render(spliceRequests.remove(at: place), now: now)
    }
  }

  private func isWanted(_ request: SpliceRequest) -> Bool {
    guard let session = sessions[request.id] else { return false }
    if case .waiting(request.number) = session.transition?.fade { return true }
    return session.transition?.joint?.isAwaited(as: request.number) == true
      || session.splicePackets.isAwaited(as: request.number)
  }

  private func mostUrgentRequest(now: UInt64) -> Int? {
    var found: (place: Int, due: UInt64)?
    for (place, request) in spliceRequests.enumerated() {
      guard let due = dueTime(of: request, now: now), due < found?.due ?? .max else { continue }
      found = (place, due)
    }
    return found?.place
  }

  /// Nil for what has to wait.
  private func dueTime(of request: SpliceRequest, now: UInt64) -> UInt64? {
    guard request.incoming == nil else { return request.dueNanoseconds }
    guard let session = sessions[request.id], let index = fadeIndex(session, now: now) else { return nil }
    return min(request.dueNanoseconds, dueTime(ofPacket: index, session))
  }

  private func dueTime(ofPacket index: Int, _ session: Session) -> UInt64 {
    let packets = UInt64(max(0, index - session.cursor.index))
    return anchor(session).dueNanoseconds + packets * WireLimits.packetDurationNanoseconds
  }

  private func render(_ request: SpliceRequest, now: UInt64) {
    guard let session = sessions[request.id] else { return }
    renderingCount += 1
    if let incoming = request.incoming {
      return effects.render(
        Splice(outgoing: nil, incoming: incoming), for: request.id, number: request.number)
    }
    guard let transition = session.transition, let index = fadeIndex(session, now: now) else {
      renderingCount -= 1
      return
    }
    var splice = Splice(outgoing: session.cursor.spliceSide(at: index), incoming: nil)
    if case .volume(_, let lease, _) = transition.action {
      splice.incoming = side(of: lease.timeline, atMilliseconds: session.cursor.position(ofPacket: index))
    }
    session.transition?.fade = .rendering(request.number, index: index)
    effects.render(splice, for: request.id, number: request.number)
    guard transition.joint == nil, let incoming = incomingSide(of: transition.action, session) else { return }
    let due = dueTime(ofPacket: index, session) + WireLimits.packetDurationNanoseconds
    requestFadeIn(incoming, session, dueNanoseconds: due)
  }

  /// The first packet for which a fade can be there in time, or the last one that is to be played; nil where a loop begins
  /// anew before.
  private func fadeIndex(_ session: Session, now: UInt64) -> Int? {
    guard let transition = session.transition else { return nil }
    let last = lastIndex(session)
    if case .endOfRange = transition.action, let last { return last }
    let due = anchor(session).dueNanoseconds
    let ready = now + effects.spliceLeadNanoseconds << UInt64(transition.delayCount)
    let packet = WireLimits.packetDurationNanoseconds
    let index = session.cursor.index + (ready > due ? Int((ready - due + packet - 1) / packet) : 0)
    guard let last, index > last else { return index }
    return session.repeats ? nil : last
  }

  /// The last packet of the part, or of the track, that a session plays; nil where that is not known.
  private func lastIndex(_ session: Session) -> Int? {
    let cursor = session.cursor
    let endOfPart = session.request.endMilliseconds.map { cursor.packetIndex(atMilliseconds: $0) - 1 }
    guard cursor.timeline.phase == .complete else { return endOfPart }
    let end = cursor.timeline.packetCount - 1
    return min(end, endOfPart ?? end)
  }

  /// What the new sound of a transition begins with, where it begins out of silence.
  func incomingSide(of action: PendingTransition.Action, _ session: Session) -> Splice.Side? {
    switch action {
    case .pause, .stop, .replace, .volume: return nil
    case .resume, .begin:
      return session.cursor.hasPacket ? session.cursor.spliceSide(at: session.cursor.index) : nil
    case .seek(let lease, let position, _):
      return session.nextTick == nil ? nil : side(of: lease.timeline, atMilliseconds: position)
    case .endOfRange:
      let start = session.request.startMilliseconds
      guard session.request.loop, start > 0, session.cursor.timeline.hasPacket(atMilliseconds: start) else {
        return nil
      }
      return side(of: session.cursor.timeline, atMilliseconds: start)
    }
  }

  private func side(of timeline: Timeline, atMilliseconds position: Int) -> Splice.Side {
    let index = timeline.packetIndex(atMilliseconds: position)
    return Timeline.Cursor(timeline, index: index).spliceSide(at: index)
  }

  // MARK: What was rendered

  /// The first packet of a splice is there.
  func spliced(_ id: SessionID, _ number: UInt64, _ packets: [[UInt8]], now: UInt64) {
    renderingCount -= 1
    defer { renderSplices(now: now) }
    guard let session = sessions[id] else { return }
    if session.splicePackets.begin(packets, number: number) {
      if packets.isEmpty { counts.transitionsWithoutFade += 1 }
      return
    }
    guard let transition = session.transition else { return }
    if case .rendering(number, let index) = transition.fade {
      session.transition?.fade = .ready(packets.first, index: index)
      guard case .volume = transition.action else { return }
      session.transition?.joint = SplicePackets(number: number)
    }
    guard session.transition?.joint?.begin(packets, number: number) == true else { return }
    // What is not heard yet has no packet to wait for.
    if session.nextTick == nil, let transition = session.transition {
      complete(transition, session, now: now)
    }
  }

  /// The packets behind the first are there.
  func spliceContinued(_ id: SessionID, _ number: UInt64, _ packets: [[UInt8]]) {
    guard let session = sessions[id] else { return }
    session.transition?.joint?.append(packets, number: number)
    session.splicePackets.append(packets, number: number)
  }

  // MARK: Completing

  /// Completes a transition whose packet is due, or that has nothing left to wait for; puts one off whose fade is late.
  func completeDueTransition(_ session: Session, now: UInt64) {
    guard let transition = session.transition else { return }
    if case .none = transition.fade { return complete(transition, session, now: now) }
    // The phase is read before the count: a complete timeline has every packet it will ever have.
    let phase = session.cursor.timeline.phase
    guard session.cursor.hasPacket else {
      // A loop's next round begins in this tick. A round of one packet would be waited for each time.
      if phase == .complete, session.repeats, !isOverdue(transition, now: now) { return }
      return complete(transition, session, now: now)
    }
    switch transition.fade {
    case .none: break
    case .ready(_, let index):
      if session.cursor.index >= index { complete(transition, session, now: now) }
    case .rendering(_, let index) where session.cursor.index < index: break
    case .waiting where !hasToHappen(transition, session, now: now): break
    case .waiting, .rendering:
      guard !hasToHappen(transition, session, now: now) else {
        return complete(transition, session, now: now)
      }
      // The next fade has twice the time.
      session.transition?.delayCount += 1
      requestFade(session)
    }
  }

  /// Whether a transition cannot be put off any more: behind the last packet nothing comes that it could be done at.
  private func hasToHappen(_ transition: PendingTransition, _ session: Session, now: UInt64) -> Bool {
    if isOverdue(transition, now: now) { return true }
    guard let last = lastIndex(session), session.cursor.index >= last else { return false }
    if case .endOfRange = transition.action { return true }
    return !session.repeats
  }

  private func isOverdue(_ transition: PendingTransition, now: UInt64) -> Bool {
    now >= transition.askedNanoseconds + Self.maximumDelayNanoseconds
  }

  /// A session is back at the start of its loop, and its transition was not done before: its fade is of another packet.
  func repeatTransition(_ session: Session) {
    guard let transition = session.transition else { return }
    if case .volume(let level, _, let pendingRequest) = transition.action {
      // The other timeline may not have the start.
      session.transition = nil
      requestMove(
        session, .volume(level), pendingRequest: pendingRequest,
        startMilliseconds: session.request.startMilliseconds, volume: level)
      // Each round may be too short for its fade, and it is not to wait forever.
      session.pendingMove?.askedNanoseconds = transition.askedNanoseconds
      return
    }
    switch transition.fade {
    case .rendering, .ready: requestFade(session)
    case .none, .waiting: break
    }
  }
}

extension Session {
  /// Whether it begins anew on its timeline when it has come to its end.
  fileprivate var repeats: Bool {
    switch pendingMove?.purpose {
    case .seek, .loop: return false
    case .volume, nil: break
    }
    return request.loop && cursor.timeline.covers(positionMilliseconds: request.startMilliseconds)
  }
}
