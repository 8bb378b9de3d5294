import ServiceSupport
import Synchronization
import WireProtocol

/// Whether the engine can do its work now, for `/ready`.
package final class EngineReadiness: Sendable {
  /// Why everything that still waits is refused, and what routers are told.
  static let stopping = ErrorReport(.engineUnavailable, "the engine is stopping", stage: .command)

  /// How long the pacer may take between two rounds before nobody hears in time: 50 packets.
  private static let patienceMilliseconds = 1_000
  /// Later than this, listeners with the usual 500 ms of buffer are near to hearing it.
  private static let lateNanoseconds: UInt64 = 100_000_000

  private let pacer: Pacer
  private let extractorProblem: @Sendable () async -> String?
  private let isStopping = Atomic<Bool>(false)

  /// - Parameter extractorProblem: why pages cannot be played; nil where they can.
  package init(pacer: Pacer, extractorProblem: @escaping @Sendable () async -> String?) {
    self.pacer = pacer
    self.extractorProblem = extractorProblem
  }

  /// The engine has been asked to stop.
  package func stop() { isStopping.store(true, ordering: .relaxed) }

  /// Whether the pacer goes its rounds: what the engine is there for.
  package var isPacing: Bool {
    get async { await pacer.answers(withinMilliseconds: Self.patienceMilliseconds) }
  }

  package func report() async -> ReadinessReport {
    var reasons: [String] = []
    if isStopping.load(ordering: .relaxed) { reasons.append(Self.stopping.message) }
    let pacing = pacer.statistics.current
    if await !isPacing {
      reasons.append("the pacer has not answered in \(Self.patienceMilliseconds) ms: nothing is sent in time")
    } else if pacing.sessions.streaming > 0, pacing.recentLatenessNanoseconds > Self.lateNanoseconds {
      reasons.append("the pacer is \(pacing.recentLatenessNanoseconds / 1_000_000) ms late")
    }
    let warnings = await extractorProblem().map { ["pages cannot be played: \($0)"] } ?? []
    return ReadinessReport(reasons: reasons, warnings: warnings)
  }
}
