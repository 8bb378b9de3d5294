/// Which sessions are due when: the schedule, and the streaming sessions by the phase of their ticks.
struct TickScheduler {
  /// How late a session may begin, in ticks, to share a tick with others, and with how many at most.
  private static let shareableTicks: UInt64 = 5
  private static let shareableSessions = 64

  private(set) var schedule: Schedule
  private var phases = [[Session]](repeating: [], count: Int(Schedule.ticksPerPacket))
  private(set) var streamingCount = 0
  /// Restarts of the schedule.
  private(set) var rebaseCount = 0

  init(now: UInt64) { schedule = Schedule(nowNanoseconds: now) }

  /// When the next tick is due; nil while no session streams.
  var deadlineNanoseconds: UInt64? { streamingCount > 0 ? schedule.time(of: schedule.nextTick) : nil }

  // MARK: Sessions

  /// Has a session's first packet sent within the next 20 ms, mostly within 10 ms.
  ///
  /// - Parameter joiningTick: the tick of a track that follows another one; nil for one that begins by itself.
  mutating func include(_ session: Session, at joiningTick: UInt64?, now: UInt64) {
    let tick = joiningTick ?? startTick(from: session.earliestTick, now: now)
    schedule.include(tick)
    session.rebaseCount = rebaseCount
    session.nextTick = tick
    phases[Schedule.phase(of: tick)].append(session)
    streamingCount += 1
  }

  mutating func remove(_ session: Session, from tick: UInt64) {
    phases[Schedule.phase(of: tick)].removeAll { $0 === session }
    session.earliestTick = tick
    session.nextTick = nil
    streamingCount -= 1
  }

  /// A tick soon in which others are due already, since every tick with sessions costs the same; where those are
  /// many, or none is near, the one with the fewest.
  private func startTick(from earliest: UInt64, now: UInt64) -> UInt64 {
    let first = max(earliest, schedule.firstTick(after: now))
    func sessionCount(_ tick: UInt64) -> Int { phases[Schedule.phase(of: tick)].count }
    let near = (first..<first + Self.shareableTicks).first {
      (1..<Self.shareableSessions).contains(sessionCount($0))
    }
    return near
      ?? (first..<first + Schedule.ticksPerPacket).min { sessionCount($0) < sessionCount($1) } ?? first
  }

  // MARK: Ticks

  /// Has the schedule continue from now where nothing was due. Between two rounds: a tick that is being run stays the
  /// next one until it is done.
  mutating func catchUpIfIdle(now: UInt64) {
    if streamingCount == 0 { schedule.catchUpIdle(nowNanoseconds: now) }
  }

  /// Begins a round: moves the schedule if the machine has stalled.
  mutating func begin(now: UInt64) {
    guard streamingCount > 0 else { return }
    skipEmptyTicks()
    if schedule.rebaseIfStalled(nowNanoseconds: now) { rebaseCount += 1 }
  }

  /// The next tick, if it is due.
  func dueTick(now: UInt64) -> UInt64? {
    guard let deadlineNanoseconds, deadlineNanoseconds <= now else { return nil }
    return schedule.nextTick
  }

  /// The sessions that may be due in a tick: those whose `nextTick` it is.
  func sessions(in tick: UInt64) -> [Session] { phases[Schedule.phase(of: tick)] }

  /// The next tick is done.
  mutating func advance() {
    schedule.advance()
    skipEmptyTicks()
  }

  /// Moves on to the next tick in which a session is due.
  private mutating func skipEmptyTicks() {
    for _ in 0..<Schedule.ticksPerPacket {
      guard phases[Schedule.phase(of: schedule.nextTick)].isEmpty else { return }
      schedule.advance()
    }
  }
}
