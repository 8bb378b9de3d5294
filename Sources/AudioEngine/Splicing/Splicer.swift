import DequeModule
import Dispatch
import ServiceSupport
import Synchronization
import WireProtocol

/// Renders splices on threads of its own, one a core: people wait for what they do, and a splice takes about a
/// millisecond.
package final class Splicer: Sendable {
  struct Job: Sendable {
    let splice: Splice
    /// Is given the first packet; none where rendering fails, which leaves a click and nothing worse.
    let begin: @Sendable ([[UInt8]]) -> Void
    /// Is given the packets that follow it, if there are any.
    let finish: @Sendable ([[UInt8]]) -> Void
  }

  /// From asking to the first packet's being there, while no more jobs are begun than `jobsAtOnce`.
  static let leadNanoseconds: UInt64 = 4_000_000
  /// A thread that has one more to begin with waits for no answer.
  private static let jobsPerThread = 2

  let jobsAtOnce: Int
  private let jobs = Mutex<Deque<Job>>([])
  private let available = DispatchSemaphore(value: 0)

  /// Starts the threads, which run for as long as the process does.
  package init(threadCount: Int) throws(ErrorReport) {
    jobsAtOnce = threadCount * Self.jobsPerThread
    for _ in 0..<threadCount {
      try EngineThread.start(name: "splicer") { [self] in
        ThreadPriority.goAhead()
        var thread = SplicerThread(splicer: self)
        while true { thread.work() }
      }
    }
  }

  func render(_ job: Job) {
    jobs.withLock { $0.append(job) }
    available.signal()
  }

  /// The next job; nil for none.
  ///
  /// - Parameter waits: whether to block until there is one.
  func takeJob(waits: Bool) -> Job? {
    guard available.wait(timeout: waits ? .distantFuture : .now()) == .success else { return nil }
    return jobs.withLock { $0.popFirst() }
  }
}
