import Glibc
import ServiceSupport
import WireProtocol

/// The pacer's thread: its sessions, its connections and its rounds.
///
/// Made on that thread and never seen by another. `+Commands` holds what messages do to sessions.
final class PacerLoop {
  private static let stuckNanoseconds: UInt64 = 10_000_000_000
  /// How late a session may begin, in ticks, to share a round, and with how many at most.
  private static let shareableTicks: UInt64 = 5
  private static let shareableSessions = 64
  /// Bytes put together before they are handed over though no packet is due: what a flood of commands is answered
  /// with takes no more memory than this.
  private static let flushByteCount = 1 << 20
  private static let cleanUpIntervalNanoseconds: UInt64 = 1_000_000_000

  let pacer: Pacer
  let limits: Hello.Limits
  let acquireTimeline: @Sendable (SessionID, UInt64, TrackKey, _ client: String?) -> Void
  let splicer = Splicer()
  let startedAtMilliseconds: Int
  private let idleTimeoutNanoseconds: UInt64

  var sessions: [SessionID: Session] = [:]
  /// Sessions by the timeline they wait for, and perhaps some that no longer do.
  var expecting: [ObjectIdentifier: Set<SessionID>] = [:]
  private(set) var schedule = Schedule(nowNanoseconds: MonotonicClock.nowNanoseconds)
  /// Streaming sessions by the phase of their ticks.
  private var phases = [[Session]](repeating: [], count: Int(Schedule.ticksPerPacket))
  private(set) var streamingCount = 0
  var extractingCount = 0
  var batch = MessageBatch()
  var links: [Link] = []
  var inspection = Inspection()
  private var messages: [PacerMessage] = []
  private var pollDescriptors = [pollfd()]
  private var packetCount = 0
  private var underrunCount = 0
  private var rebaseCount = 0
  var routerQueueBytes = 0
  private var publishedCounts = (0, 0, 0)
  private var commandShare = CommandShare()
  private var nextCleanUpNanoseconds: UInt64 = 0
  /// Numbers the moves, so that a late answer of the store finds out that it is late.
  var moveCount: UInt64 = 0
  /// Numbers the cuts, for the same reason.
  var cutCount: UInt64 = 0
  /// The tick that a track which follows another begins with.
  var joiningTick: UInt64?
  var recentEnds = RecentEnds()

  init(
    pacer: Pacer, limits: Hello.Limits, startedAtMilliseconds: Int, idleTimeoutNanoseconds: UInt64,
    acquireTimeline: @escaping @Sendable (SessionID, UInt64, TrackKey, _ client: String?) -> Void
  ) {
    self.pacer = pacer
    self.limits = limits
    self.startedAtMilliseconds = startedAtMilliseconds
    self.idleTimeoutNanoseconds = idleTimeoutNanoseconds
    self.acquireTimeline = acquireTimeline
  }

  func run() -> Never {
    while true {
      pacer.takeMessages(into: &messages)
      for message in messages { handleInTurn(message) }
      messages.removeAll(keepingCapacity: true)
      runRound()
      wait()
    }
  }

  // MARK: Rounds

  /// Many commands at once make nobody's packet late, neither here nor at a router: what is due goes out before the
  /// next one.
  private func handleInTurn(_ message: PacerMessage) {
    let start = MonotonicClock.nowNanoseconds
    if streamingCount == 0 { schedule.catchUpIdle(nowNanoseconds: start) }
    handle(message)
    var now = MonotonicClock.nowNanoseconds
    commandShare.spend(from: start, to: now)
    if isRoundDue(now) { runRound() }
    while streamingCount > 0 {
      now = MonotonicClock.nowNanoseconds
      let rest = commandShare.restNanoseconds(now: now)
      guard rest > 0 else { return }
      let due = schedule.time(of: schedule.nextTick)
      pacer.rest(nanoseconds: min(rest, due > now ? due - now : 0))
      runRound()
    }
  }

