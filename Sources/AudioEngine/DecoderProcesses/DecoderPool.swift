import Dispatch
import Glibc
import Logging
import ServiceSupport
import Synchronization
import WireProtocol

/// The decoder processes: a few that many productions share, and one each for those that may have killed another.
package final class DecoderPool: Sendable {
  /// Starts a process.
  package typealias Start = @Sendable (_ isDedicated: Bool) throws(ErrorReport) -> DecoderProcess

  /// Processes with one suspect each, beyond which suspects wait.
  private static let maximumDedicated = 8
  /// One that dies before it has run so long is not replaced at once.
  private static let minimumUptimeNanoseconds: UInt64 = 1_000_000_000
  private static let startDelay = DispatchTimeInterval.milliseconds(500)
  private static let pollMicroseconds: UInt32 = 50_000

  private struct State {
    /// Those that take further productions, and their productions.
    var shared: [ObjectIdentifier: DecoderProcess] = [:]
    var jobs: [ObjectIdentifier: Int] = [:]
    /// Those that are being started for productions to share.
    var startingCount = 0
    /// Those with one suspect each; the number has those that are being started as well.
    var dedicated: Set<ObjectIdentifier> = []
    var dedicatedCount = 0
    var deaths = 0
    /// Protections that the kernel did not apply.
    var unenforcedProtections: Set<String> = []

    /// - Returns: whether it was a dedicated one.
    mutating func releaseDedicated(_ key: ObjectIdentifier) -> Bool {
      guard dedicated.remove(key) != nil else { return false }
      dedicatedCount -= 1
      return true
    }
  }

  package struct Statistics: Sendable {
    package var processes: Int
    package var deaths: Int
    package var refusedSources: Int
    /// Protections that processes are without.
    package var unenforcedProtections: [String]
  }

  let crashing = CrashingSources()
  private let count: Int
  private let logger: Logger
  private let startProcess: Start
  private let state = Mutex(State())

  /// - Parameters:
  ///   - count: how many processes productions share at most.
  ///   - start: another way to start one, for tests that are at a process's end of the conversation.
  package init(count: Int, logger: Logger, start: @escaping Start = DecoderProcess.start) {
    self.count = count
    self.logger = logger
    startProcess = start
  }

  /// Starts a shared process, so that the first track does not wait for one. The others follow once productions overlap:
  /// an engine that plays little keeps little memory.
  package func start() throws(ErrorReport) { _ = try startShared() }

  package var statistics: Statistics {
    let (processes, deaths, unenforcedProtections) = state.withLock {
      ($0.shared.count + $0.dedicatedCount, $0.deaths, $0.unenforcedProtections.sorted())
    }
    return Statistics(
      processes: processes, deaths: deaths, refusedSources: crashing.count,
      unenforcedProtections: unenforcedProtections)
  }

  /// Has a process begin with a source.
  ///
  /// - Parameters:
  ///   - permit: of the production; nil for a picture.
  ///   - isDedicated: in a process where nothing else is.
  func call(
    about input: any MediaInput, _ permit: HeldPermit?, isDedicated: Bool
  ) throws(DecoderFailure) -> DecoderCall {
    do throws(ErrorReport) {
      while true {
        let process = try isDedicated ? startDedicated(permit) : leastBusy()
        let (own, other) = try DecoderSocket.pair()
        let socket = DecoderSocket(descriptor: own, of: .engine)
        let isTaken = process.take(other)
        close(other)
        let call = DecoderCall(process, socket, input, permit, pool: self)
        guard isTaken else {
          remove(process)
          continue
        }
        return call
      }
    } catch {
      throw .report(error)
    }
  }

  /// The cover in a file, or nil where there is none.
  ///
  /// - Throws: why the file cannot be opened, or that its cover is too large.
  func picture(of file: FileInput, path: String, _ name: String) throws(ErrorReport) -> [UInt8]? {
    try crashing.check(.file(path: path))
    var suspicion = DecoderCrashSuspicion(of: .file(path: path), self)
    while true {
      do throws(DecoderFailure) {
        let call = try call(about: file, nil, isDedicated: suspicion.isSuspect)
        try call.begin(.picture(name: name))
        var picture: [UInt8]?
        while true {
          switch try call.next() {
          case .picture(let bytes): picture = bytes
          case .ended: return picture
          default: throw call.broken()
          }
        }
      } catch {
        try suspicion.note(error, at: 0)
      }
    }
  }

  /// A production of a process has ended.
  func end(_ process: DecoderProcess) {
    // Freed only behind the lock: it leaves then.
    _ = state.withLock { state -> DecoderProcess? in
      let key = process.key
      state.jobs.countDown(key)
      guard state.jobs[key] == nil, state.shared.count > count else { return nil }
      return state.shared.removeValue(forKey: key)
    }
  }

  /// A dedicated process whose source is no suspect any more is shared from here on, and makes room for another.
  func clear(_ process: DecoderProcess) {
    state.withLock { state in
      guard state.releaseDedicated(process.key) else { return }
      state.shared[process.key] = process
      state.jobs[process.key] = 1
    }
  }

  // MARK: Processes

  /// The shared process with the fewest productions, which has one more from here on.
  private func leastBusy() throws(ErrorReport) -> DecoderProcess {
    let (process, isIdle) = state.withLock { state in
      let least = state.shared.values.min {
        state.jobs[$0.key, default: 0] < state.jobs[$1.key, default: 0]
      }
      guard let least else { return (DecoderProcess?.none, true) }
      state.jobs[least.key, default: 0] += 1
      return (least, state.jobs[least.key] == 1)
    }
    // Its start takes tens of milliseconds, which this production does not wait for.
    if !isIdle { DispatchQueue.global().async { self.addShared() } }
    if let process { return process }
    let started = try startShared()
    state.withLock { $0.jobs[started.key, default: 0] += 1 }
    return started
  }

  private func startShared() throws(ErrorReport) -> DecoderProcess {
    let process = try startProcess(false)
    state.withLock { $0.shared[process.key] = process }
    try watch(process)
    return process
  }

  /// Waits for room without a permit.
  private func startDedicated(_ permit: HeldPermit?) throws(ErrorReport) -> DecoderProcess {
    while !reserveDedicated() {
      guard permit?.isCancelled() != true else { throw .superseded }
      permit?.pause()
      usleep(Self.pollMicroseconds)
    }
    permit?.acquire()
    let process: DecoderProcess
    do throws(ErrorReport) {
      process = try startProcess(true)
    } catch {
      state.withLock { $0.dedicatedCount -= 1 }
      throw error
    }
    // Before it is watched: it may end at once.
    state.withLock { _ = $0.dedicated.insert(process.key) }
    do throws(ErrorReport) {
      try watch(process)
    } catch {
      state.withLock { _ = $0.releaseDedicated(process.key) }
      throw error
    }
    return process
  }

  private func reserveDedicated() -> Bool {
    state.withLock { state in
      guard state.dedicatedCount < Self.maximumDedicated else { return false }
      state.dedicatedCount += 1
      return true
    }
  }

  private func remove(_ process: DecoderProcess) {
    state.withLock { $0.shared[process.key] = nil }
  }

  /// Replaces a process that dies.
  private func watch(_ process: DecoderProcess) throws(ErrorReport) {
    let (id, key, started) = (process.id, process.key, process.startedNanoseconds)
    // Without the process itself, whose last user closes its control socket.
    let life = process.life
    let report = process.report
    try EngineThread.start(name: "decoder-watch", stackByteCount: 128 << 10) { [self] in
      note(report.unenforcedProtections())
      let reason = life.awaitEnd()
      state.withLock { state in
        _ = state.releaseDedicated(key)
        if reason != nil { state.deaths += 1 }
        state.shared[key] = nil
      }
      guard let reason else { return }
      logger.warning(
        "a decoder process ended \(reason); its productions resume in another", metadata: ["process": "\(id)"]
      )
      let isYoung = MonotonicClock.nowNanoseconds < started + Self.minimumUptimeNanoseconds
      DispatchQueue.global().asyncAfter(deadline: .now() + (isYoung ? Self.startDelay : .seconds(0))) {
        self.addShared()
      }
    }
  }

  /// Once for each: the next process has the same.
  private func note(_ protections: [String]) {
    let new = state.withLock { state in
      let new = protections.filter { !state.unenforcedProtections.contains($0) }
      state.unenforcedProtections.formUnion(new)
      return new
    }
    for protection in new { logger.warning("decoder sandbox: protection not available: \(protection)") }
  }

  /// One more shared process, unless there are enough.
  private func addShared() {
    let isNeeded = state.withLock { state in
      guard state.shared.count + state.startingCount < count else { return false }
      state.startingCount += 1
      return true
    }
    guard isNeeded else { return }
    do throws(ErrorReport) { _ = try startShared() } catch { logger.error("\(error.message)") }
    state.withLock { $0.startingCount -= 1 }
  }
}

