import AudioEngineCore
import Dispatch
import Synchronization
import Testing
import WireProtocol

@Suite struct WorkerTests {
  @Test func `as many jobs run at once as there are workers, and the rest wait`() throws {
    let pool = WorkerPool(maximumWorkers: 3, maximumQueuedJobs: 100)
    let running = Atomic<Int>(0)
    let most = Atomic<Int>(0)
    let done = DispatchSemaphore(value: 0)
    let gate = DispatchSemaphore(value: 0)
    for _ in 0..<20 {
      try pool.submit { _ in
        most.max(running.add(1, ordering: .relaxed).newValue, ordering: .relaxed)
        gate.wait()
        running.subtract(1, ordering: .relaxed)
        done.signal()
      }
    }
    for _ in 0..<20 { gate.signal() }
    for _ in 0..<20 { done.wait() }
    #expect(most.load(ordering: .relaxed) <= 3)
  }

  @Test func `a full queue refuses in words`() throws {
    let pool = WorkerPool(maximumWorkers: 1, maximumQueuedJobs: 2)
    let gate = DispatchSemaphore(value: 0)
    for _ in 0..<3 { try pool.submit { _ in gate.wait() } }
    let error = #expect(throws: ErrorReport.self) { try pool.submit { _ in } }
    #expect(error?.code == .workersExhausted)
    for _ in 0..<3 { gate.signal() }
  }

  /// One that produces, and has packets ahead of its listeners; with nil, one that is being opened.
  private func timeline(ahead: Int?, client: String? = nil) -> Timeline {
    let timeline = Timeline(key: TrackKey(source: .file(path: "a")), client: client)
    guard let ahead else { return timeline }
    var writer = Timeline.Writer(timeline)
    for _ in 0..<ahead { [UInt8](repeating: 0, count: 10).withUnsafeBytes { writer.append($0) } }
    timeline.becomeReady(
      TrackDetails(title: nil, durationMilliseconds: nil, codec: "x", isPassthrough: false))
    return timeline
  }

  /// One that is being opened comes before all but those that would be heard to stop sooner.
  @Test func `a permit goes to the timeline that runs dry first`() {
    let permits = CPUPermits(count: 1)
    let order = Mutex<[Int?]>([])
    let done = DispatchSemaphore(value: 0)
    let first = timeline(ahead: nil)
    permits.acquire(for: first)
    for ahead in [500, nil, 0, 750, 50] {
      let timeline = timeline(ahead: ahead)
      DispatchQueue(label: "waiter").async {
        permits.acquire(for: timeline)
        order.withLock { $0.append(ahead) }
        permits.release(by: timeline)
        done.signal()
      }
    }
    // All five have asked once each is blocked: the count of waiters says so.
    while permits.waiterCount < 5 {}
    permits.release(by: first)
    for _ in 0..<5 { done.wait() }
    #expect(order.withLock { $0 } == [0, nil, 50, 500, 750])
  }

  @Test func `who has enough is asked to make way for who has not`() {
    let permits = CPUPermits(count: 1)
    let rich = timeline(ahead: 500)
    let poor = timeline(ahead: 30)
    permits.acquire(for: rich)
    #expect(!permits.isNeededMore(than: rich))
    let hasTurn = DispatchSemaphore(value: 0)
    func wait(for timeline: Timeline) {
      DispatchQueue(label: "waiter").async {
        permits.acquire(for: timeline)
        hasTurn.signal()
      }
      while permits.waiterCount == 0 {}
    }
    let second = timeline(ahead: 400)
    wait(for: second)
    #expect(!permits.isNeededMore(than: rich))
    permits.release(by: rich)
    hasTurn.wait()
    let third = timeline(ahead: nil)
    wait(for: third)
    #expect(permits.isNeededMore(than: rich))
    #expect(!permits.isNeededMore(than: poor))
    permits.release(by: second)
    hasTurn.wait()
    #expect(!permits.isNeededMore(than: rich))
    permits.release(by: third)
  }

