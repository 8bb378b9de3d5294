import Dispatch
import ServiceSupport
import Synchronization
import WireProtocol

/// The worker threads. Each runs one job, a timeline's production, and holds one of the slots while it does more than
/// wait: what waits for the network, or rests because it is far enough ahead, gives its slot to another.
///
/// A free slot goes to the client that has the fewest, so that nobody's hundred slow streams keep another's file
/// waiting. Threads are started when work comes and end after half a minute without any, so an idle engine has none.
/// A thread whose job has lowered its priority for good, for want of the privilege to raise it, ends with that job:
/// the next would begin behind every other program.
package final class WorkerPool: Sendable {
  package typealias Job = @Sendable (WorkerSlot) -> Void

  fileprivate enum Entrant {
    case job(Job, number: UInt64)
    /// A job that gave its slot back and wants one again.
    case returning(DispatchSemaphore)
  }

  fileprivate struct Start {
    let client: String?
    let job: Job
    let number: UInt64
  }

  fileprivate struct State {
    var entrants = FairQueue<Entrant>()
    /// Slots in use, by client.
    var slots: [String?: Int] = [:]
    var slotCount = 0
    /// Jobs begun and not ended, with a slot or without, by client.
    var jobs: [String?: Int] = [:]
    var jobCount = 0
    var queuedJobs: [String?: Int] = [:]
    var queuedJobCount = 0
    /// Jobs with a slot, for which an idle thread has been woken.
    var assigned: [Start] = []
    var idle = 0
    var submitted: UInt64 = 0
    var refused = 0
  }

  /// Jobs begun at once, with those that wait for the network: a thread each, at about 70 KB of touched memory, and
  /// what its source has buffered.
  package static let maximumBegunJobs = 512
  /// One client may have one of so many of all jobs begun or queued.
  package static let clientShare = 4

  package let maximumWorkers: Int
  package let maximumQueuedJobs: Int
  private let maximumBegunJobs: Int
  private let state = Mutex(State())
  private let work = DispatchSemaphore(value: 0)
  /// What waits for a slot.
  private let wanted = Atomic<Int>(0)
  private static let idleSeconds = 30
  private static let threadRetry = DispatchTimeInterval.seconds(1)

  /// - Parameters:
  ///   - maximumWorkers: slots, 1 or more.
  ///   - maximumQueuedJobs: jobs of one client that may wait for a slot before `submit` refuses.
  package init(maximumWorkers: Int, maximumQueuedJobs: Int) {
    precondition(maximumWorkers > 0)
    self.maximumWorkers = maximumWorkers
    self.maximumQueuedJobs = maximumQueuedJobs
    maximumBegunJobs = max(Self.maximumBegunJobs, Self.clientShare * maximumWorkers)
  }

  /// Slots in use: jobs that do more than wait.
  package var busyCount: Int { state.withLock { $0.slotCount } }
  package var queuedCount: Int { state.withLock { $0.queuedJobCount } }
  /// Jobs that have given their slot back for a while.
  package var waitingCount: Int { state.withLock { $0.jobCount - $0.slotCount } }
  package var refusedCount: Int { state.withLock { $0.refused } }

  /// Hands a job to an idle thread, a new one, or the queue.
  ///
  /// - Throws: `workers_exhausted` where the client's queue is full, or that of all.
  package func submit(for client: String? = nil, _ job: @escaping Job) throws(ErrorReport) {
    let queued: (number: UInt64, starts: [Start])? = state.withLock { state in
      guard hasRoom(for: client, state) else {
        state.refused += 1
        return nil
      }
      state.submitted += 1
      state.queue(.job(job, number: state.submitted), of: client)
      return (state.submitted, take(&state))
    }
    guard let queued else { throw exhausted(client) }
    try run(queued.starts, submitted: queued.number)
  }

  /// Whether one more job can begin at once, or may wait.
  private func hasRoom(for client: String?, _ state: borrowing State) -> Bool {
    state.slotCount < maximumWorkers && state.queuedJobCount == 0
      || state.queuedJobs[client, default: 0] < maximumQueuedJobs
        && state.queuedJobCount < Self.clientShare * maximumQueuedJobs
  }

  private func exhausted(_ client: String?) -> ErrorReport {
    let begun = state.withLock { $0.jobs[client, default: 0] }
    return ErrorReport(
      .workersExhausted,
      "\(begun) tracks of this client are being read, of which \(maximumBegunJobs / Self.clientShare) may be, and "
        + "\(maximumQueuedJobs) more wait for all \(maximumWorkers) workers",
      hint: "try again in a few seconds, stop tracks whose servers are slow, or raise --max-workers",
      stage: .queue)
  }

  // MARK: Slots

  /// A job's thread waits for something else than the CPU.
  fileprivate func leaveSlot(of client: String?) {
    let starts = state.withLock { state in
      state.freeSlot(of: client)
      return take(&state)
    }
    runQueued(starts)
  }

  /// Blocks until the thread's job has a slot again.
  fileprivate func enterSlot(of client: String?, _ turn: DispatchSemaphore) {
    let starts = state.withLock { state in
      state.entrants.append(.returning(turn), for: client, isUrgent: true)
      return take(&state)
    }
    runQueued(starts)
    turn.wait()
  }

  /// Whether anything waits for a slot.
  fileprivate var isSlotWanted: Bool { wanted.load(ordering: .relaxed) > 0 }

  /// Gives free slots away. Jobs that get one are the caller's to start, outside the lock.
  private func take(_ state: inout State) -> [Start] {
    defer { wanted.store(state.entrants.count, ordering: .relaxed) }
    var starts: [Start] = []
    let share = maximumBegunJobs / Self.clientShare
    while state.slotCount < maximumWorkers {
      let (slots, jobs, jobCount) = (state.slots, state.jobs, state.jobCount)
      let next = state.entrants.popNext(
        load: { slots[$0] ?? 0 },
        mayBegin: { jobCount < maximumBegunJobs && jobs[$0] ?? 0 < share })
      guard let (client, entrant) = next else { break }
      state.slotCount += 1
      state.slots[client, default: 0] += 1
      switch entrant {
      case .returning(let turn): turn.signal()
      case .job(let job, let number):
        state.begin(client)
        starts.append(Start(client: client, job: job, number: number))
      }
    }
    return starts
  }

  // MARK: Threads

  private func runQueued(_ starts: [Start]) {
    // Anyone who asked for these has been answered: what no thread is there for now waits on.
    do throws(ErrorReport) { try run(starts, submitted: nil) } catch {}
  }

  /// Gives jobs that have a slot to idle threads, or to new ones.
  ///
  /// - Parameter submitted: the caller's own job, which is not kept where no thread can be started for it.
  private func run(_ starts: [Start], submitted: UInt64?) throws(ErrorReport) {
    var failure: ErrorReport?
    for start in starts {
      let isAssigned = state.withLock { state in
        guard state.assigned.count < state.idle else { return false }
        state.assigned.append(start)
        return true
      }
      if isAssigned {
        work.signal()
        continue
      }
      do throws(ErrorReport) {
        try EngineThread.start(name: "worker") { [self] in
          if let next = perform(start) { runJobs(next) }
        }
      } catch {
        state.withLock { $0.undo(start, keeping: start.number != submitted) }
        if start.number == submitted { failure = error }
        // Its slot is for the next that waits, once there may be threads again.
        DispatchQueue.global().asyncAfter(deadline: .now() + Self.threadRetry) { [self] in
          runQueued(state.withLock { take(&$0) })
        }
      }
    }
    if let failure { throw failure }
  }

  /// Whether and with what a thread goes on after a job.
  private enum Next {
    case job(Start)
    case idle
  }

  /// Does one job.
  ///
  /// - Returns: nil where the thread is to end.
  private func perform(_ start: Start) -> Next? {
    let slot = WorkerSlot(self, client: start.client)
    start.job(slot)
    let isFit = EngineThread.setNiceness(0)
    var starts = state.withLock { state in
      if slot.isHeld { state.freeSlot(of: start.client) }
      state.end(start.client)
      return take(&state)
    }
    let own = isFit ? starts.popLast() : nil
    runQueued(starts)
    guard isFit else { return nil }
    return own.map { .job($0) } ?? .idle
  }

  private func runJobs(_ first: Next) {
    var next = first
    while true {
      let start: Start
      switch next {
      case .job(let given): start = given
      case .idle:
        guard let given = waitForWork() else { return }
        start = given
      }
      guard let following = perform(start) else { return }
      next = following
    }
  }

  /// - Returns: nil after a long time without work.
  private func waitForWork() -> Start? {
    state.withLock { $0.idle += 1 }
    while true {
      let isTimedOut = work.wait(timeout: .now() + .seconds(Self.idleSeconds)) == .timedOut
      let (start, isOver): (Start?, Bool) = state.withLock { state in
        guard isTimedOut || !state.assigned.isEmpty else { return (nil, false) }
        state.idle -= 1
        return (state.assigned.isEmpty ? nil : state.assigned.removeFirst(), true)
      }
      if isOver { return start }
    }
  }
}