  /// Whether something is to be sent now, whatever else there is to do.
  private func isRoundDue(_ now: UInt64) -> Bool {
    if batch.bytes.count >= Self.flushByteCount { return true }
    return streamingCount > 0 && schedule.time(of: schedule.nextTick) <= now
  }

  private func runRound() {
    runDueTicks()
    listSessions()
    inspection.advance(sessions, snapshot)
    cleanUpIfDue(MonotonicClock.nowNanoseconds)
    flush()
    updateSessionCounts()
  }

  private func runDueTicks() {
    guard streamingCount > 0 else { return }
    let now = MonotonicClock.nowNanoseconds
    skipEmptyTicks()
    if schedule.rebaseIfStalled(nowNanoseconds: now) {
      rebaseCount += 1
      pacer.statistics.update { $0.rebases += 1 }
    }
    var lateness: UInt64?
    while streamingCount > 0, schedule.time(of: schedule.nextTick) <= now {
      lateness = lateness ?? now - schedule.time(of: schedule.nextTick)
      runTick(schedule.nextTick, now: now)
      schedule.advance()
      skipEmptyTicks()
    }
    guard let lateness else { return }
    pacer.statistics.update {
      $0.recordLateness(nanoseconds: lateness)
      $0.packets = packetCount
      $0.underruns = underrunCount
    }
  }

  /// Moves on to the next tick in which a session is due.
  private func skipEmptyTicks() {
    for _ in 0..<Schedule.ticksPerPacket {
      guard phases[Schedule.phase(of: schedule.nextTick)].isEmpty else { return }
      schedule.advance()
    }
  }

