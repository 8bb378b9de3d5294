import WireProtocol

/// Decides what every session does and sends. It owns no thread, clock or socket: it is given messages and the time,
/// and puts packets and events into `output`, in their one order.
///
/// A step allocates nothing while no session changes its state.
package final class SessionDirector {
  /// However often a source says another title: a second.
  private static let packetsBetweenMetadata = 50
  private static let stuckNanoseconds: UInt64 = 10_000_000_000
  private static let housekeepingIntervalNanoseconds: UInt64 = 1_000_000_000

  let limits: Hello.Limits
  let startedAtMilliseconds: Int
  private let idleTimeoutNanoseconds: UInt64
  let effects: any SessionEffects

  /// What is to be sent. The sender empties it.
  package var output = MessageBatch()
  package internal(set) var counts = SessionCounts()
  var sessions: [SessionID: Session] = [:]
  var ticks: TickScheduler
  /// Sessions by the timeline they wait for, and perhaps some that no longer do.
  var expecting: [ObjectIdentifier: Set<SessionID>] = [:]
  var routers: [ConnectedRouter] = []
  var inspection = SessionInspection()
  var recentEnds = RecentEnds()
  /// Numbers the moves, so that a late answer of the store is recognized.
  var moveCount: UInt64 = 0
  /// Splices that wait for a splicer, and perhaps some that are no longer wanted.
  var spliceRequests: [SpliceRequest] = []
  /// Numbers the splices, so that late packets are recognized.
  var spliceCount: UInt64 = 0
  /// Splices that are being rendered.
  var renderingCount = 0
  private var nextHousekeepingNanoseconds: UInt64 = 0

  package init(
    limits: Hello.Limits, startedAtMilliseconds: Int, idleTimeoutNanoseconds: UInt64, now: UInt64,
    effects: any SessionEffects
  ) {
    self.limits = limits
    self.startedAtMilliseconds = startedAtMilliseconds
    self.idleTimeoutNanoseconds = idleTimeoutNanoseconds
    self.effects = effects
    ticks = TickScheduler(now: now)
  }

  // MARK: Steps

  /// Sends what is due.
  ///
  /// - Parameter now: `CLOCK_MONOTONIC`; never earlier than in a call before.
  /// - Returns: how late the first due tick was, in nanoseconds; nil where no packet was due.
  @discardableResult
  package func step(now: UInt64) -> UInt64? {
    let lateness = runDueTicks(now: now)
    renderSplices(now: now)
    listSessions()
    inspection.advance(sessions, snapshot)
    runHousekeepingIfDue(now: now)
    counts.rebases = ticks.rebaseCount
    counts.streaming = ticks.streamingCount
    counts.paused = sessions.count - counts.extracting - counts.streaming
    return lateness
  }

  /// When the next packet is due; nil while no session streams.
  package var roundDeadlineNanoseconds: UInt64? { ticks.deadlineNanoseconds }

  /// When `step` has something to do, if no message comes before; nil for nothing.
  package func deadlineNanoseconds(now: UInt64) -> UInt64? {
    if !inspection.isIdle || routers.contains(where: { !$0.isListed }) {
      // A part each tick: the thread that steps goes before all others.
      return min(ticks.deadlineNanoseconds ?? .max, now + Schedule.tickNanoseconds)
    }
    return ticks.deadlineNanoseconds ?? (sessions.isEmpty ? nil : nextHousekeepingNanoseconds)
  }

  private func runDueTicks(now: UInt64) -> UInt64? {
    ticks.begin(now: now)
    let lateness = ticks.dueTick(now: now).map { now - ticks.schedule.time(of: $0) }
    while let tick = ticks.dueTick(now: now) {
      runTick(tick, now: now)
      ticks.advance()
    }
    return lateness
  }

  private func runTick(_ tick: UInt64, now: UInt64) {
    // A session that ends leaves its phase while this goes through a copy of it.
    for session in ticks.sessions(in: tick) where session.nextTick == tick {
      if session.rebaseCount != ticks.rebaseCount { announceRebase(session) }
      if session.pendingMove != nil { advanceMove(session, now: now) }
      completeDueTransition(session, now: now)
      if session.nextTick == tick { send(session, now: now) }
      if session.nextTick == tick { session.nextTick = tick + Schedule.ticksPerPacket }
      if session.nextTick == nil { joinNext(session, tick, now: now) }
    }
  }

  /// Sends the first packet of a track that follows another in the very tick in which that one ended.
  private func joinNext(_ session: Session, _ tick: UInt64, now: UInt64) {
    guard let next = sessions[session.id], next !== session, next.nextTick == tick else { return }
    send(next, now: now)
    if next.nextTick == tick { next.nextTick = tick + Schedule.ticksPerPacket }
  }

  private func runHousekeepingIfDue(now: UInt64) {
    guard now >= nextHousekeepingNanoseconds else { return }
    nextHousekeepingNanoseconds = now + Self.housekeepingIntervalNanoseconds
    trim()
    renewExpectations()
    for session in sessions.values {
      tellWhereLive(session)
      guard let since = session.idleSinceNanoseconds, now > since + idleTimeoutNanoseconds else { continue }
      end(session, .cleanup, now: now)
    }
  }

  /// A source that does not say so turns out to be live while it plays.
  private func tellWhereLive(_ session: Session) {
    guard session.cursor.timeline.isLive, session.track?.isLive == false else { return }
    session.track?.isLive = true
    emit(.status(snapshot(session)), session.id)
  }

  // MARK: Packets

  /// Sends the packet under a session's cursor, or says why there is none.
  private func send(_ session: Session, now: UInt64) {
    // The phase is read before the count: a complete timeline has every packet it will ever have.
    let phase = session.cursor.timeline.phase
    if !session.cursor.hasPacket, phase == .complete || phase == .failed {
      guard reachEnd(session, now: now) else { return }
    }
    if let end = session.request.endMilliseconds {
      guard approach(end, session, now: now) else { return }
    }
    // A fade in that is late makes the silence before it a packet longer.
    guard session.cursor.hasPacket, !session.splicePackets.isAwaited(at: session.cursor.index) else {
      return underrun(session, now: now)
    }
    if session.bufferingSinceNanoseconds != nil {
      endUnderrun(session, now: now)
      emit(.playing(anchor(session)), session.id)
    }
    if session.cursor.index >= session.nextMetadataIndex,
      let entry = session.cursor.metadata(after: session.metadataNumber)
    {
      session.metadataNumber = entry.number
      session.nextMetadataIndex = session.cursor.index + Self.packetsBetweenMetadata
      session.track?.metadata = entry.metadata
      emit(.metadata(entry.metadata), session.id)
    }
    sendPacket(session)
    session.history.sentFrame(nowNanoseconds: now)
    endIfHandedOver(session, now: now)
  }

  /// Sends the session's own packet, after a cut, or its timeline's.
  func sendPacket(_ session: Session) {
    switch session.splicePackets.take(at: session.cursor.index) {
    case .packet(let packet):
      packet.withUnsafeBytes { append($0, of: session) }
      return session.cursor.skip()
    case .late: counts.transitionsWithoutFade += 1
    case .none: break
    }
    _ = session.cursor.withNext { append($0, of: session) }
  }

  /// Puts one packet into the output.
  func append(_ packet: UnsafeRawBufferPointer, of session: Session) {
    output.append(audio: packet, of: session.id, to: session.owner?.connection)
    session.history.sentPacket(byteCount: packet.count)
    counts.packets += 1
  }

  /// Nothing was under the cursor at its deadline.
  func underrun(_ session: Session, now: UInt64) {
    let position = session.cursor.positionMilliseconds
    guard let since = session.bufferingSinceNanoseconds else {
      session.bufferingSinceNanoseconds = now
      session.isStuckAnnounced = false
      counts.underruns += 1
      return emit(.buffering(positionMilliseconds: position), session.id)
    }
    if !session.isStuckAnnounced, now - since >= Self.stuckNanoseconds {
      session.isStuckAnnounced = true
      let waited = Int((now - since) / 1_000_000)
      emit(.stuck(positionMilliseconds: position, waitedMilliseconds: waited), session.id)
    }
  }

  /// The session waits for nothing any more. The history keeps the wait, for `why`.
  func endUnderrun(_ session: Session, now: UInt64) {
    guard let since = session.bufferingSinceNanoseconds else { return }
    session.bufferingSinceNanoseconds = nil
    session.history.underran(since: since, until: now)
  }

  /// The schedule was restarted since the session's last packet. Each session says so just before its next one, so
  /// that with many of them it takes as many rounds, and no second restart.
  private func announceRebase(_ session: Session) {
    session.rebaseCount = ticks.rebaseCount
    // One that has nothing to send says when it has.
    if session.bufferingSinceNanoseconds == nil { output.append(rebased: anchor(session), of: session.id) }
  }

  // MARK: Streaming

  /// The place and time of a session's next packet.
  func anchor(_ session: Session) -> EngineEvent.Anchor {
    EngineEvent.Anchor(
      positionMilliseconds: session.cursor.positionMilliseconds,
      dueNanoseconds: ticks.schedule.time(of: session.nextTick ?? ticks.schedule.nextTick))
  }

  /// - Parameter joiningTick: the tick of a track that follows another one.
  func startStreaming(_ session: Session, at joiningTick: UInt64? = nil, now: UInt64) {
    session.bufferingSinceNanoseconds = nil
    ticks.include(session, at: joiningTick, now: now)
  }

  func stopStreaming(_ session: Session, now: UInt64) {
    guard let tick = session.nextTick else { return }
    ticks.remove(session, from: tick)
    endUnderrun(session, now: now)
  }
}