extension WorkerPool.State {
  fileprivate mutating func queue(_ entrant: WorkerPool.Entrant, of client: String?) {
    entrants.append(entrant, for: client)
    queuedJobs[client, default: 0] += 1
    queuedJobCount += 1
  }

  fileprivate mutating func begin(_ client: String?) {
    leaveQueue(client)
    jobs[client, default: 0] += 1
    jobCount += 1
  }

  fileprivate mutating func end(_ client: String?) {
    jobs.countDown(client)
    jobCount -= 1
  }

  fileprivate mutating func freeSlot(of client: String?) {
    slots.countDown(client)
    slotCount -= 1
  }

  /// No thread could be started for a job.
  fileprivate mutating func undo(_ start: WorkerPool.Start, keeping isKept: Bool) {
    freeSlot(of: start.client)
    end(start.client)
    guard isKept else { return }
    entrants.putBack(.job(start.job, number: start.number), for: start.client)
    queuedJobs[start.client, default: 0] += 1
    queuedJobCount += 1
  }

  private mutating func leaveQueue(_ client: String?) {
    queuedJobs.countDown(client)
    queuedJobCount -= 1
  }
}

/// A job's slot among those of all workers. For the job's own thread alone.
package final class WorkerSlot {
  private let pool: WorkerPool
  private let client: String?
  private let turn = DispatchSemaphore(value: 0)
  fileprivate private(set) var isHeld = true

  fileprivate init(_ pool: WorkerPool, client: String?) {
    self.pool = pool
    self.client = client
  }

  /// Before waiting for something else than the CPU.
  package func release() {
    guard isHeld else { return }
    isHeld = false
    pool.leaveSlot(of: client)
  }

  /// Between two time slices: gives the slot to another worker that waits for one. Call `acquire` next.
  package func yieldIfWanted() {
    if pool.isSlotWanted { release() }
  }

  /// Blocks until there is a slot again.
  package func acquire() {
    guard !isHeld else { return }
    pool.enterSlot(of: client, turn)
    isHeld = true
  }
}
