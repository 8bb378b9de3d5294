import Logging
import ServiceSupport
import Subprocess
import WireProtocol

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The limits of extraction.
package struct ExtractionLimits: Sendable {
  /// Processes at once, each with one job at a time; 60 to 100 MiB each.
  var maximumWorkers = 2
  /// Processes more than that while several clients wait: three whose pages hang leave one to a fourth.
  var maximumExtraWorkers = 2
  /// Jobs of one client that may wait for a process, and those of all.
  var maximumQueuedJobs = 32
  var maximumQueuedJobsOfAll = 128
  /// From asking to the answer, waiting and starting included.
  package var jobSeconds = 30
  /// Until a worker has loaded yt-dlp: a cold disk takes its time.
  var startSeconds = 20
  /// Jobs after which a process is replaced by a new one.
  var jobsPerWorker = 200
  /// Resident memory after a job that makes a process be replaced.
  var recycleByteCount = 256 << 20
  /// Resident memory at which a process gives its job up.
  var memoryByteLimit = 512 << 20
  /// A process without a job ends after this; one of those beyond `maximumWorkers` sooner.
  var idleSeconds = 600
  var extraIdleSeconds = 10
  /// After the first death without a success since; doubles to the last.
  var firstBackoffMilliseconds = 250
  var lastBackoffMilliseconds = 30_000

  package init() {}
}

