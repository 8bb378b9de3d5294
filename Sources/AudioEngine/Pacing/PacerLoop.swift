import Glibc
import WireProtocol

/// The pacer's thread: its sessions, its connections and its rounds.
///
/// Made on that thread and never seen by another. `+Commands` holds what messages do to sessions.
final class PacerLoop {
  /// One connection and what it has not taken yet.
  private struct Link {
    let connection: RouterConnection
    var outbox = RouterOutbox()
    /// Sessions that `hello` had no room for and that it is still to be told of.
    var unlisted: ArraySlice<SessionID>
  }

  private static let stuckNanoseconds: UInt64 = 10_000_000_000
  private static let sessionsListedARound = 32
  /// How late a session may begin, in ticks, to share a round, and with how many at most.
  private static let shareableTicks: UInt64 = 5
  private static let shareableSessions = 64
  private static let messagesBetweenTicks = 32
  private static let cleanUpIntervalNanoseconds: UInt64 = 1_000_000_000
  /// Packets kept behind the last session of a timeline that will not be cached: seeking back within
  /// 5 s needs no new production.
  private static let packetsKeptBehind = 250

  let pacer: Pacer
  let limits: Hello.Limits
  let acquireTimeline: @Sendable (SessionID, UInt64, TrackKey, _ client: String?) -> Void
  let splicer = Splicer()
  private let startedAtMilliseconds: Int
  private let idleTimeoutNanoseconds: UInt64

  var sessions: [SessionID: Session] = [:]
  private(set) var schedule = Schedule(nowNanoseconds: MonotonicClock.nowNanoseconds)
  /// Streaming sessions by the phase of their ticks.
  private var phases = [[Session]](repeating: [], count: Int(Schedule.ticksPerPacket))
  private(set) var streamingCount = 0
  var batch = MessageBatch()
  private var links: [Link] = []
  var linkCount: Int { links.count }
  private var messages: [PacerMessage] = []
  private var pollDescriptors = [pollfd()]
  private var packetCount = 0
  private var underrunCount = 0
  private var routerQueueBytes = 0
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
      let now = MonotonicClock.nowNanoseconds
      if streamingCount == 0 { schedule.catchUpIdle(nowNanoseconds: now) }
      if !messages.isEmpty {
        for (index, message) in messages.enumerated() {
          handle(message)
          // Many commands at once make nobody's packet late.
          if index % Self.messagesBetweenTicks == Self.messagesBetweenTicks - 1 { runDueTicks() }
        }
        messages.removeAll(keepingCapacity: true)
        updateSessionCounts()
      }
      runDueTicks()
      listSessions()
      cleanUpIfDue(now)
      flush()
      wait()
    }
  }

  // MARK: Rounds

  private func runDueTicks() {
    guard streamingCount > 0 else { return }
    let now = MonotonicClock.nowNanoseconds
    skipEmptyTicks()
    if schedule.rebaseIfStalled(nowNanoseconds: now) { announceRebase() }
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
      packet.withUnsafeBytes { batch.append(audio: $0, of: session.id) }
      session.cursor.skip()
    } else {
      _ = session.cursor.withNext { batch.append(audio: $0, of: session.id) }
    }
    session.history.sentFrame(nowNanoseconds: now)
    countPacket()
  }

  func countPacket() { packetCount += 1 }

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

  private func announceRebase() {
    for session in phases.joined() { emit(.rebased(anchor(session)), session.id) }
    pacer.statistics.update { $0.rebases += 1 }
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

  // MARK: Connections

  func connect(_ connection: RouterConnection) {
    // What has been put together so far was before it came: its first message is hello.
    flush()
    let ids = Array(sessions.keys)
    links.append(Link(connection: connection, unlisted: ids.dropFirst(WireLimits.maximumHelloSessions)))
    let hello = Hello(
      startedAtMilliseconds: startedAtMilliseconds, nowNanoseconds: MonotonicClock.nowNanoseconds,
      limits: limits,
      sessions: ids.prefix(WireLimits.maximumHelloSessions).compactMap { sessions[$0].map(snapshot) })
    batch.append(EngineEvent(.hello(hello)), to: connection.id)
    pacer.statistics.update { $0.connections = links.count }
  }

  /// Tells new connections of further sessions, a few a round, so that nobody's packet is late for it.
  private func listSessions() {
    for index in links.indices where !links[index].unlisted.isEmpty {
      for id in links[index].unlisted.prefix(Self.sessionsListedARound) {
        guard let session = sessions[id] else { continue }
        batch.append(
          EngineEvent(.status(snapshot(session)), sessionID: id), to: links[index].connection.id)
      }
      links[index].unlisted = links[index].unlisted.dropFirst(Self.sessionsListedARound)
    }
  }

  func disconnect(_ id: RouterConnection.ID) {
    guard let index = links.firstIndex(where: { $0.connection.id == id }) else { return }
    links[index].connection.disconnect()
    links.remove(at: index)
    pacer.statistics.update { $0.connections = links.count }
  }

  private func flush() {
    var failed: [RouterConnection.ID] = []
    var waitingByteCount = 0
    let now = MonotonicClock.nowNanoseconds
    for index in links.indices {
      let connection = links[index].connection
      guard !batch.isEmpty || !links[index].outbox.isEmpty else { continue }
      let result =
        batch.isEmpty
        ? links[index].outbox.flush(write: connection.write)
        : links[index].outbox.send(batch, to: connection.id, nowNanoseconds: now, write: connection.write)
      let dropped = links[index].outbox.takeDroppedCount()
      if dropped > 0 { pacer.statistics.update { $0.droppedPackets += dropped } }
      if result == .failed { failed.append(connection.id) }
      waitingByteCount += links[index].outbox.byteCount
    }
    batch.removeAll()
    if waitingByteCount != routerQueueBytes {
      routerQueueBytes = waitingByteCount
      pacer.statistics.update { $0.routerQueueBytes = waitingByteCount }
    }
    failed.forEach(disconnect)
  }

  // MARK: Waiting

  private func wait() {
    pollDescriptors.removeSubrange(1...)
    for link in links where !link.outbox.isEmpty {
      pollDescriptors.append(pollfd(fd: link.connection.descriptor, events: Int16(POLLOUT), revents: 0))
    }
    var deadline = streamingCount > 0 ? schedule.time(of: schedule.nextTick) : nil
    if links.contains(where: { !$0.unlisted.isEmpty }) { deadline = MonotonicClock.nowNanoseconds }
    if deadline == nil, !sessions.isEmpty { deadline = nextCleanUpNanoseconds }
    pacer.wait(until: deadline, descriptors: &pollDescriptors)
  }

  private func cleanUpIfDue(_ now: UInt64) {
    guard now >= nextCleanUpNanoseconds else { return }
    nextCleanUpNanoseconds = now + Self.cleanUpIntervalNanoseconds
    trim()
    for session in sessions.values {
      guard let since = session.idleSinceNanoseconds, now > since + idleTimeoutNanoseconds else { continue }
      end(session, .cleanup)
    }
  }

  /// Frees what every session of a timeline that will not be cached has played.
  private func trim() {
    var slowest: [ObjectIdentifier: (timeline: Timeline, index: Int)] = [:]
    for session in sessions.values where session.cursor.timeline.isTransient {
      let timeline = session.cursor.timeline
      let index = min(session.cursor.index, slowest[ObjectIdentifier(timeline)]?.index ?? .max)
      slowest[ObjectIdentifier(timeline)] = (timeline, index)
    }
    for (timeline, index) in slowest.values { timeline.trim(before: index - Self.packetsKeptBehind) }
  }
}