  @Test func `among tracks being opened, clients take turns`() {
    let permits = CPUPermits(count: 1)
    let order = Mutex<[String?]>([])
    let done = DispatchSemaphore(value: 0)
    let first = timeline(ahead: nil, client: "greedy")
    permits.acquire(for: first)
    let clients: [String?] = ["greedy", "greedy", "greedy", "other", nil]
    for (index, client) in clients.enumerated() {
      let timeline = timeline(ahead: nil, client: client)
      DispatchQueue(label: "waiter").async {
        permits.acquire(for: timeline)
        order.withLock { $0.append(client) }
        permits.release(by: timeline)
        done.signal()
      }
      while permits.waiterCount <= index {}
    }
    permits.release(by: first)
    for _ in clients { done.wait() }
    #expect(order.withLock { $0 } == ["greedy", "other", nil, "greedy", "greedy"])
  }

  @Test func `what does not come back from a library keeps nobody waiting`() {
    let permits = CPUPermits(count: 1)
    let stuck = timeline(ahead: nil)
    let other = timeline(ahead: nil)
    permits.acquire(for: stuck)
    permits.acquire(for: other)
    #expect(permits.overdueCount == 1)
    permits.release(by: stuck)
    #expect(permits.waiterCount == 0)
    // There is one permit still, and the other has it.
    let third = timeline(ahead: nil)
    let hasTurn = Atomic<Bool>(false)
    let done = DispatchSemaphore(value: 0)
    DispatchQueue(label: "waiter").async {
      permits.acquire(for: third)
      hasTurn.store(true, ordering: .relaxed)
      done.signal()
    }
    while permits.waiterCount == 0 {}
    let isTooEarly = hasTurn.load(ordering: .relaxed)
    #expect(!isTooEarly)
    permits.release(by: other)
    done.wait()
    permits.release(by: third)
  }

  @Test func `a job that waits for the network leaves its slot to others, and has one again`() throws {
    let pool = WorkerPool(maximumWorkers: 1, maximumQueuedJobs: 10)
    let network = DispatchSemaphore(value: 0)
    let done = DispatchSemaphore(value: 0)
    for _ in 0..<20 {
      try pool.submit(for: "slow") { slot in
        slot.release()
        network.wait()
        slot.acquire()
        done.signal()
      }
      while pool.queuedCount > 0 {}
    }
    try pool.submit(for: "other") { _ in done.signal() }
    done.wait()
    #expect(pool.waitingCount >= 20)
    for _ in 0..<20 { network.signal() }
    for _ in 0..<20 { done.wait() }
  }

  @Test func `a client's jobs wait for its own, not for another's`() throws {
    let pool = WorkerPool(maximumWorkers: 1, maximumQueuedJobs: 3)
    let gate = DispatchSemaphore(value: 0)
    let done = DispatchSemaphore(value: 0)
    let order = Mutex<[String]>([])
    func submit(_ client: String) throws {
      try pool.submit(for: client) { _ in
        gate.wait()
        order.withLock { $0.append(client) }
        done.signal()
      }
    }
    for _ in 0..<4 { try submit("greedy") }
    let error = #expect(throws: ErrorReport.self) { try submit("greedy") }
    #expect(error?.code == .workersExhausted)
    try submit("other")
    for _ in 0..<5 { gate.signal() }
    for _ in 0..<5 { done.wait() }
    #expect(order.withLock { $0 } == ["greedy", "other", "greedy", "greedy", "greedy"])
    #expect(pool.refusedCount == 1)
  }

  @Test func `a client has a quarter of the threads`() throws {
    let pool = WorkerPool(maximumWorkers: 2, maximumQueuedJobs: 1_000)
    let share = WorkerPool.maximumBegunJobs / WorkerPool.clientShare
    let network = DispatchSemaphore(value: 0)
    let done = DispatchSemaphore(value: 0)
    for _ in 0..<share + 5 {
      try pool.submit(for: "slow") { slot in
        slot.release()
        network.wait()
        done.signal()
      }
    }
    while pool.waitingCount < share {}
    #expect(pool.queuedCount == 5)
    try pool.submit(for: "other") { _ in done.signal() }
    done.wait()
    for _ in 0..<share + 5 { network.signal() }
    for _ in 0..<share + 5 { done.wait() }
  }

  @Test func `jobs that wait are done, whatever their threads become`() throws {
    let pool = WorkerPool(maximumWorkers: 2, maximumQueuedJobs: 100)
    let done = DispatchSemaphore(value: 0)
    for _ in 0..<50 {
      try pool.submit { _ in
        EngineThread.setNiceness(10)
        done.signal()
      }
    }
    for _ in 0..<50 { done.wait() }
    #expect(pool.queuedCount == 0)
  }
}
