import Dispatch
import Synchronization
import WireProtocol

/// The worker threads. Each runs one job, a timeline's production, at a time.
///
/// Threads are started when work comes and end after half a minute without any, so an idle engine has none.
/// A thread whose job has lowered its priority for good, for want of the privilege to raise it, ends with
/// that job: the next would begin behind every other program.
package final class WorkerPool: Sendable {
  package typealias Job = @Sendable () -> Void

  private struct State {
    var jobs: [Job] = []
    var idle = 0
    var threads = 0
  }

  package let maximumWorkers: Int
  package let maximumQueuedJobs: Int
  private let state = Mutex(State())
  private let work = DispatchSemaphore(value: 0)
  private static let idleSeconds = 30

  /// - Parameters:
  ///   - maximumWorkers: threads at once, 1 or more.
  ///   - maximumQueuedJobs: jobs that may wait for a thread before `submit` refuses.
  package init(maximumWorkers: Int, maximumQueuedJobs: Int) {
    precondition(maximumWorkers > 0)
    self.maximumWorkers = maximumWorkers
    self.maximumQueuedJobs = maximumQueuedJobs
  }

  /// Threads that are running a job.
  package var busyCount: Int { state.withLock { $0.threads - $0.idle } }
  package var queuedCount: Int { state.withLock { $0.jobs.count } }

  /// Hands a job to an idle thread, a new one, or the queue.
  ///
  /// - Throws: `workers_exhausted` where every thread is busy and the queue is full.
  package func submit(_ job: @escaping Job) throws(ErrorReport) {
    enum Place { case queued, newThread, refused }
    let place: Place = state.withLock { state in
      if state.jobs.count < state.idle {
        state.jobs.append(job)
        return .queued
      }
      if state.threads < maximumWorkers {
        state.threads += 1
        return .newThread
      }
      guard state.jobs.count < maximumQueuedJobs else { return .refused }
      state.jobs.append(job)
      return .queued
    }
    switch place {
    case .queued: work.signal()
    case .newThread:
      do {
        try EngineThread.start(name: "worker") { [self] in
          job()
          EngineThread.setNiceness(0) ? runJobs() : retire()
        }
      } catch {
        state.withLock { $0.threads -= 1 }
        throw error
      }
    case .refused:
      throw ErrorReport(
        .workersExhausted,
        "all \(maximumWorkers) workers are busy and \(maximumQueuedJobs) more tracks wait",
        hint: "try again in a few seconds, or raise --max-workers", stage: .queue)
    }
  }

  private func runJobs() {
    while true {
      state.withLock { $0.idle += 1 }
      let timeout = DispatchTime.now() + .seconds(Self.idleSeconds)
      let isTimedOut = work.wait(timeout: timeout) == .timedOut
      let job: Job? = state.withLock { state in
        state.idle -= 1
        if !state.jobs.isEmpty { return state.jobs.removeFirst() }
        if isTimedOut { state.threads -= 1 }
        return nil
      }
      if let job {
        job()
        guard EngineThread.setNiceness(0) else { return retire() }
      } else if isTimedOut {
        return
      }
    }
  }

  /// Ends the calling thread's work; where a job waits, a new thread takes its place.
  private func retire() {
    let isReplaced = state.withLock { state in
      if state.jobs.count > state.idle { return true }
      state.threads -= 1
      return false
    }
    guard isReplaced else { return }
    do {
      try EngineThread.start(name: "worker") { [self] in runJobs() }
    } catch {
      // Slower is better than never.
      runJobs()
    }
  }
}
