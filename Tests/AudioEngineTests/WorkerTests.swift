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
      try pool.submit {
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
    for _ in 0..<3 { try pool.submit { gate.wait() } }
    let error = #expect(throws: ErrorReport.self) { try pool.submit {} }
    #expect(error?.code == .workersExhausted)
    for _ in 0..<3 { gate.signal() }
  }

  /// One that produces, and has packets ahead of its listeners; with nil, one that is being opened.
  private func timeline(ahead: Int?) -> Timeline {
    let timeline = Timeline(key: TrackKey(source: .file(path: "a")))
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
    permits.acquire(for: timeline(ahead: nil))
    for ahead in [500, nil, 0, 750, 50] {
      let timeline = timeline(ahead: ahead)
      DispatchQueue(label: "waiter").async {
        permits.acquire(for: timeline)
        order.withLock { $0.append(ahead) }
        permits.release()
        done.signal()
      }
    }
    // All five have asked once each is blocked: the count of waiters says so.
    while permits.waiterCount < 5 {}
    permits.release()
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
    wait(for: timeline(ahead: 400))
    #expect(!permits.isNeededMore(than: rich))
    permits.release()
    hasTurn.wait()
    wait(for: timeline(ahead: nil))
    #expect(permits.isNeededMore(than: rich))
    #expect(!permits.isNeededMore(than: poor))
    permits.release()
    hasTurn.wait()
    #expect(!permits.isNeededMore(than: rich))
  }

  @Test func `jobs that wait are done, whatever their threads become`() throws {
    let pool = WorkerPool(maximumWorkers: 2, maximumQueuedJobs: 100)
    let done = DispatchSemaphore(value: 0)
    for _ in 0..<50 {
      try pool.submit {
        EngineThread.setNiceness(10)
        done.signal()
      }
    }
    for _ in 0..<50 { done.wait() }
    #expect(pool.queuedCount == 0)
  }
}
