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

  @Test func `a permit goes to the timeline that runs dry first`() {
    let permits = CPUPermits(count: 1)
    func timeline(ahead: Int) -> Timeline {
      let timeline = Timeline(key: TrackKey(source: .file(path: "\(ahead)")))
      var writer = Timeline.Writer(timeline)
      for _ in 0..<ahead { [UInt8](repeating: 0, count: 10).withUnsafeBytes { writer.append($0) } }
      return timeline
    }
    let order = Mutex<[Int]>([])
    let done = DispatchSemaphore(value: 0)
    permits.acquire(for: timeline(ahead: 0))
    for ahead in [500, 0, 750, 50] {
      let timeline = timeline(ahead: ahead)
      DispatchQueue(label: "\(ahead)").async {
        permits.acquire(for: timeline)
        order.withLock { $0.append(ahead) }
        permits.release()
        done.signal()
      }
    }
    // All four have asked once each is blocked: the count of waiters says so.
    while permits.waiterCount < 4 {}
    permits.release()
    for _ in 0..<4 { done.wait() }
    #expect(order.withLock { $0 } == [0, 50, 500, 750])
  }
}
