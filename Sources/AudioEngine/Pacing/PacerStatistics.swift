import ServiceSupport
import Synchronization

/// What the pacer counts, read by `/metrics` while it runs.
package final class PacerStatistics: Sendable {
  package struct Values: Sendable {
    package var sessions = SessionCounts()
    package var droppedPackets = 0
    /// Answers dropped for slow routers without an error report.
    package var lostAnswers = 0
    package var connections = 0
    /// Bytes that slow routers have not taken yet.
    package var routerQueueBytes = 0
    /// Lateness of the pacer, one sample per round.
    package var lateness = LatenessHistogram()
    /// The latest of the last rounds, fading by a 64th a round.
    package var recentLatenessNanoseconds: UInt64 = 0
  }

  private let values = Mutex(Values())

  package var current: Values { values.withLock { $0 } }

  /// One short lock a round, never held across a system call; readers come once in seconds.
  func update(_ change: (inout Values) -> Void) { values.withLock { change(&$0) } }
}

extension PacerStatistics.Values {
  mutating func recordLateness(nanoseconds: UInt64) {
    lateness.record(nanoseconds: nanoseconds)
    recentLatenessNanoseconds = max(nanoseconds, recentLatenessNanoseconds - recentLatenessNanoseconds / 64)
  }
}