  private func runTick(_ tick: UInt64, now: UInt64) {
    // A session that ends leaves its phase while this goes through a copy of it.
    for session in phases[Schedule.phase(of: tick)] where session.nextTick == tick {
      if session.rebaseCount != rebaseCount { announceRebase(session) }
      if session.pending != nil { advanceMove(session) }
      performDueCut(session)
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

  /// Sends the packet under a session's cursor, or says why there is none.
  private func send(_ session: Session, now: UInt64) {
    // The phase is read before the count: a complete timeline has every packet it will ever have.
    let phase = session.cursor.timeline.phase
    if !session.cursor.hasPacket, phase == .complete || phase == .failed {
      guard reachEnd(session) else { return }
    }
    if let end = session.request.endMilliseconds {
      guard goOn(session, before: end) else { return }
    }
    guard session.cursor.hasPacket else { return underrun(session, now: now) }
    if session.bufferingSinceNanoseconds != nil {
      endUnderrun(session, now: now)
      emit(.playing(anchor(session)), session.id)
    }
    if let packet = session.joint.take(at: session.cursor.index) {
      packet.withUnsafeBytes { append($0, of: session) }
      session.cursor.skip()
    } else {
      _ = session.cursor.withNext { append($0, of: session) }
    }
    session.history.sentFrame(nowNanoseconds: now)
  }

  /// One packet goes out.
  func append(_ packet: UnsafeRawBufferPointer, of session: Session) {
    batch.append(audio: packet, of: session.id)
    session.history.sentPacket(byteCount: packet.count)
    packetCount += 1
  }

  /// Nothing is waited for any more: the wait is kept for whoever asks.
  func endUnderrun(_ session: Session, now: UInt64) {
    guard let since = session.bufferingSinceNanoseconds else { return }
    session.bufferingSinceNanoseconds = nil
    session.history.underran(since: since, until: now)
  }

  func underrun(_ session: Session, now: UInt64) {
    let position = session.cursor.positionMilliseconds
    guard let since = session.bufferingSinceNanoseconds else {
      session.bufferingSinceNanoseconds = now
      session.isStuckAnnounced = false
      underrunCount += 1
      return emit(.buffering(positionMilliseconds: position), session.id)
    }
    if !session.isStuckAnnounced, now - since >= Self.stuckNanoseconds {
      session.isStuckAnnounced = true
      let waited = Int((now - since) / 1_000_000)
      emit(.stuck(positionMilliseconds: position, waitedMilliseconds: waited), session.id)
    }
  }

  /// The schedule was restarted since the session's last packet. Each session says so just before its next one, so
  /// that with many of them it takes as many rounds, and no second restart.
  private func announceRebase(_ session: Session) {
    session.rebaseCount = rebaseCount
    // One that has nothing to send says when it has.
    if session.bufferingSinceNanoseconds == nil { batch.append(rebased: anchor(session), of: session.id) }
  }

  // MARK: The schedule's sessions

  /// The place and time of a session's next packet.
  func anchor(_ session: Session) -> EngineEvent.Anchor {
    EngineEvent.Anchor(
      positionMilliseconds: session.cursor.positionMilliseconds,
      dueNanoseconds: schedule.time(of: session.nextTick ?? schedule.nextTick))
  }

  /// The session's first packet goes out within the next 20 ms, mostly within 10 ms.
  func startStreaming(_ session: Session) {
    session.rebaseCount = rebaseCount
    let tick = joiningTick ?? startTick(from: session.earliestTick)
    schedule.include(tick)
    session.nextTick = tick
    session.bufferingSinceNanoseconds = nil
    phases[Schedule.phase(of: tick)].append(session)
    streamingCount += 1
  }

  /// A tick soon in which others are due already, since every round costs the same; where those are
  /// many, or none is near, the one with the fewest.
  private func startTick(from earliest: UInt64) -> UInt64 {
    let first = max(earliest, schedule.firstTick(after: MonotonicClock.nowNanoseconds))
    func sessionCount(_ tick: UInt64) -> Int { phases[Schedule.phase(of: tick)].count }
    let near = (first..<first + Self.shareableTicks).first {
      (1..<Self.shareableSessions).contains(sessionCount($0))
    }
    return near
      ?? (first..<first + Schedule.ticksPerPacket).min { sessionCount($0) < sessionCount($1) } ?? first
  }

  func stopStreaming(_ session: Session) {
    guard let tick = session.nextTick else { return }
    phases[Schedule.phase(of: tick)].removeAll { $0 === session }
    session.earliestTick = tick
    session.nextTick = nil
    endUnderrun(session, now: MonotonicClock.nowNanoseconds)
    streamingCount -= 1
  }

  // MARK: Waiting

  private func wait() {
    pollDescriptors.removeSubrange(1...)
    for link in links where !link.outbox.isEmpty {
      pollDescriptors.append(pollfd(fd: link.connection.descriptor, events: Int16(POLLOUT), revents: 0))
    }
    var deadline = streamingCount > 0 ? schedule.time(of: schedule.nextTick) : nil
    if !inspection.isIdle || links.contains(where: { !$0.unlisted.isEmpty }) {
      // A part each tick: this thread goes before all others.
      deadline = min(deadline ?? .max, MonotonicClock.nowNanoseconds + Schedule.tickNanoseconds)
    }
    if deadline == nil, !sessions.isEmpty { deadline = nextCleanUpNanoseconds }
    pacer.wait(until: deadline, descriptors: &pollDescriptors)
  }

  private func cleanUpIfDue(_ now: UInt64) {
    guard now >= nextCleanUpNanoseconds else { return }
    nextCleanUpNanoseconds = now + Self.cleanUpIntervalNanoseconds
    trim()
    renewExpectations()
    for session in sessions.values {
      guard let since = session.idleSinceNanoseconds, now > since + idleTimeoutNanoseconds else { continue }
      end(session, .cleanup)
    }
  }

  private func updateSessionCounts() {
    let counts = (extractingCount, streamingCount, sessions.count)
    guard counts != publishedCounts else { return }
    publishedCounts = counts
    pacer.statistics.update {
      $0.extracting = extractingCount
      $0.streaming = streamingCount
      $0.paused = sessions.count - extractingCount - streamingCount
    }
  }
}