/// Addresses whose decoder process died twice while they were read: refused for a while.
final class CrashingSources: Sendable {
  private static let refusedNanoseconds: UInt64 = 600_000_000_000
  private static let maximumCount = 10_000

  private let until = Mutex<[MediaSource: UInt64]>([:])

  var count: Int {
    let now = MonotonicClock.nowNanoseconds
    return until.withLock { $0.values.count { $0 > now } }
  }

  /// - Throws: `source_crashes_decoder`.
  func check(_ source: MediaSource) throws(ErrorReport) {
    let now = MonotonicClock.nowNanoseconds
    guard let end = until.withLock({ $0[source] }), end > now else { return }
    throw Self.report("it is refused for \((end - now) / 1_000_000_000 + 1) s more")
  }

  /// It has killed a process that had nothing else to do.
  func add(_ source: MediaSource) -> ErrorReport {
    let now = MonotonicClock.nowNanoseconds
    until.withLock { until in
      until = until.filter { $0.value > now }
      if until.count >= Self.maximumCount, let oldest = until.min(by: { $0.value < $1.value }) {
        until[oldest.key] = nil
      }
      until[source] = now + Self.refusedNanoseconds
    }
    return Self.report("it is refused for \(Self.refusedNanoseconds / 1_000_000_000) s")
  }

  private static func report(_ consequence: String) -> ErrorReport {
    ErrorReport(
      .sourceCrashesDecoder, "the decoder died twice while the source was read: \(consequence)",
      hint: "check the file, or play another version of it", stage: .decode)
  }
}