/// Worker processes and the jobs that wait for them. Processes are started when there is work, restarted
/// with back-off when they die, killed with what they started when a job takes too long.
actor ExtractionPool {
  typealias Answer = Result<WorkerAnswer.Found, ErrorReport>

  struct Statistics {
    var jobs = 0
    var failures = 0
    /// Processes started.
    var starts = 0
    /// Starts after a worker that died or was killed.
    var restarts = 0
    var running = 0
    var queued = 0
  }

  private struct Waiting {
    let job: ExtractionJob
    let client: String?
    let deadline: ContinuousClock.Instant
    /// False when everyone who asked has gone.
    let isWanted: @Sendable () -> Bool
    /// A worker that dies over a job may have been killed by chance; one that dies over it twice was not.
    var deaths = 0
    let answer: CheckedContinuation<Answer, Never>
  }

  private let program: ExtractionProgram
  private let settings: WorkerSettings
  private let limits: ExtractionLimits
  private let logger: Logger
  private var queue = FairQueue<Waiting>()
  /// Jobs that a process is at, by client.
  private var running: [String?: Int] = [:]
  /// Workers that wait for a job, by a number of their own; the most recent goes first, so that others idle out.
  private var idle: [(id: Int, wake: CheckedContinuation<Waiting?, Never>)] = []
  private var lastID = 0
  private var failuresInARow = 0
  private var mayStartAt = ContinuousClock.now
  /// Why no worker could be started, until one has.
  private var unavailable: ErrorReport?
  private(set) var version: String?
  private var counts = Statistics()

  init(program: ExtractionProgram, settings: WorkerSettings, limits: ExtractionLimits, logger: Logger) {
    self.program = program
    self.settings = settings
    self.limits = limits
    self.logger = logger
  }

  var statistics: Statistics {
    var statistics = counts
    statistics.queued = queue.count
    return statistics
  }

  /// Does one job.
  ///
  /// - Throws: `workers_exhausted`, `extractor_unavailable`, or why the job failed.
  func run(
    _ job: ExtractionJob, for client: String?, isWanted: @escaping @Sendable () -> Bool
  ) async throws(ErrorReport) -> WorkerAnswer.Found {
    counts.jobs += 1
    let answer: Answer
    if let unavailable, mayStartAt > .now {
      answer = .failure(unavailable)
    } else if queue.count(of: client) >= limits.maximumQueuedJobs
      || queue.count >= limits.maximumQueuedJobsOfAll
    {
      answer = .failure(exhausted(client))
    } else {
      answer = await withCheckedContinuation { continuation in
        let deadline = ContinuousClock.now + .seconds(limits.jobSeconds)
        enqueue(
          Waiting(job: job, client: client, deadline: deadline, isWanted: isWanted, answer: continuation))
      }
    }
    if case .failure = answer { counts.failures += 1 }
    return try answer.get()
  }

  /// Asks which yt-dlp is installed; what `/health` tells until a worker has been started.
  func lookForVersion() async {
    do {
      version = try await program.installedVersion()
    } catch {
      unavailable = error
      // Only told: anyone who asks for a page makes us try.
      logger.warning("\(error.message)\(error.hint.map { ": \($0)" } ?? "")")
    }
  }

  /// Why pages cannot be played now; nil where they can.
  var problem: String? { unavailable?.message }

  private func exhausted(_ client: String?) -> ErrorReport {
    ErrorReport(
      .workersExhausted,
      "\(running[client] ?? 0) extractions of this client run and \(queue.count(of: client)) more wait",
      hint: "try again in a few seconds", stage: .extract)
  }

  private func enqueue(_ waiting: Waiting) {
    queue.append(waiting, for: waiting.client)
    giveOut()
  }

  /// Gives what waits to idle workers, and starts a process for what is left: more than the usual number only where
  /// clients come to more, since none has all of those.
  private func giveOut() {
    while !idle.isEmpty, let next = takeNext() {
      idle.removeLast().wake.resume(returning: next)
    }
    let starting = counts.running - idle.count - running.values.reduce(0, +)
    guard startableCount > starting, counts.running < limits.maximumWorkers + limits.maximumExtraWorkers
    else { return }
    counts.running += 1
    Task { await keepRunning() }
  }

  /// What one client may have: the usual processes while it is alone, all but one of as many beside others.
  private var clientShare: Int {
    let clients = Set(running.keys).union(queue.counts.map(\.client))
    return clients.count > 1 ? max(1, limits.maximumWorkers - 1) : limits.maximumWorkers
  }

  private var startableCount: Int {
    queue.counts.reduce(0) { $0 + max(0, min($1.count, clientShare - (running[$1.client] ?? 0))) }
  }

  private func takeNext() -> Waiting? {
    let (running, share) = (running, clientShare)
    let next = queue.popNext(load: { running[$0] ?? 0 }, mayBegin: { running[$0] ?? 0 < share })
    guard let (client, waiting) = next else { return nil }
    self.running[client, default: 0] += 1
    return waiting
  }

  private func finished(_ waiting: Waiting) {
    running.countDown(waiting.client)
    giveOut()
  }

  // MARK: Workers

  /// One worker's place: process after process, for as long as there is work.
  private func keepRunning() async {
    repeat {
      try? await Task.sleep(until: mayStartAt)
      counts.starts += 1
      if failuresInARow > 0 { counts.restarts += 1 }
      do {
        // Cleanup by `finish` inside; whatever is left then is killed.
        _ = try await Subprocess.run(
          program.configuration(), input: .inputWriter, output: .sequence, error: .sequence
        ) { execution in
          async let noise: Void = log(execution.standardError)
          var pipes = WorkerPipes(execution)
          if await greet(&pipes) { await serve(&pipes) }
          await pipes.finish()
          await noise
        }
      } catch {
        failedToStart("\(program.pythonPath) cannot be run: \(error)")
      }
    } while startableCount > 0
    counts.running -= 1
  }

  /// Sends the settings and learns whether the worker can work.
  private func greet(_ pipes: inout WorkerPipes) async -> Bool {
    do {
      let line = try await pipes.exchange(settings, timeLimit: .seconds(limits.startSeconds))
      let greeting = try JSONDecoder().decode(WorkerGreeting.self, from: Data(line))
      guard let version = greeting.version else {
        failedToStart(greeting.failure ?? "the worker said no version")
        return false
      }
      self.version = version
      unavailable = nil
      return true
    } catch WorkerPipes.Failure.timedOut {
      failedToStart("it did not start within \(limits.startSeconds) s")
    } catch {
      failedToStart("\(program.pythonPath) with \(program.scriptPath) ended at once; the log has the rest")
    }
    return false
  }

  /// Gives a worker jobs until it is to be replaced.
  private func serve(_ pipes: inout WorkerPipes) async {
    for _ in 0..<limits.jobsPerWorker {
      guard let waiting = await nextJob() else { return }
      guard await work(on: waiting, &pipes) else { return }
    }
  }

  /// - Returns: whether the worker can go on.
  private func work(on waiting: Waiting, _ pipes: inout WorkerPipes) async -> Bool {
    lastID += 1
    let id = lastID
    defer { finished(waiting) }
    do {
      let line = try await pipes.exchange(
        WorkerRequest(id: id, job: waiting.job), timeLimit: waiting.deadline - .now)
      let answer = try JSONDecoder().decode(WorkerAnswer.self, from: Data(line))
      guard answer.id == id else { throw WorkerPipes.Failure.died }
      failuresInARow = 0
      waiting.answer.resume(returning: Self.result(answer))
      return answer.residentByteCount ?? .max < limits.recycleByteCount
    } catch WorkerPipes.Failure.timedOut {
      // A page that hangs says nothing against the next process, which others may wait for.
      failuresInARow = max(failuresInARow, 1)
      logger.warning("an extraction took over \(limits.jobSeconds) s: its worker is killed")
      waiting.answer.resume(
        returning: .failure(
          ErrorReport(
            .sourceTimeout, "yt-dlp found nothing within \(limits.jobSeconds) s",
            hint: "try again, or raise --extraction-timeout-seconds", stage: .extract)))
    } catch {
      backOff()
      logger.warning("an extraction worker died")
      retry(waiting)
    }
    return false
  }

  private func retry(_ waiting: Waiting) {
    var waiting = waiting
    waiting.deaths += 1
    guard waiting.deaths < 2 else {
      waiting.answer.resume(
        returning: .failure(
          ErrorReport(
            .extractionFailed, "the extraction worker died twice over this page",
            hint: "see the engine's log", stage: .extract)))
      return
    }
    queue.putBack(waiting, for: waiting.client)
  }

  /// The next job that someone still waits for; nil when the worker has nothing to do for long.
  private func nextJob() async -> Waiting? {
    while let waiting = takeNext() {
      guard let report = reasonToDrop(waiting) else { return waiting }
      finished(waiting)
      waiting.answer.resume(returning: .failure(report))
    }
    lastID += 1
    let id = lastID
    let isExtra = counts.running > limits.maximumWorkers
    let bell = Task {
      try await Task.sleep(for: .seconds(isExtra ? limits.extraIdleSeconds : limits.idleSeconds))
      idleTooLong(id)
    }
    defer { bell.cancel() }
    return await withCheckedContinuation { idle.append((id, $0)) }
  }

  /// Why a job is not done any more.
  private func reasonToDrop(_ waiting: Waiting) -> ErrorReport? {
    guard waiting.isWanted() else { return .superseded }
    return waiting.deadline <= .now ? exhausted(waiting.client) : nil
  }

  private func idleTooLong(_ id: Int) {
    guard let index = idle.firstIndex(where: { $0.id == id }) else { return }
    idle.remove(at: index).wake.resume(returning: nil)
  }

  /// No worker can be had: anyone who waits is told why.
  private func failedToStart(_ reason: String) {
    backOff()
    let report = ErrorReport.extractorUnavailable(reason)
    unavailable = report
    logger.warning("\(report.message)")
    for waiting in queue.removeAll() { waiting.answer.resume(returning: .failure(report)) }
  }

  private func backOff() {
    let milliseconds = limits.firstBackoffMilliseconds << min(failuresInARow, 16)
    failuresInARow += 1
    mayStartAt = .now + .milliseconds(min(milliseconds, limits.lastBackoffMilliseconds))
  }

  /// What a worker writes beside its answers: a plugin that does not load, a traceback.
  private nonisolated func log(_ output: SubprocessOutputSequence) async {
    do {
      for try await piece in output {
        let text = piece.withUnsafeBytes { String(decoding: $0.prefix(2_000), as: UTF8.self) }
        logger.notice("yt-dlp: \(text.trimmingCharacters(in: .newlines))")
      }
    } catch {
      // The process has ended; what became of it is seen by its answers.
    }
  }

  private static func result(_ answer: WorkerAnswer) -> Answer {
    if let found = answer.result { return .success(found) }
    let failure = answer.error ?? WorkerAnswer.Failure(kind: "failed", message: "the worker gave no answer")
    return .failure(failure.report)
  }
}
