import ServiceSupport
import Synchronization
import WireProtocol

/// What happened to one timeline on the way to its packets: written by its producer, read for `ready` and
/// `why`. Bounded: of a source that breaks off again and again, the last breaks are kept.
package final class StageJournal: Sendable {
  package struct Entry: Sendable {
    package var stage: StageRecord.Stage
    /// `CLOCK_MONOTONIC`, when it ended.
    package var endNanoseconds: UInt64
    package var milliseconds: Double?
    package var detail: String?
  }

  /// The opening's entries are few and stay; of later ones this many are kept.
  private static let maximumCount = 32
  private static let openingStages: Set<StageRecord.Stage> = [
    .queue, .extract, .resolve, .connect, .probe, .firstPacket,
  ]

  private let state = Mutex<[Entry]>([])

  package init() {}

  package var entries: [Entry] { state.withLock { $0 } }

  /// How long a stage took, all its times together; nil where it did not happen, or had ended before.
  package func milliseconds(of stage: StageRecord.Stage, since nanoseconds: UInt64) -> Double? {
    let times = entries.filter { $0.stage == stage && $0.endNanoseconds >= nanoseconds }
      .compactMap(\.milliseconds)
    return times.isEmpty ? nil : times.reduce(0, +)
  }

  /// Notes that a stage has just ended.
  ///
  /// - Parameter startNanoseconds: when it began; nil for a moment.
  package func record(
    _ stage: StageRecord.Stage, since startNanoseconds: UInt64? = nil, _ detail: String? = nil
  ) {
    let now = MonotonicClock.nowNanoseconds
    let entry = Entry(
      stage: stage, endNanoseconds: now,
      milliseconds: startNanoseconds.map { MonotonicClock.milliseconds(from: $0, to: now) }, detail: detail)
    state.withLock { entries in
      entries.append(entry)
      guard entries.count > Self.maximumCount,
        let oldest = entries.firstIndex(where: { !Self.openingStages.contains($0.stage) })
          ?? entries.indices.first
      else { return }
      entries.remove(at: oldest)
    }
  }
}
