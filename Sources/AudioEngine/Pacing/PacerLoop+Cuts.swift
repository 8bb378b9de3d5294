import ServiceSupport
import WireProtocol

/// How a session's sound breaks off and begins without a click: the change is put off to a packet a few
/// milliseconds ahead, for which a splice is rendered on another thread. Runs on the pacer's thread.
extension PacerLoop {
  /// Does something to a session's sound: at once where nothing is heard, else with a fade of 20 ms.
  func cut(_ session: Session, _ action: PendingCut.Action) {
    let isHeard =
      session.nextTick != nil && session.bufferingSinceNanoseconds == nil && session.cursor.hasPacket
    let index = isHeard ? cutIndex(session, action) : session.cursor.index
    let outgoing = isHeard ? session.cursor.side(at: index) : nil
    let splices = splices(for: action, session, outgoing, index: index)
    cutCount += 1
    var fadesOut = outgoing != nil
    if case .volume = action { fadesOut = false }
    let cut = PendingCut(
      number: cutCount, index: index, action: action, fadesOut: fadesOut, isHeard: !splices.isEmpty)
    // Who comes in a flood of cuts goes without a fade, and keeps nobody's waiting.
    guard !splices.isEmpty, splicer.hasRoom else { return perform(cut, session) }
    session.cut = cut
    splicer.render(splices) { [pacer, id = session.id, number = cutCount] packets in
      pacer.post(.spliced(id, cutNumber: number, packets))
    }
  }

  /// The first packet for which a splice can be there in time, or the last one of a part.
  private func cutIndex(_ session: Session, _ action: PendingCut.Action) -> Int {
    let last = session.request.endMilliseconds.map {
      session.cursor.timeline.packetIndex(atMilliseconds: $0) - 1
    }
    if case .endOfRange = action, let last { return last }
    let due = schedule.time(of: session.nextTick ?? schedule.nextTick)
    let ready = MonotonicClock.nowNanoseconds + splicer.leadNanoseconds
    let packet = WireLimits.packetDurationNanoseconds
    let index = session.cursor.index + (ready > due ? Int((ready - due + packet - 1) / packet) : 0)
    // Behind the end nothing comes that it could be done at.
    return min(index, last ?? index)
  }

  private func splices(
    for action: PendingCut.Action, _ session: Session, _ outgoing: Splice.Side?, index: Int
  ) -> [Splice] {
    let fadeOut = outgoing.map { [Splice(outgoing: $0, incoming: nil)] } ?? []
    func fadeIn(_ side: Splice.Side) -> [Splice] { [Splice(outgoing: nil, incoming: side)] }
    switch action {
    case .pause, .stop, .replace: return fadeOut
    case .resume, .begin:
      return session.cursor.hasPacket ? fadeIn(session.cursor.side(at: session.cursor.index)) : []
    case .seek(let lease, let position, _):
      guard session.nextTick != nil else { return [] }
      return fadeOut + fadeIn(side(of: lease.timeline, atMilliseconds: position))
    case .volume(_, let lease, _):
      guard let outgoing else { return [] }
      let position = session.cursor.timeline.position(ofPacket: index)
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
    return Timeline.Cursor(timeline, index: index).side(at: index)
  }

  /// A splice has been rendered.
  func spliced(_ id: SessionID, cutNumber: UInt64, _ packets: [[UInt8]]) {
    guard let session = sessions[id], session.cut?.number == cutNumber else { return }
    session.cut?.packets = packets
    // What is not heard yet has no packet to wait for.
    if session.nextTick == nil, let cut = session.cut { perform(cut, session) }
  }

  /// Carries out a cut whose packet is due, or that has nothing left to wait for.
  func performDueCut(_ session: Session) {
    guard let cut = session.cut, session.cursor.index >= cut.index || !session.cursor.hasPacket else {
      return
    }
    perform(cut, session)
  }

  /// Another command comes before a session's cut is done: it is done now, without its fade, or overtaken.
  func settleCut(of id: SessionID, before action: EngineCommand.SessionAction) {
    // A `play` that is done leaves another session, which may have a cut of its own to begin with.
    while let session = sessions[id], let cut = session.cut {
      switch (cut.action, action) {
      // What follows is to follow the track that begins.
      case (.replace, .prepare), (.stop, .prepare): perform(cut, session, isHurried: true)
      case (_, .status), (_, .why), (_, .prepare), (_, .unprepare),
        (_, .perform), (_, .mute):
        return
      case (.seek, .seek), (.volume, .volume):
        session.cut = nil
        refuse(cut.inquiry, .overtaken, session.id)
      // It comes by itself when the place is reached.
      case (.endOfRange, _): session.cut = nil
      default: perform(cut, session, isHurried: true)
      }
    }
  }

  private func perform(_ cut: PendingCut, _ session: Session, isHurried: Bool = false) {
    session.cut = nil
    var packets = (isHurried ? nil : cut.packets) ?? []
    pacer.statistics.update {
      $0.cuts += 1
      if packets.isEmpty, cut.isHeard { $0.cutsWithoutFade += 1 }
    }
    if cut.fadesOut, !packets.isEmpty {
      let last = packets.removeFirst()
      if session.cursor.index == cut.index, session.cursor.hasPacket { sendLast(last, session) }
    }
    let joint = packets[...]
    switch cut.action {
    case .pause(let inquiry): pause(session, inquiry)
    case .resume(let inquiry):
      session.joint.set(joint, at: session.cursor.index)
      resume(session, inquiry)
    case .begin:
      session.joint.set(joint, at: session.cursor.index)
      startStreaming(session)
      emit(.playing(anchor(session)), session.id)
    case .stop(let inquiry): end(session, .stopped, answering: inquiry)
    case .replace(let play):
      end(session, .replaced)
      begin(play)
    case .seek(let lease, let position, let inquiry):
      session.move(to: lease, positionMilliseconds: position)
      session.joint.set(joint, at: session.cursor.index)
      announceSeek(session, inquiry)
    case .volume(let level, let lease, let inquiry):
      session.move(to: lease, positionMilliseconds: session.cursor.positionMilliseconds)
      session.joint.set(joint, at: session.cursor.index)
      volumeChanged(session, to: level, inquiry)
    case .endOfRange:
      guard reachEnd(session), session.nextTick != nil else { return }
      session.joint.set(joint, at: session.cursor.index)
    }
  }

  /// Sends the old sound's last packet in place of the one under the cursor.
  private func sendLast(_ packet: [UInt8], _ session: Session) {
    packet.withUnsafeBytes { append($0, of: session) }
    session.cursor.skip()
    session.nextTick? += Schedule.ticksPerPacket
  }
}
