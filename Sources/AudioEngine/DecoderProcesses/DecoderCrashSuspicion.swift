import Glibc
import WireProtocol

/// Whether processes die of a source: what is known of it while one after another does.
struct DecoderCrashSuspicion {
  /// A production that has come so far since a process died under it has not killed it, or not at that place: a
  /// process is at most a time slice ahead of what it has delivered.
  private static let clearedPackets = 50
  /// Processes that may die in a row, or have no room for a thread, before it is given up.
  private static let maximumDeaths = 10
  private static let deathPauseMicroseconds: UInt32 = 50_000

  private let source: MediaSource
  private let pool: DecoderPool
  /// In a row.
  private var deaths = 0
  /// The packet at which a process died while it worked on the source.
  private var place: Int?

  init(of source: MediaSource, _ pool: DecoderPool) {
    self.source = source
    self.pool = pool
  }

  /// Whether the source is to have a process of its own.
  var isSuspect: Bool { place != nil }

  /// Starts the count of deaths in a row again.
  mutating func resetDeathCount() { deaths = 0 }

  /// Takes a failure; pauses where it is not the first in a row.
  ///
  /// - Throws: the failure's report, where it is no death; `source_crashes_decoder` for a suspect under which another
  ///   process has died; `overloaded` after too many deaths in a row.
  mutating func note(_ failure: DecoderFailure, at place: Int) throws(ErrorReport) {
    let wasWorking: Bool
    switch failure {
    case .report(let report): throw report
    case .died(let isWorking): wasWorking = isWorking
    }
    deaths += 1
    guard deaths <= Self.maximumDeaths else {
      throw ErrorReport(
        .overloaded, "\(Self.maximumDeaths) decoder processes in a row could not continue with the source",
        hint: "see the engine's log; perhaps the limit of processes or of memory is too low", stage: .decode)
    }
    if deaths > 1 { usleep(Self.deathPauseMicroseconds) }
    guard wasWorking else { return }
    guard !isSuspect else { throw pool.crashing.add(source) }
    self.place = place
  }

  /// Clears a suspect that has come far enough, whose process others may share from then on.
  mutating func clear(_ process: DecoderProcess, at count: Int) {
    guard let place, count >= place + Self.clearedPackets else { return }
    self.place = nil
    pool.clear(process)
  }
}
