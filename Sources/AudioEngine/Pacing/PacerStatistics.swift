import Synchronization

/// What the pacer counts, read by `/metrics` while it runs.
package final class PacerStatistics: Sendable {
  package struct Values: Sendable {
    package var packets = 0
    package var underruns = 0
    package var rebases = 0
    package var droppedPackets = 0
    /// Pauses, resumes, stops, seeks and volume changes.
    package var cuts = 0
    /// Those that came without their fade, because its splice was not there in time.
    package var cutsWithoutFade = 0
    package var extracting = 0
    package var streaming = 0
    package var paused = 0
    package var connections = 0
    /// Rounds by lateness: one count for each of `latenessBounds`, and one for what is later.
    package var latenessCounts = [Int](repeating: 0, count: PacerStatistics.latenessBounds.count + 1)
    package var latenessSumMicroseconds = 0
  }

  /// Upper bounds of the lateness histogram, in microseconds.
  package static let latenessBounds = [
    50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000,
  ]

  private let values = Mutex(Values())

  package var current: Values { values.withLock { $0 } }

  /// One short lock a round, never held across a system call; readers come once in seconds.
  func update(_ change: (inout Values) -> Void) { values.withLock { change(&$0) } }
}

extension PacerStatistics.Values {
  mutating func recordLateness(nanoseconds: UInt64) {
    let microseconds = Int(nanoseconds / 1_000)
    let bounds = PacerStatistics.latenessBounds
    latenessCounts[bounds.firstIndex { microseconds <= $0 } ?? bounds.count] += 1
    latenessSumMicroseconds += microseconds
  }
}
