import WireProtocol

/// How a session comes from one engine to another without a gap: the other opens the track and stands by, and then begins
/// with the packet at which this one ends.
extension SessionDirector {
  /// How far ahead a session may be told to end.
  private static let maximumLeadMilliseconds = 1_000

  /// What stands by has not been heard: another command than to begin finds nothing. A home that asks where the session is
  /// does not know of it.
  func endStandby(_ id: SessionID, before action: EngineCommand.SessionAction, now: UInt64) {
    guard let session = sessions[id], session.isStandby else { return }
    if case .takeOver = action { return }
    end(session, .cleanup, now: now)
  }

  /// Begins what stands by.
  func takeOver(
    _ session: Session, at position: Int, _ due: UInt64?, _ pendingRequest: PendingRequest, now: UInt64
  ) throws(ErrorReport) {
    guard session.isStandby else { throw Self.notNow("take_over: the session does not stand by") }
    try session.machine.requirePaused()
    if let due, due <= now { throw Self.notNow("take_over: the packet is due already") }
    let timeline = session.cursor.timeline
    if timeline.isLive {
      session.joinLiveSource()
    } else {
      guard timeline.hasPacket(atMilliseconds: position) else {
        timeline.requestProduction(upToMilliseconds: position)
        throw Self.notNow("take_over: the packet at \(position) ms is not there yet")
      }
      session.move(to: timeline.packetIndex(atMilliseconds: position))
    }
    session.isStandby = false
    if let due {
      session.machine.resume()
      session.pausedSinceNanoseconds = nil
      ticks.include(session, at: ticks.schedule.tick(nearest: due), now: now)
      // Its Router is told of the place and time of the first packet, right before that.
      session.rebaseCount -= 1
    }
    emit(.status(snapshot(session)), session.id, answering: pendingRequest)
  }

  /// Has a session end before the packet of a position. What is left until then is sent at once, so that it does not come
  /// behind what the other engine sends, and then it is answered.
  func handOver(
    _ session: Session, at position: Int, _ pendingRequest: PendingRequest, now: UInt64
  ) throws(ErrorReport) {
    try session.machine.requirePlace(for: "hand_over")
    let ahead = position - session.cursor.positionMilliseconds
    guard session.nextTick != nil else {
      guard ahead == 0 || session.cursor.timeline.isLive else {
        throw Self.notNow("hand_over: the session is paused at another place")
      }
      return end(session, .moved, answering: pendingRequest, now: now)
    }
    guard session.transition == nil, session.pendingMove == nil, session.handOver == nil else {
      throw Self.notNow("hand_over: the session is on its way to another place or level")
    }
    guard (1...Self.maximumLeadMilliseconds).contains(ahead) else {
      throw Self.notNow("hand_over: \(position) ms is \(ahead) ms ahead of the next packet")
    }
    session.handOver = PendingHandOver(positionMilliseconds: position, pendingRequest: pendingRequest)
    while session.cursor.positionMilliseconds < position, session.cursor.hasPacket,
      !session.splicePackets.isAwaited(at: session.cursor.index)
    {
      sendPacket(session)
      session.nextTick? += Schedule.ticksPerPacket
    }
    endIfHandedOver(session, now: now)
  }

  /// The session is on its way to another place or level, or stands still.
  func dropHandOver(_ session: Session) {
    reject(session.handOver?.pendingRequest, .overtaken, session.id)
    session.handOver = nil
  }

  /// Ends a session whose last packet here has been sent.
  func endIfHandedOver(_ session: Session, now: UInt64) {
    guard let handOver = session.handOver,
      session.cursor.positionMilliseconds >= handOver.positionMilliseconds
    else { return }
    session.handOver = nil
    end(session, .moved, answering: handOver.pendingRequest, now: now)
  }

  private static func notNow(_ message: String) -> ErrorReport {
    ErrorReport(.invalidState, message, hint: "try again", stage: .command)
  }
}
